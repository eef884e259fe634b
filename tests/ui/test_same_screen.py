"""A live screen at its end and a replay of the same folder at its end are the same, to the cell."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import made
import pytest

from meshscope.ui.picture import cells

Staged = Callable[..., Any]
SIZES = [(80, 24), (120, 40), (220, 60)]


def grow(source: Path, target: Path) -> None:
    """Append to ``target`` what ``source`` has and it has not, as writers do."""
    for path in sorted(source.rglob("*")):
        copy = target / path.relative_to(source)
        if path.is_dir():
            copy.mkdir(parents=True, exist_ok=True)
        elif path.suffix == ".jsonl" and copy.exists():
            with copy.open("ab") as file:
                file.write(path.read_bytes()[copy.stat().st_size :])
        else:
            shutil.copyfile(path, copy)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("strategies", [made.FOUR, made.SIX])
async def test_a_live_screen_at_its_end_is_the_replay_at_its_end(
    tmp_path: Path, staged: Staged, size: tuple[int, int], strategies: tuple[str, ...]
) -> None:
    whole, live = tmp_path / "whole" / "run", tmp_path / "live" / "run"
    end = made.write(whole, strategies)
    half = made.write(live, strategies, started=2, endings={"fsdp": made.Ending("", 30)}, is_over=False)

    wall = [half]
    async with staged(live, size=size, wall=lambda: wall[0]) as stage:
        assert "● live" in stage.line(0)
        grow(whole, live)
        wall[0] = end + 20 * made.S
        await stage.rest()
        at_end = stage.text(), [[(s.text, s.style) for s in line] for line in cells(stage.app)]

    async with staged(live, size=size, at_ns=5 * made.S, wall=lambda: end + 10**9 * made.S) as stage:
        await stage.press("greater_than_sign", "space", "end")
        replayed = stage.text(), [[(s.text, s.style) for s in line] for line in cells(stage.app)]

    assert at_end[0] == replayed[0]
    assert at_end[1] == replayed[1]
    assert "live" not in at_end[0]
    assert "×" not in at_end[0].splitlines()[0].partition("■")[2]


async def test_an_entry_that_arrives_after_the_last_one_is_still_seen(tmp_path: Path, staged: Staged) -> None:
    folder = tmp_path / "run"
    end = made.write(folder)
    wall = [end + made.S]
    async with staged(folder, wall=lambda: wall[0]) as stage:
        made.say(folder / "pjit", end, "a straggler's last words")
        wall[0] += 2 * made.S
        await stage.rest()
        await stage.press("down", "down", "down", "7")
        assert "a straggler's last words" in stage.text()
