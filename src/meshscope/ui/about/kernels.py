"""Kernels and operators, in words and as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from meshscope.ui.panel import Help
from meshscope.ui.sheet import Sheet, sheet

HELP = Help(
    "Device work by time, in the mean step of a rank (of all that was traced where no step is marked). g groups it by "
    "module or scope and by phase, where the traces tell any.",
    columns=(
        ("kernel or operator", "its name; scope, module or phase where it is grouped by that"),
        ("bar", "in the texture of compute or copies; of a collective what hides under compute and what does not"),
        ("ms/step", "time in a step, calls added up (ms: in all, where no step is marked)"),
        ("share", "that time as a share of the time of all rows, added up"),
        ("calls", "in a step, mean over ranks and steps"),
        (
            "p50",
            "half of the single calls take no longer, in the unit beside it; p95: 95 % of them; mean: their mean",
        ),
        ("kind", "compute, collective or copy, by the rule that is named below the table"),
        ("mostly in", "the module or scope that has most of its time"),
        ("backward", "share of its time that is backward"),
    ),
    states=(("Cannot say", "why the traces hold no device work"),),
    keys=(("↑ ↓", "choose one"), ("g", "group otherwise")),
)

_COLUMNS = ("name", "grouped_by", "time_ns", "time_frac", "calls", "mean_ns", "median_ns", "p95_ns", "kind",
            "mostly_in", "backward_frac")  # fmt: skip


class _Row(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def ns(self) -> float: ...
    @property
    def frac(self) -> float: ...
    @property
    def calls(self) -> float: ...
    @property
    def lengths_ns(self) -> tuple[float, float, float]: ...
    @property
    def kind(self) -> str: ...
    @property
    def home(self) -> str: ...
    @property
    def backward_frac(self) -> float: ...


class _Grouping(Protocol):
    @property
    def by(self) -> str: ...
    @property
    def rows(self) -> Sequence[_Row]: ...
    @property
    def of_ns(self) -> float: ...
    @property
    def is_stepped(self) -> bool: ...


def rows(found: _Grouping | None) -> Sheet:
    """A row for each of the grouping that is looked at; ``of_ns`` is what the shares are of."""
    if found is None:
        return sheet(_COLUMNS, ())
    listed = [
        [one.name, found.by, one.ns, one.frac, one.calls, *one.lengths_ns, one.kind or None, one.home or None,
         one.backward_frac]
        for one in found.rows
    ]  # fmt: skip
    return sheet(_COLUMNS, listed, about={"of_ns": found.of_ns, "over": "step" if found.is_stepped else "windows"})
