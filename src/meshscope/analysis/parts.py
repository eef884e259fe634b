"""Parts are made once per window and kept: a live screen, a seek and a thousand ranks pay for what is new only."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

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
