"""Where a step of each rank goes, in words and as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, fields

from meshscope.analysis.breakdown import Breakdown, RankBreakdown
from meshscope.ui.panel import Help
from meshscope.ui.sheet import Sheet, sheet
from meshscope.units import ranges

HELP = Help(
    "One bar per rank: the mean of its complete profiled steps, all to one scale, so that a longer bar is a longer "
    "step. Time under the profiler is longer than a step without it.",
    columns=(
        ("ms profiled", "length of the mean profiled step"),
        ("ms traced", "length of all that was traced, where no step is marked"),
        ("computing", "ms in which something computes, communication hidden under it included"),
        ("(hidden)", "ms of communication while something computes: a part of computing, not beside it"),
        ("compute alone", "of the bar: computing without what it hides; the bar's parts add up to the step"),
        ("exposed", "ms of communication while nothing computes"),
        ("idle", "ms in which neither happens, nor a copy: computing, exposed, copies alone and idle are the step"),
        ("exp %", "exposed as a share of the step"),
    ),
    states=(
        ("no whole step", "the trace of this rank holds no step from its beginning to its end"),
        ("Cannot say", "why the trace does not tell device work apart"),
    ),
    keys=(("e", "explain: a number's formula and its spans"),),
)

_TIMES = tuple(field.name for field in fields(Breakdown))
_COLUMNS = ("rank", "device", "over", "steps", *_TIMES)


def ranks(found: Sequence[RankBreakdown]) -> Sheet:
    """Two rows per rank: the mean complete step, and all windows added up (``over``)."""
    rows: list[list[object]] = []
    for rank in found:
        for over, part in (("step", rank.per_step), ("windows", rank.total)):
            if part is not None and rank.device_kind != "none":
                rows.append([rank.rank, rank.device, over, ranges(rank.steps), *astuple(part)])
    return sheet(_COLUMNS, rows)
