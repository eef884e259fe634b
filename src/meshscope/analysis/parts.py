"""Parts are made once per window, or round of windows, and kept: a live screen and a seek pay for what is new only."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from weakref import WeakKeyDictionary, ref

from meshscope.run import Run
from meshscope.spans import Window

Part = TypeVar("Part")


def per_window(measure: Callable[[Window], Part]) -> Callable[[Window], Part]:
    """``measure``, remembering its answer for as long as the window lives. Windows are told apart by identity."""
    known: WeakKeyDictionary[Window, Part] = WeakKeyDictionary()

    @wraps(measure)
    def remembered(window: Window) -> Part:
        part = known.get(window)
        if part is None:
            part = known[window] = measure(window)
        return part

    return remembered


def per_run(question: Callable[[Run], Part]) -> Callable[[Run], Part]:
    """``question``, remembering its answer for as long as the run lives: several others rest on it."""
    known: WeakKeyDictionary[Run, Part] = WeakKeyDictionary()

    @wraps(question)
    def remembered(run: Run) -> Part:
        answer = known.get(run)
        if answer is None:
            answer = known[run] = question(run)
        return answer

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


def _are(kept: tuple[ref[Window], ...], windows: tuple[Window, ...]) -> bool:
    return len(kept) == len(windows) and all(one() is window for one, window in zip(kept, windows, strict=True))
