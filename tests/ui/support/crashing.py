"""meshscope with a bug in it: drawing a panel raises once there is an answer to draw. ``crashing.py ARGUMENTS…``"""

from __future__ import annotations

from typing import Any

from textual.strip import Strip

from meshscope.cli import main
from meshscope.ui.view import PanelView

_drawn = PanelView._draw


def _draw(self: PanelView, answered: Any, frame: Any) -> list[Strip]:
    if answered is not None:
        raise RuntimeError("this is a bug")
    return _drawn(self, answered, frame)


PanelView._draw = _draw  # type: ignore[method-assign]

if __name__ == "__main__":
    main()
