"""Explains whom a collective waited for: which rank came last, how often, and what the others waited for it."""

from __future__ import annotations

from functools import partial

from meshscope.analysis.collectives import CollectiveTotal, Row, collective_rows
from meshscope.analysis.explaining.adding import over_windows
from meshscope.analysis.explaining.collective_rows import label
from meshscope.analysis.explaining.evidence import events, place
from meshscope.analysis.explaining.figure import Figure
from meshscope.analysis.explaining.number import Asked, Case, Group, Number
from meshscope.run import Run

_SAID = {
    "late": ("late_ns", "ns", "What the other ranks waited for a rank that came last to COLLECTIVE calls, added up."),
    "last": ("last", "calls", "How often a rank came last to COLLECTIVE calls."),
}
_EXCLUDES = "calls without a counterpart on every rank, and those to which all came together"


def numbers(run: Run) -> tuple[Number, ...]:
    names = dict.fromkeys(found.name for found, _ in collective_rows(run))
    return tuple(
        Number(
            name=f"collectives.{name or 'unnamed'}.{what}",
            unit=unit,
            definition=said.replace("COLLECTIVE", (name or "unnamed").replace("_", "-")),
            excludes=_EXCLUDES,
            cases=partial(_cases, name=name, what=what),
            also=(f"collectives.{name or 'unnamed'}.{field}",) if field != what else (),
            no_step="waiting.charged and waiting.last can",
        )
        for name in names
        for what, (field, unit, said) in _SAID.items()
    )


def _cases(asked: Asked, *, name: str, what: str) -> tuple[Case, ...]:
    """One for each row of that name and each rank that it names."""
    cases = [
        _case(at, row, rows, rank, what)
        for at, (row, rows) in enumerate(collective_rows(asked.run))
        if row.name == name
        for rank in (row.late_ns if what == "late" else row.last)
        if asked.has(rank)
    ]
    return tuple(cases) or (Case(name, None, why="nobody is known to have come last", rank=asked.rank),)


def _case(at: int, row: CollectiveTotal, rows: tuple[Row, ...], rank: int, what: str) -> Case:
    windows = [window for window, _, _ in rows]
    return Case(
        of=f"rank {rank} in {label(row)}",
        figure=_figure(rows, rank, what),
        json=f"collectives[{at}].{_SAID[what][0]}.{rank}",
        rank=rank,
        places=tuple(place(window) for window in windows),
        events=events(windows),
        notes=(f"over the {row.matched} of {row.count} calls that have a counterpart on every rank",),
    )


def _figure(rows: tuple[Row, ...], rank: int, what: str) -> Figure:
    if what == "last":
        mine = [(window, met) for window, _, met in rows if window.rank == rank]
        return over_windows("calls that it came last to", mine, lambda met: met.last, "calls")
    waited = [(window, met) for window, _, met in rows if met.late_ns.get(rank)]
    return over_windows("the others waited", waited, lambda met: met.late_ns[rank])


GROUP = Group("whom collectives waited for", 23, numbers, heads=("collectives.",))
