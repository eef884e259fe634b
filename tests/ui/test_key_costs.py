"""What a key costs: what is known is painted before anything is asked, and nothing is asked or drawn twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from meshscope.ui.asking import Answered, Asking
from meshscope.ui.canvas import Canvas
from meshscope.ui.view import PanelView

Staged = Callable[..., Any]


@pytest.fixture
def happened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was painted, asked and drawn, in the order in which it was."""
    seen: list[str] = []
    paint, ask, draw = Canvas.render_line, Asking._answered, PanelView._draw

    def painted(canvas: Canvas, y: int) -> Any:
        seen.append("painted")
        return paint(canvas, y)

    def asked(asking: Asking, *question: Any) -> Answered:
        seen.append(f"asked {asking.panel.name}")
        return ask(asking, *question)

    def drawn(view: PanelView, *frame: Any) -> Any:
        seen.append(f"drew {view.panel.name}")
        return draw(view, *frame)

    monkeypatch.setattr(Canvas, "render_line", painted)
    monkeypatch.setattr(Asking, "_answered", asked)
    monkeypatch.setattr(PanelView, "_draw", drawn)
    return seen


async def test_a_key_paints_what_is_known_first_and_what_was_asked_is_not_asked_again(
    folder: Path, staged: Staged, happened: list[str]
) -> None:
    async with staged(folder) as stage:
        for keys in (("j", "k"), ("left", "right")):
            happened.clear()
            await stage.press(keys[0])
            asked = [number for number, what in enumerate(happened) if what.startswith("asked")]
            assert asked, keys
            assert "painted" in happened[: asked[0]], keys
            assert len({happened[number] for number in asked}) == len(asked), "each panel once"
            await stage.press(keys[1])
            happened.clear()
            await stage.press(*keys)
            assert set(happened) == {"painted"}, keys
