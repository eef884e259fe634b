"""Where ranks stood when they were asked: in the text report and in ``analyze --json``."""

from __future__ import annotations

from typing import Any

from meshscope.analysis.stalls import newest, stood
from meshscope.reports.columns import wrapped
from meshscope.run import Run
from meshscope.units import counted

_MOST = 8


def stack_lines(run: Run) -> list[str]:
    """The innermost frames of every rank, and the files with the whole stacks; nothing where none were taken."""
    taken = newest(run)
    if not taken:
        return []
    found = stood(run)
    lines = wrapped(f"stacks, taken of {counted(len(taken), 'process', 'processes')} since the last step ended:")
    for each in found[:_MOST]:
        thread = "" if each.is_main else ", another thread"
        lines += wrapped(f"rank {each.rank}{thread}: {each.words}", indent="    ", hanging="  ")
    if len(found) > _MOST:
        lines.append(f"    … {counted(len(found) - _MOST, 'more thread')}")
    return [*lines, *wrapped(f"whole: {', '.join(one.path for one in taken[:_MOST])}", indent="    ", hanging="  ")]


def stacks_json(run: Run) -> list[dict[str, Any]]:
    """Every time that stacks were taken; frames are ``path:line function``, the innermost first."""
    return [
        {
            "rank": one.rank,
            "time_ns": one.t_ns,
            "path": one.path,
            "threads": [list(thread) for thread in one.threads],
            "said": list(one.said),
        }
        for one in run.stacks
    ]
