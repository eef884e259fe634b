"""Parts are made once per window, or round of windows, and kept: a live screen and a seek pay for what is new only."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from typing import TypeVar
from weakref import WeakKeyDictionary, ref

from meshscope.experiment import Experiment
from meshscope.run import Run
from meshscope.samples import StepTable
from meshscope.spans import Window

Part = TypeVar("Part")


Asked = TypeVar("Asked", Window, Run, StepTable)


def per_window(measure: Callable[[Asked], Part]) -> Callable[[Asked], Part]:
    """``measure``, remembering its answer for as long as what it was asked of lives, which is told by identity."""
    known: WeakKeyDictionary[Asked, Part] = WeakKeyDictionary()

    @wraps(measure)
    def remembered(asked: Asked) -> Part:
        if asked not in known:  # None is an answer too
            known[asked] = measure(asked)
        return known[asked]

    return remembered


per_run = per_table = per_window
"""The same for a question to a run, or to its steps, on which several others rest."""


First = TypeVar("First", bound=Hashable)
Second = TypeVar("Second", bound=Hashable)


def per_pair(measure: Callable[[First, Second], Part]) -> Callable[[First, Second], Part]:
    """The same for a question to two things at once: the answer is kept for each first, while the second is equal."""
    known: WeakKeyDictionary[First, tuple[Second, Part]] = WeakKeyDictionary()

    @wraps(measure)
    def remembered(first: First, second: Second) -> Part:
        kept = known.get(first)
        if kept is None or kept[0] != second:
            kept = known[first] = (second, measure(first, second))
        return kept[1]

    return remembered


def per_round(measure: Callable[[tuple[Window, ...], int], Part]) -> Callable[[tuple[Window, ...], int], Part]:
    """``measure`` of some windows and a number, remembering its answer for as long as the first window lives.

    One answer is kept for each first window: a round that has grown by a window is measured again.
    """
    known: WeakKeyDictionary[Window, tuple[tuple[ref[Window], ...], int, Part]] = WeakKeyDictionary()

    @wraps(measure)
    def remembered(windows: tuple[Window, ...], number: int) -> Part:
        kept = known.get(windows[0])
        if kept is not None and kept[1] == number and _are(kept[0], windows):
            return kept[2]
        part = measure(windows, number)
        known[windows[0]] = (tuple(ref(window) for window in windows), number, part)
        return part

    return remembered


def per_windows(measure: Callable[[Run], Part]) -> Callable[[Run], Part]:
    """The same for a question to a run that its windows alone answer: a run of the same ones is not asked again."""
    known: WeakKeyDictionary[Window, tuple[tuple[ref[Window], ...], Experiment, Part]] = WeakKeyDictionary()

    @wraps(measure)
    def remembered(run: Run) -> Part:
        kept = known.get(run.windows[0]) if run.windows else None
        if kept is not None and _are(kept[0], run.windows) and kept[1] == run.experiment:
            return kept[2]
        part = measure(run)
        if run.windows:
            known[run.windows[0]] = (tuple(ref(window) for window in run.windows), run.experiment, part)
        return part

    return remembered


def _are(kept: tuple[ref[Window], ...], windows: tuple[Window, ...]) -> bool:
    return len(kept) == len(windows) and all(one() is window for one, window in zip(kept, windows, strict=True))
