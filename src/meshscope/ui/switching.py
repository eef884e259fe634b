"""What can be switched while screens are shown: the look, and how often they look at the clock; and who is told."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol, runtime_checkable

from meshscope.ui.look import Look

FPS = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)


@runtime_checkable
class Wearing(Protocol):
    """A screen that can be drawn in another look."""

    def wear(self, look: Look) -> None: ...


@runtime_checkable
class Ticking(Protocol):
    """A screen that looks at the clock so many times a second."""

    def tick_at(self, fps: float) -> None: ...


def turned(look: Look) -> Look:
    """Light instead of dark, or dark instead of light."""
    return replace(look, is_dark=not look.is_dark)


def respelt(look: Look) -> Look:
    """Drawn in ASCII instead of block characters, or the other way round."""
    return replace(look, is_ascii=not look.is_ascii)


def stepped(fps: float, by: int) -> float:
    """The next of FPS above (``by`` 1) or below (−1)."""
    near = min(range(len(FPS)), key=lambda at: abs(FPS[at] - fps))
    return FPS[min(max(near + by, 0), len(FPS) - 1)]
