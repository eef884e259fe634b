"""Explains DDP: the backward passes, the exposed tail behind each, and what goes out more often than it needs to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from meshscope.analysis.ddp import waited
from meshscope.analysis.explaining.adding import asked_of, bounds_of, is_all, over_windows
from meshscope.analysis.explaining.evidence import Pick, delays, events, evidence, place
from meshscope.analysis.explaining.figure import MEAN, QUOTIENT, Figure, counted_of, made, total
from meshscope.analysis.explaining.number import Asked, Case, Evidence, Group, Number
from meshscope.analysis.passes import Pass, is_ddp
from meshscope.intervals import Intervals
from meshscope.run import Run
from meshscope.spans import Window
from meshscope.units import NS_PER_S

NO_DDP = "no trace there shows a backward pass of DDP with its all-reduces"
TAIL = (
    "the tail of a pass is the time in which one of its all-reduces runs and nothing is computed, after the last "
    "kernel that its autograd launched has ended"
)
_SAID = {
    "tail": (
        "tail_ns",
        "ns",
        "The exposed all-reduces after the last computation of a backward pass, in the mean over passes.",
        "all-reduces under compute, and those before the last computation",
    ),
    "tail_share": (
        "tail_frac",
        "frac",
        "The exposed tails of all backward passes as a share of the windows' length.",
        "all-reduces before the last computation",
    ),
    "computed": (
        "computed_ns",
        "ns",
        "From the beginning of a backward pass where its work runs (on a GPU, its first kernel) to the end of its "
        "last computation, in the mean over passes.",
        "the all-reduces behind it",
    ),
    "waited": (
        "waited_ns",
        "ns",
        "What all-reduces in the tail only waited for a late rank, in the mean over passes.",
        "passes whose all-reduces have no counterpart on every rank",
    ),
    "passes": ("passes", "passes", "How many backward passes all-reduced their gradients.", "passes under no_sync"),
}


@dataclass(frozen=True, eq=False)
class Passed:
    """A backward pass with all-reduces, its window, and what its tail waited (None where that is not known)."""

    window: Window
    one: Pass
    waited_ns: int | None

    @property
    def label(self) -> str:
        step = f", step {self.one.step}" if self.one.step >= 0 else ""
        return f"rank {self.one.rank}{step}, pass at {self.one.start_ns / NS_PER_S:.6f} s"


def passed(asked: Asked) -> list[Passed]:
    """The passes of the windows of DDP that were asked about; those of the step where one was."""
    found = [Passed(*told) for told in waited(asked.run)]
    return [
        told
        for told in found
        if is_ddp(told.window) and asked.has(told.window.rank) and asked.step in (None, told.one.step)
    ]


def numbers(run: Run) -> tuple[Number, ...]:
    if not any(is_ddp(window) for window in run.windows):
        return ()
    return tuple(
        Number(
            name=f"ddp.{name}",
            unit=unit,
            definition=said,
            excludes=excludes,
            cases=partial(_cases, name=name),
            also=(f"ddp.{field}",) if field != name else (),
            by=("rank", "step"),
        )
        for name, (field, unit, said, excludes) in _SAID.items()
    )


def _cases(asked: Asked, *, name: str) -> tuple[Case, ...]:
    found = passed(asked)
    if not found:
        return (Case("backward passes", None, why=NO_DDP, rank=asked.rank),)
    figure = _figure(asked, found, name)
    windows = list(dict.fromkeys(told.window for told in found))
    return (
        Case(
            of=whose(asked),
            figure=figure,
            json=f"ddp.{_SAID[name][0]}" if is_all(asked) else "",
            rank=asked.rank,
            places=tuple(place(window, None if asked.step is None else (asked.step,)) for window in windows),
            evidence=_evidence(found, name),
            events=events(windows),
            notes=_notes(found, name),
        ),
    )


def whose(asked: Asked) -> str:
    return "all ranks" if asked.rank is None else f"rank {asked.rank}"


def _figure(asked: Asked, found: Sequence[Passed], name: str) -> Figure:
    count = counted_of(len(found), "passes")
    if name == "passes":
        ranks = Counter(told.one.rank for told in found)
        return total("passes", [Figure(f"rank {rank}", ranks[rank], "passes") for rank in sorted(ranks)], "passes")
    if name == "computed":
        return made("computed in the mean pass", MEAN, *(_length(told) for told in found))
    tails = [Figure(told.label, told.one.tail_ns) for told in found]
    if name == "tail":
        return made("tail of the mean pass", MEAN, *tails)
    if name == "waited":
        each = [Figure(told.label, told.waited_ns or 0) for told in found]
        return made("waited in the mean tail", QUOTIENT, total("waited in all tails", each), count)
    windows = [(window, bounds_of(asked, window)) for window in asked_of(asked) if is_ddp(window)]
    if asked.step is None:
        covered = over_windows("the windows' length", [(window, window) for window, _ in windows], _length_ns)
    else:
        covered = over_windows("the step's length", windows, _covered_ns)
    return made("tails' share", QUOTIENT, total("all tails", tails), covered, unit="frac")


def _length(told: Passed) -> Figure:
    return Figure(told.label, told.one.computed_ns - told.one.begun_ns)


def _length_ns(window: Window) -> int:
    return window.end_ns - window.start_ns


def _covered_ns(when: Intervals) -> int:
    return when.total_ns


def _evidence(found: Sequence[Passed], name: str) -> Evidence:
    if name in ("tail", "tail_share", "waited"):
        picks = [Pick.within(told.window, told.one.row, told.one.tail) for told in found]
        return evidence(picks, "all-reduces in a tail")
    whole = [
        (told.window, told.one.row, told.window.spans.end_ns[told.one.row] - told.window.spans.start_ns[told.one.row])
        for told in found
    ]
    return delays(whole, "all-reduces of these passes")


def _notes(found: Sequence[Passed], name: str) -> tuple[str, ...]:
    notes = [TAIL] if name in ("tail", "tail_share", "waited") else []
    notes.append("a pass is told by autograd's evaluations of functions after a DistributedDataParallel.forward")
    unmatched = sum(told.waited_ns is None for told in found)
    if name == "waited" and unmatched:
        notes.append(f"{unmatched} of {len(found)} passes have an all-reduce without a counterpart: nothing of theirs")
    return tuple(notes)


GROUP = Group("DDP: backward passes", 18, numbers, heads=("ddp.",))
