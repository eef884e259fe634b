"""The line of keys: what ↑↓ choose, what enter does, and what is left out first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import made
import pytest
from rich.cells import cell_len

from meshscope.ui import header, progress
from meshscope.ui.keybar import Grip, pointed_at
from meshscope.ui.marks.cited import Cell
from meshscope.ui.panels.kernels import PANEL as KERNELS
from meshscope.ui.panels.kernels import Grouping, Kernels
from meshscope.ui.scene import Stance

Staged = Callable[..., Any]


def watching(width: int, grip: Grip) -> str:
    return "".join(text for text, _ in header.footer(Stance(), width, is_running=True, is_small=False, grip=grip))


def tracing(width: int, grip: Grip, runs: int) -> str:
    return "".join(text for text, _ in progress.footer(width, runs=runs, is_small=False, grip=grip))


@pytest.mark.parametrize("width", [80, 120, 220])
def test_the_arrows_are_told_by_what_they_choose(width: int) -> None:
    assert "↑↓ finding" in watching(width, Grip("finding"))
    assert "↑↓ strategy" not in watching(width, Grip("finding"))
    assert "↑↓ kernel" in tracing(width, Grip("kernel"), 1)


def test_another_strategy_has_keys_of_its_own_only_where_the_arrows_do_not_choose_it() -> None:
    assert "↑↓ strategy" in watching(220, Grip())
    assert "[]" not in watching(220, Grip())
    assert "[] strategy" in watching(220, Grip("rank"))
    assert "[] run" in tracing(220, Grip("rank"), 2)
    assert "[]" not in tracing(220, Grip("rank"), 1)


@pytest.mark.parametrize("width", [80, 120, 220])
def test_enter_leads_back_from_a_panel_that_stands_alone(width: int) -> None:
    for shown in (watching(width, Grip(is_maximised=True)), tracing(width, Grip(is_maximised=True), 2)):
        assert "enter back" in shown
        assert "maximise" not in shown


CURSOR = (("↑↓ ←→", "number"), ("enter", "explain"), ("tab", "panel"), ("esc", "done"))
ROW = tuple(f"kernels.ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_tn.{what}"
            for what in ("self.per_step", "share", "count", "median"))  # fmt: skip


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("run", ["ddp", "a-run-with-a-very-long-name-of-its-own"])
def test_numbers_of_a_row_are_told_apart_however_long_their_names_are(width: int, run: str) -> None:
    told = ["".join(text for text, _ in pointed_at(CURSOR, Cell(number, rank=3), run, width)) for number in ROW]
    assert len(set(told)) == len(ROW)
    assert all(cell_len(line) <= width for line in told)
    if width >= 80:
        assert all(line.endswith(", rank 3") for line in told)


def test_a_name_that_fits_stands_whole_and_keys_leave_before_it_is_cut() -> None:
    whole = "".join(text for text, _ in pointed_at(CURSOR, Cell("step_time.p95"), "fsdp", 80))
    assert whole == " ↑↓ ←→ number  enter explain  tab panel  esc done  step_time.p95 of fsdp"
    longer = "".join(text for text, _ in pointed_at(CURSOR, Cell("by_kind.all_gather.exposed"), "fsdp", 80))
    assert longer.endswith("esc done  by_kind.all_gather.exposed of fsdp")
    assert "…" not in longer


@pytest.mark.parametrize(("by", "said"), [("name", "kernel"), ("module", "module"), ("phase", "phase")])
def test_what_is_chosen_among_kernels_goes_by_how_they_are_grouped(by: str, said: str) -> None:
    grouped = Grouping(by, by, (), 1.0, is_stepped=True)
    assert KERNELS.chooses(Kernels((grouped,))) == said


async def test_the_title_says_whose_a_panel_is_where_nothing_else_does(folder: Path, staged: Staged) -> None:
    async with staged(folder, at_ns=20 * made.S) as stage:
        assert "5 memory by category, per rank ─" in stage.text()
        await stage.press("5", "m")
        assert "5 memory by category, per rank · fsdp ━" in stage.text()
        assert "enter back" in stage.text()
        await stage.press("right_square_bracket")
        assert "5 memory by category, per rank · pmap ━" in stage.text()
        await stage.press("escape")
        assert "per rank ·" not in stage.text()
        await stage.press("1", "m")
        assert "1 strategies ━" in stage.text()


async def test_the_footer_says_what_is_chosen_within_the_panel_that_has_the_focus(folder: Path, staged: Staged) -> None:
    async with staged(folder, at_ns=20 * made.S) as stage:
        assert "↑↓ strategy" in stage.text()
        await stage.press("K")
        assert "↑↓ kernel" in stage.text()
        await stage.press("I")
        assert "↑↓ rank" in stage.text()


async def test_the_page_says_that_it_is_one_and_the_help_of_a_board_needs_no_scrolling(
    folder: Path, staged: Staged
) -> None:
    async with staged(folder, at_ns=20 * made.S, size=(120, 40)) as stage:
        await stage.press("question_mark")
        assert "lines 1" not in stage.text()
        await stage.press("escape")
        await stage.pilot.resize_terminal(80, 24)
        await stage.rest()
        assert "─ page 1 of 7" in stage.text()
