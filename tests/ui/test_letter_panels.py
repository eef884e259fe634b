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


async def test_g_groups_and_arrows_choose_in_the_panel_that_has_the_focus_alone(folder: Path, staged: Staged) -> None:
    async with staged(folder, size=(120, 40)) as stage:
        await stage.press("K", "down", "down", "down")
        assert any("▸aten::add_" in line for line in stage.text().splitlines())
        assert stage.watch.selected == "ddp"
        await stage.press("I", "down")
        assert any("▸   1" in line for line in stage.text().splitlines())
        assert any("▸aten::add_" in line for line in stage.text().splitlines())
        assert stage.watch.counted("kernels") == 3
        await stage.press("1", "down")
        assert stage.watch.selected == "fsdp"
        await stage.press("K")
        assert any("▸aten::mm" in line for line in stage.text().splitlines()), "another run begins with its first row"
        await stage.press("g")  # by name is all that this trace tells
        assert "by name" in stage.text()


async def test_idle_time_can_be_explained(folder: Path, staged: Staged) -> None:
    async with staged(folder, size=(120, 40)) as stage:
        await stage.press("I", "e")
        assert stage.watch._cell == Cell("idle", 0)
        assert "idle of ddp, rank 0" in stage.line(-1)
        await stage.press("right", "enter")
        assert "7.40 ms" in stage.text()


async def test_what_no_digit_leads_to_stands_in_the_help(folder: Path, staged: Staged) -> None:
    async with staged(folder, size=(80, 24)) as stage:
        await stage.press("question_mark")
        assert "K P I; in K, g groups" in stage.text()
