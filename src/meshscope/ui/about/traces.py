"""Traces opened by themselves, in words and as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, fields

from meshscope.analysis.breakdown import Breakdown
from meshscope.analysis.traced import Traced
from meshscope.ui.panel import Help
from meshscope.ui.sheet import Sheet, sheet
from meshscope.units import ranges

HELP = Help(
    "One line per run that the files make up. The bar is the mean complete step over all ranks; where no step is "
    "marked, all that was traced, mean over ranks.",
    columns=(
        ("trace", "▸ looked at · ✓ read · ◐ being read"),
        ("of", "framework, and the kind of device"),
        ("ranks", "how many ranks the files tell of"),
        ("profiled", "the steps that are in the traces, by number"),
        ("step", "length of the mean step; under the profiler it is longer than without"),
        ("traced", "length of what was traced, where no step is marked"),
        ("where a step goes", "shares of that; where it goes: the same of the traced time; split in less room"),
        ("exposed", "communication beside no compute, as a share of the same"),
        ("idle", "neither computing, communicating nor copying, as a share of the same"),
        ("events", "entries of the files, dropped ones included"),
    ),
    states=(
        ("so far n %", "the share of the files that was looked at; more of them may change a number"),
        ("no device work", "the files hold none: a host's trace, a snapshot, a log"),
    ),
    keys=(("↑ ↓", "look at another run"),),
)

_SHARES = ("compute", "hidden", "exposed", "copy", "idle")
_TIMES = tuple(field.name for field in fields(Breakdown))
_COLUMNS = ("trace", "framework", "device_kind", "ranks", "of_ranks", "files", "steps", "over", *_TIMES,
            *(f"share_{name}_frac" for name in _SHARES), "events", "dropped", "repaired", "read_frac",
            "cannot_say")  # fmt: skip


def runs(found: Sequence[Traced], partial: Mapping[str, float]) -> Sheet:
    """A row per run; the times are of the mean step, or of the traced time (``over``)."""
    return sheet(_COLUMNS, (_row(one, partial) for one in found))


def _row(one: Traced, partial: Mapping[str, float]) -> list[object]:
    times = astuple(one.mean) if one.mean else [None] * len(_TIMES)
    over = None if one.mean is None else "step" if one.is_stepped else "windows"
    return [
        one.name, one.framework or None, one.device_kind, one.ranks, one.of_ranks, one.files, ranges(one.steps) or None,
        over, *times, *(one.share.get(name) for name in _SHARES), one.events, one.dropped, one.repaired,
        partial.get(one.name, 1.0), one.why or None,
    ]  # fmt: skip
