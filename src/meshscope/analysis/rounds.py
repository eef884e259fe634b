"""Which windows cover the same stretch of a run: one of each rank, so that their collectives can be matched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from meshscope.run import Run
from meshscope.spans import Window

Round = tuple[Window, ...]


def rounds(run: Run) -> tuple[Round, ...]:
    """Windows with device work, at most one of each rank in a round, sorted by rank; rounds by start.

    Windows that share a step belong together. Where steps do not tell, windows join the round that they overlap most
    in time; and where every rank has one window, those are one round whatever their clocks say.
    """
    windows = sorted(
        (window for window in run.windows if window.device_kind != "none"),
        key=lambda window: (window.start_ns, window.rank),
    )
    if len({window.rank for window in windows}) == len(windows):
        return (_by_rank(windows),) if windows else ()
    found: list[_Draft] = []
    by_step: dict[int, list[_Draft]] = {}
    for window in sorted(windows, key=lambda window: not window.steps):  # stable: those with steps come first
        home = _by_steps(window, by_step) if window.steps else _by_time(window, found)
        if home is None:
            home = _Draft()
            found.append(home)
        home.add(window)
        for step in window.steps:
            drafts = by_step.setdefault(step, [])
            if not drafts or drafts[-1] is not home:
                drafts.append(home)
    return tuple(_by_rank(one.windows) for one in sorted(found, key=lambda one: one.start_ns))


@dataclass
class _Draft:
    """A round as it grows."""

    windows: list[Window] = field(default_factory=list)
    ranks: set[int] = field(default_factory=set)
    start_ns: int = 2**63 - 1
    end_ns: int = -(2**63)

    def add(self, window: Window) -> None:
        self.windows.append(window)
        self.ranks.add(window.rank)
        self.start_ns, self.end_ns = min(self.start_ns, window.start_ns), max(self.end_ns, window.end_ns)


def _by_rank(windows: Sequence[Window]) -> Round:
    return tuple(sorted(windows, key=lambda window: window.rank))


def _by_steps(window: Window, by_step: dict[int, list[_Draft]]) -> _Draft | None:
    drafts = (draft for step in window.steps for draft in by_step.get(step, ()))
    return next((draft for draft in drafts if window.rank not in draft.ranks), None)


def _by_time(window: Window, found: list[_Draft]) -> _Draft | None:
    open_to = [
        (min(window.end_ns, draft.end_ns) - max(window.start_ns, draft.start_ns), number)
        for number, draft in enumerate(found)
        if window.rank not in draft.ranks
    ]
    overlap_ns, number = max(open_to, default=(0, 0))
    return found[number] if overlap_ns > 0 else None
