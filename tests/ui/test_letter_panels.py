"""Panels that a letter leads to: their titles show it, they come after the others, and g groups their rows anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from meshscope.ui.marks.cited import Cell
from meshscope.ui.screens.board import panels

Staged = Callable[..., Any]
LETTERS = {"K": "kernels & operators", "P": "critical path", "I": "idle & launches"}


def test_titles_show_the_key_that_leads_there_and_no_two_share_one() -> None:
    for of in ("recording", "traces"):
        signs = [panel.sign for panel in panels(of)]
        assert len(set(signs)) == len(signs)
        assert {panel.sign: panel.title for panel in panels(of) if panel.key} == LETTERS


async def test_letters_lead_to_panels_that_come_after_the_others(folder: Path, staged: Staged) -> None:
    async with staged(folder, size=(120, 40)) as stage:
        for key, title in LETTERS.items():
            await stage.press("2")
            assert title not in stage.text()
            await stage.press(key)
            assert f"{key} {title} ━" in stage.text()
        await stage.press("9")
        names = []
        for _ in range(4):
            await stage.press("tab")
            names.append(stage.watch._focused)
        assert names == ["kernels", "path", "idle", "comparison"]
        await stage.press("I", "m")
        assert "critical path" not in stage.text()
        await stage.press("m", "e")
        assert stage.watch._cell == Cell("idle", 0)
        assert "idle of ddp, rank 0" in stage.line(-1)
        await stage.press("enter")
        assert "7.40 ms" in stage.text()
        await stage.press("escape", "escape", "question_mark")
        assert "K P I" in stage.text()
        assert "I idle & launches" in stage.text()


async def test_g_groups_and_arrows_choose_in_the_panel_that_has_the_focus_alone(folder: Path, staged: Staged) -> None:
    async with staged(folder, size=(120, 40)) as stage:

        def shows(row: str) -> bool:
            return any(row in line for line in stage.text().splitlines())

        await stage.press("K", "down", "down", "down")
        assert shows("▸aten::add_")
        assert stage.watch.selected == "ddp"
        await stage.press("I", "down")
        assert shows("▸   1")
        assert shows("▸aten::add_")
        assert stage.watch.counted("kernels") == 3
        await stage.press("1", "down")
        assert stage.watch.selected == "fsdp"
        await stage.press("K", "g")  # by name is all that this trace tells
        assert shows("▸aten::mm"), "another run begins with its first row"
        assert "by name" in stage.text()
