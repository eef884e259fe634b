"""Which strategy is chosen, which two are marked, and how they are sorted: a value that keys change."""

from __future__ import annotations

from dataclasses import dataclass, replace

from meshscope.analysis.contenders import Contender
from meshscope.ui.strategies.answer import Answer
from meshscope.ui.strategies.columns import FASTEST, Sorting, ordered


@dataclass(frozen=True)
class State:
    """``chosen`` is a name, "" for the first; ``marks`` are at most two names, A and B, "" for none."""

    sorting: Sorting = FASTEST
    chosen: str = ""
    marks: tuple[str, str] = ("", "")

    @property
    def pair(self) -> tuple[str, str] | None:
        """A and B where both are marked."""
        return self.marks if all(self.marks) else None


def names(answer: Answer, state: State) -> list[str]:
    """Everybody in the order of the screen; those that have not started come last."""
    return [*(one.name for one in ordered(answer, state.sorting)), *answer.waiting]


def chosen(answer: Answer, state: State) -> str:
    """The name that the cursor is on; "" while there is nobody."""
    found = names(answer, state)
    return state.chosen if state.chosen in found else found[0] if found else ""


def moved(answer: Answer, state: State, by: int) -> State:
    """The cursor some places further down, stopping at either end."""
    found = names(answer, state)
    if not found:
        return state
    at = found.index(chosen(answer, state)) + by
    return replace(state, chosen=found[min(max(at, 0), len(found) - 1)])


def marked(state: State, name: str) -> State:
    """With ``name`` as A, or as B beside an A (in the place of another B); without its mark where it has one."""
    a, b = state.marks
    if name in (a, b):
        return replace(state, marks=("" if a == name else a, "" if b == name else b))
    return replace(state, marks=(name, b) if not a else (a, name))


def compared(answer: Answer, state: State) -> tuple[Contender, Contender] | None:
    """What the line of differences is about, from the first to the second.

    A and B where both are marked; else the fastest and the chosen one, or the next that is ranked where these are one.
    """
    if state.pair is not None:
        before, after = state.pair
    else:
        before, after = answer.winning.fastest, chosen(answer, state)
        if before == after:
            after = next(iter(answer.winning.gaps), "")
    first, second = answer.of(before), answer.of(after)
    return (first, second) if first is not None and second is not None and first is not second else None
