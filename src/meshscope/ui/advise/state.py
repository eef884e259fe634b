"""Where somebody stands on the advise screen: the candidate that is looked at, those that are marked, the view."""

from __future__ import annotations

from dataclasses import dataclass, replace

from meshscope.ui.advise.answer import Answer

WHY, RULES, PARETO, FLIPS = "why", "rules", "time and memory", "what flips it"
VIEWS = (WHY, RULES, PARETO, FLIPS)
MOST_MARKED = 4


@dataclass(frozen=True)
class State:
    """``chosen`` and ``marked`` number rows of the answer; ``scroll`` counts lines of the view from its top."""

    chosen: int = 0
    marked: tuple[int, ...] = ()
    view: str = WHY
    scroll: int = 0


def moved(state: State, answer: Answer | None, by: int) -> State:
    last = len(answer.rows) - 1 if answer is not None else -1
    return replace(state, chosen=max(min(state.chosen + by, last), 0), scroll=0)


def chosen(state: State, row: int) -> State:
    return replace(state, chosen=row, scroll=0)


def turned(state: State, by: int) -> State:
    """The next view."""
    return replace(state, view=VIEWS[(VIEWS.index(state.view) + by) % len(VIEWS)], scroll=0)


def marked(state: State) -> State:
    """The chosen row marked or not any more; of more than a few the first gives way."""
    if state.chosen in state.marked:
        return replace(state, marked=tuple(row for row in state.marked if row != state.chosen))
    return replace(state, marked=(*state.marked, state.chosen)[-MOST_MARKED:])


def scrolled(state: State, by: int, lines: int, room: int) -> State:
    """The view scrolled, as far as it goes on."""
    return replace(state, scroll=max(min(state.scroll + by, lines - room), 0))


def renewed(state: State) -> State:
    """For a new answer: its first row, and the view that was looked at."""
    return State(view=state.view)
