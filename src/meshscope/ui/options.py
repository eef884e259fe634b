"""How the screens behave."""

from __future__ import annotations

from dataclasses import dataclass, field

from meshscope.ui.look import USUAL, Look
from meshscope.ui.remembered import Memory


@dataclass(frozen=True)
class Options:
    """Their look, the mouse, how often they look at the clock (per second).

    ``speed`` is how much faster than it was a recording plays that is picked on the start screen; ``memory`` is what
    was chosen on earlier screens.
    """

    look: Look = USUAL
    has_mouse: bool = True
    fps: float = 4.0
    speed: float = 8.0
    memory: Memory = field(default_factory=Memory)
