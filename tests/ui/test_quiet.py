"""What has not changed is not asked, not folded and not drawn: the cores belong to the run that is watched."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import made
import pytest

from meshscope.run import Gallery
from meshscope.ui.asking import BREATH_S
from meshscope.ui.canvas import Canvas
from meshscope.ui.scene import Scene, Stance
from meshscope.ui.screens.strategies import Strategies

Staged = Callable[..., contextlib.AbstractAsyncContextManager[Any]]
TICK_S = 0.02


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often a folder is folded and a widget drawn anew."""
    found: Counter[str] = Counter()

    def counting(owner: type, name: str) -> None:
        work = getattr(owner, name)

        def counted(*given: Any, **named: Any) -> Any:
            found[name] += 1
            return work(*given, **named)

        monkeypatch.setattr(owner, name, counted)

    counting(Gallery, "at")
    counting(Canvas, "refresh")
    return found


def ask_counted(stage: Any, done: Counter[str]) -> None:
    """Count the questions of every panel, by its name."""
    for view in stage.watch._views.values():
        panel = view.asking.panel

        def question(scene: Scene, panel: Any = panel) -> Any:
            done[f"question {panel.name}"] += 1
            return panel.question(scene)

        view.asking.panel = replace(panel, question=question)


def questions(done: Counter[str]) -> set[str]:
    return {name.removeprefix("question ") for name in done if name.startswith("question ")}


async def test_a_recording_that_stands_still_is_left_alone(folder: Path, staged: Staged, done: Counter[str]) -> None:
    async with staged(folder, fps=1 / TICK_S) as stage:
        ask_counted(stage, done)
        ticks = Counter[str]()
        tick = stage.watch._tick
        stage.watch._ticks.stop()
        stage.watch._tick = lambda: (ticks.update(["tick"]), tick())
        stage.watch.tick_at(1 / TICK_S)
        done.clear()
        await asyncio.sleep(20 * TICK_S)
        assert ticks["tick"] >= 5
        assert done == {}


@pytest.fixture
def live(tmp_path: Path) -> Path:
    """A run that has begun and writes nothing more for now."""
    folder = tmp_path / "run"
    made.write(folder, t0=time.time_ns() - 8 * made.S, started=1, endings={"ddp": made.Ending("", 20)}, steps=2000,
               is_over=False)  # fmt: skip
    return folder


async def test_a_live_clock_is_followed_no_faster_than_anybody_reads_and_alone_asks_nothing(
    live: Path, staged: Staged, done: Counter[str]
) -> None:
    async with staged(live, fps=1 / TICK_S, rests=False) as stage:
        async with asyncio.timeout(20):
            while not stage.watch.is_told or not stage.watch._has_seen:
                await asyncio.sleep(TICK_S)
        await asyncio.sleep(1.0)
        ask_counted(stage, done)
        done.clear()
        begun_s = time.monotonic()
        await asyncio.sleep(1.0)
        most = (time.monotonic() - begun_s) / BREATH_S + 1
        assert 1 <= done["at"] <= most, "fifty ticks a second, of which a few look"
        # No step for so many seconds is how a hang is seen.
        assert questions(done) <= {"findings"}, "nothing was written"
        assert done["question findings"] <= 1
        made.say(live / "ddp", time.time_ns(), "checkpoint written")
        async with asyncio.timeout(10):
            while "checkpoint written" not in stage.text():
                await asyncio.sleep(TICK_S)
        assert "log" in questions(done)


async def test_a_jump_of_the_clock_is_followed_at_once(folder: Path, staged: Staged, done: Counter[str]) -> None:
    async with staged(folder, fps=0.1) as stage:  # no tick comes to its help
        for key in ("home", "right", "right", "left"):
            done.clear()
            await stage.pilot.press(key)
            asked_ns = stage.playback.clock._anchor
            async with asyncio.timeout(10):
                while not 0 <= stage.watch.scene.stance.now_unix_ns - asked_ns < made.S:
                    await asyncio.sleep(0.001)
            assert done["at"]


async def test_a_board_that_is_covered_asks_nothing_and_is_up_to_date_when_it_is_seen_again(
    live: Path, staged: Staged, done: Counter[str]
) -> None:
    async with staged(live, fps=1 / TICK_S, rests=False) as stage:
        async with asyncio.timeout(20):
            while not stage.watch.is_told or not stage.watch._has_seen:
                await asyncio.sleep(TICK_S)
        await stage.pilot.press("c")
        assert isinstance(stage.app.screen, Strategies)
        await asyncio.sleep(0.2)  # what was asked before is answered
        ask_counted(stage, done)
        made.say(live / "ddp", time.time_ns(), "checkpoint written")
        async with asyncio.timeout(10):
            while not any("checkpoint" in log.text for run in stage.watch.scene.runs for log in run.logs):
                await asyncio.sleep(TICK_S)
        await asyncio.sleep(3 * BREATH_S)
        assert questions(done) <= {"comparison"}, "the screen over it follows the same scene, by a question of its own"
        await stage.pilot.press("escape")
        async with asyncio.timeout(10):
            while "checkpoint written" not in stage.text():
                await asyncio.sleep(TICK_S)


async def test_a_board_below_a_dialog_goes_on(live: Path, staged: Staged) -> None:
    async with staged(live, fps=1 / TICK_S, rests=False) as stage:
        await stage.pilot.press("question_mark")
        assert stage.app.screen is not stage.watch
        assert not stage.watch.is_covered


async def test_threads_end_with_the_screen_that_they_work_for(folder: Path, staged: Staged) -> None:
    def threads() -> int:
        return sum(thread.name.startswith("meshscope-") for thread in threading.enumerate())

    before = threads()
    async with staged(folder):
        assert threads() > before
    async with asyncio.timeout(10):
        while threads() > before:
            await asyncio.sleep(0.01)


def test_a_clock_goes_on_or_it_jumps() -> None:
    before = Stance(now_unix_ns=10, last_unix_ns=20, is_live=True)
    assert replace(before, now_unix_ns=15, last_unix_ns=25).goes_on_from(before)
    for jump in ({"is_live": False}, {"is_paused": True}, {"speed": 2.0}, {"is_at_end": True}):
        assert not replace(before, now_unix_ns=15, **jump).goes_on_from(before)
    held = replace(before, is_live=False, is_paused=True)
    assert not replace(held, now_unix_ns=15).goes_on_from(held), "where it is held only a key moves it"
