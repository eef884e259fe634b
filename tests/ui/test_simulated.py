"""A simulated recording on the screen: no part of it can be taken for what was measured."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import planned
import pytest

from meshscope.advisor.simulated import write
from meshscope.ui.exporting import Subject, as_json, file_name
from meshscope.ui.sheet import Sheet
from meshscope.ui.shelf import shelf

NOW_UNIX_NS = 1_796_000_000_000_000_000

Staged = Callable[..., AbstractAsyncContextManager]  # type: ignore[type-arg]


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    write(tmp_path / "plan", [planned.simulated("ddp"), planned.simulated("fsdp")], now_unix_ns=NOW_UNIX_NS)
    return tmp_path / "plan"


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (220, 60)])
async def test_every_title_says_that_it_is_simulated(staged: Staged, plan: Path, size: tuple[int, int]) -> None:
    async with staged(plan, size=size) as stage:
        head, verdict = stage.line(0), stage.line(1)
        assert "simulated · 1.3b" in head
        assert verdict.strip().startswith("Simulated, not measured: ")
        titles = [line for line in stage.text().splitlines()[3:] if "──" in line or "━━" in line]
        assert titles
        for line in titles:
            panels = [part for part in line.replace("━", "─").split("─") if part.strip() and part.strip()[0].isdigit()]
            assert all("simulated · " in part for part in panels), line


async def test_the_screens_of_strategies_and_lanes_say_so(staged: Staged, plan: Path) -> None:
    async with staged(plan) as stage:
        await stage.press("c")
        assert "simulated · 1.3b" in stage.line(0)
        assert "Simulated, not measured: " in stage.line(1)
        await stage.press("escape", "t")
        assert "fsdp simulated" in stage.line(0) or "ddp simulated" in stage.line(0)


async def test_what_is_exported_says_so_in_its_name_and_content(staged: Staged, plan: Path, tmp_path: Path) -> None:
    async with staged(plan) as stage:
        assert stage.watch.scene.mark == stage.watch.scene.overall_mark == "simulated"
    subject = Subject("split", "where a step goes", "", mark="simulated", caveat="simulated")
    assert file_name(subject, "csv", 0.0).startswith("meshscope-split-all-simulated-")
    assert file_name(Subject("split", "t", "ddp simulated", mark="simulated"), "csv", 0.0).count("simulated") == 1
    assert json.loads(as_json(Sheet(("a",), ((1,),)), subject))["caveat"] == "simulated"


def test_the_shelf_tells_drawn_recordings_from_real_ones(plan: Path) -> None:
    (found,) = (one for one in shelf((plan.parent,)) if not one.is_bundled)
    assert found.is_simulated
    assert found.strategies == ("ddp simulated", "fsdp simulated")
    (alone,) = (one for one in shelf((plan / "ddp-simulated",)) if not one.is_bundled)
    assert alone.is_simulated
