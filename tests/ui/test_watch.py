"""The watch screen: every key, and what it does to the clock, the selection and the focus."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import made
import msgspec
import pytest

from meshscope.recording.control import Ask, Asked
from meshscope.ui.header import height
from meshscope.ui.look import Depth, Look
from meshscope.ui.screens.dialog import Leaving
from meshscope.ui.screens.help import Help

Staged = Callable[..., Any]


def asks(folder: Path) -> list[Ask]:
    return Asked(folder).new()


async def test_the_leader_is_looked_at_once_everything_has_ended(folder: Path, staged: Staged) -> None:
    async with staged(folder) as stage:
        assert stage.watch.selected == "ddp"
        assert "ddp and pmap are level and lead" in stage.line(1)
        assert "■ ended" in stage.line(0)


@pytest.mark.parametrize(("keys", "selected"), [("down", "fsdp"), ("j", "fsdp"), ("up", "ddp")])
async def test_arrows_and_jk_choose_a_strategy_and_stop_at_the_ends(
    folder: Path, staged: Staged, keys: str, selected: str
) -> None:
    async with staged(folder) as stage:
        await stage.press(keys)
        assert stage.watch.selected == selected


async def test_panels_show_the_strategy_that_is_chosen(folder: Path, staged: Staged) -> None:
    async with staged(folder) as stage:
        assert "reduce_scatter" not in stage.text()
        await stage.press("down")
        assert "reduce_scatter" in stage.text()
        assert "▸✓ fsdp" in stage.text()


async def test_tab_goes_round_the_panels_and_numbers_go_straight_to_one(folder: Path, staged: Staged) -> None:
    async with staged(folder, size=(80, 24)) as stage:
        assert "2 where a step goes" in stage.text()
        await stage.press("tab", "tab", "tab")
        assert "5 memory by category" in stage.text()
        assert "2 where a step goes" not in stage.text()
        await stage.press("shift+tab", "shift+tab", "shift+tab")
        assert "2 where a step goes" in stage.text()
        await stage.press("7")
        assert "7 log" in stage.text()


@pytest.mark.parametrize("key", ["enter", "m"])
async def test_a_panel_is_maximised_and_brought_back(folder: Path, staged: Staged, key: str) -> None:
    async with staged(folder) as stage:
        await stage.press("5", key)
        assert "5 memory by category" in stage.text()
        assert "1 strategies" not in stage.text()
        await stage.press("escape")
        assert "1 strategies" in stage.text()


async def test_space_pauses_plays_and_at_the_end_plays_again(folder: Path, staged: Staged) -> None:
    async with staged(folder, at_ns=9 * made.S) as stage:
        assert "‖ paused   0:09 of 0:44" in stage.line(0)
        await stage.pilot.press("space")
        assert not stage.playback.clock.is_paused
        await stage.press("space")
        assert stage.playback.clock.is_paused
        await stage.press("end")
        assert "■ ended" in stage.line(0)
        await stage.pilot.press("space")
        assert stage.playback.clock.now() < stage.playback.clock.start_unix_ns + 5 * made.S


async def test_arrows_seek_and_shift_seeks_further(folder: Path, staged: Staged) -> None:
    async with staged(folder, at_ns=20 * made.S) as stage:
        begin = stage.playback.clock.start_unix_ns

        def at_s() -> int:
            return (stage.playback.clock.now() - begin) // made.S

        await stage.press("left")
        assert at_s() == 18
        await stage.press("right", "right")
        assert at_s() == 22
        await stage.press("shift+right")
        assert at_s() == 32
        await stage.press("shift+left")
        assert at_s() == 22
        await stage.press("home")
        assert at_s() == 0
        await stage.press("end")
        assert "■ ended" in stage.line(0)


async def test_seeking_back_shows_only_what_was_known_then(folder: Path, staged: Staged) -> None:
    async with staged(folder, at_ns=9 * made.S) as stage:
        lines = stage.text()
        assert "✓ ddp" in lines
        assert "waiting" in lines
        assert " lead" not in lines


async def test_speed_goes_up_and_down_in_steps_and_shows(folder: Path, staged: Staged) -> None:
    async with staged(folder, at_ns=1 * made.S) as stage:
        await stage.press("greater_than_sign", "greater_than_sign")
        assert stage.playback.clock.speed == 4.0
        await stage.press("less_than_sign")
        assert stage.playback.clock.speed == 2.0
        await stage.pilot.press("space")
        await stage.pilot.pause(0.1)
        assert "▶ ×2" in stage.line(0)


async def test_follow_goes_to_the_newest_and_lets_go_of_the_choice(folder: Path, staged: Staged) -> None:
    async with staged(folder, at_ns=9 * made.S) as stage:
        await stage.press("down", "down", "L")
        assert stage.watch.selected == "ddp"
        assert "■ ended" in stage.line(0)


async def test_profile_now_is_asked_of_a_live_run_and_of_no_other(tmp_path: Path, staged: Staged) -> None:
    now = time.time_ns()
    end = made.write(tmp_path / "run", t0=now, started=1, endings={"ddp": made.Ending("", 20)}, is_over=False)
    async with staged(tmp_path / "run", wall=lambda: end) as stage:
        assert "● live" in stage.line(0)
        assert "p profile now" in stage.text()
        await stage.press("p")
        assert [(ask.what, ask.reason) for ask in asks(tmp_path / "run")] == [("profile", "key")]
        assert "Asked every rank" in stage.text()


async def test_a_run_that_has_ended_offers_no_profile(folder: Path, staged: Staged) -> None:
    async with staged(folder) as stage:
        assert "profile now" not in stage.text()
        await stage.press("p")
        assert asks(folder) == []
        assert "This is a recording: there is nothing to profile." in stage.text()


@pytest.mark.parametrize("size", [(120, 40), (220, 60)])
async def test_a_notice_leaves_the_rail_and_goes_by_itself_while_a_recording_plays(
    folder: Path, staged: Staged, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    async with staged(folder, size=size, at_ns=9 * made.S) as stage:
        await stage.pilot.press("space", "p")
        assert not stage.playback.clock.is_paused
        assert "nothing to profile" in stage.text()
        assert "●" in stage.line(height(size[0]) - 1)
        monkeypatch.setattr("meshscope.ui.screens.board._SAID_NS", 0)
        await stage.pilot.pause(0.2)
        assert "nothing to profile" not in stage.text()


@pytest.mark.parametrize("key", ["question_mark", "f1"])
async def test_help_tells_every_key_and_what_the_textures_mean(folder: Path, staged: Staged, key: str) -> None:
    async with staged(folder) as stage:
        await stage.press(key)
        assert isinstance(stage.app.screen, Help)
        assert "░░░  exposed" in stage.text()
        await stage.press("escape")
        assert not isinstance(stage.app.screen, Help)


async def test_help_in_ascii_tells_seeking_from_speed_and_offers_the_palette(folder: Path, staged: Staged) -> None:
    async with staged(folder, look=Look(is_ascii=True, depth=Depth.NONE)) as stage:
        assert "left/right seek" in stage.text()
        await stage.press("question_mark")
        shown = stage.text()
        assert "left/right      seek (h l too); with shift" in shown
        assert "space  < >      pause, go on, at the end again; slower, faster" in shown
        assert "ctrl+p" in shown
        assert shown.isascii()


@pytest.mark.parametrize("key", ["q", "ctrl+c", "ctrl+q"])
async def test_leaving_a_recording_asks_nothing_and_keeps_one_line(folder: Path, staged: Staged, key: str) -> None:
    async with staged(folder) as stage:
        await stage.pilot.press(key)
        await stage.pilot.pause()
        line = stage.app.return_value or ""
    assert line.startswith("ddp and pmap are level and lead")
    assert line.endswith(f"Recorded in {folder}")
    assert "\n" not in line


@pytest.fixture
def live(tmp_path: Path) -> tuple[Path, int]:
    """A run in the middle of its first strategy, and the wall at its newest entry."""
    folder = tmp_path / "run"
    end = made.write(folder, t0=made.T0, started=1, endings={"ddp": made.Ending("", 20)}, is_over=False)
    return folder, end


async def test_leaving_a_live_run_asks_and_can_be_taken_back(live: tuple[Path, int], staged: Staged) -> None:
    folder, end = live
    async with staged(folder, wall=lambda: end) as stage:
        await stage.press("q")
        assert isinstance(stage.app.screen, Leaving)
        await stage.press("c")
        assert not isinstance(stage.app.screen, Leaving)
        assert stage.app.is_running
        assert asks(folder) == []


async def test_a_live_run_can_be_left_running(live: tuple[Path, int], staged: Staged) -> None:
    folder, end = live
    async with staged(folder, wall=lambda: end) as stage:
        await stage.press("q", "l")
        line = stage.app.return_value or ""
    assert f"Still running: meshscope watch {folder}" in line
    assert asks(folder) == []


@pytest.mark.parametrize("keys", [("q", "s"), ("q", "down", "enter"), ("ctrl+c", "ctrl+c")])
async def test_a_live_run_can_be_stopped_and_is_left_when_it_has_ended(
    live: tuple[Path, int], staged: Staged, keys: tuple[str, ...]
) -> None:
    folder, end = live
    wall = [end]
    async with staged(folder, wall=lambda: wall[0]) as stage:
        for key in keys:
            await stage.pilot.press(key)
        await stage.pilot.pause()
        assert [ask.what for ask in asks(folder)] == ["stop"]
        assert "Stopping" in stage.text()
        made.stop(folder)
        wall[0] += 2 * made.S
        await stage.pilot.pause(1.0)
        line = stage.app.return_value or ""
    assert line.endswith(f"Recorded in {folder}")


async def test_the_question_goes_when_the_run_ends_by_itself(live: tuple[Path, int], staged: Staged) -> None:
    folder, end = live
    wall = [end]
    async with staged(folder, wall=lambda: wall[0]) as stage:
        await stage.press("q")
        assert isinstance(stage.app.screen, Leaving)
        made.stop(folder)
        wall[0] += 2 * made.S
        await stage.pilot.pause(1.0)
        assert not isinstance(stage.app.screen, Leaving)
        assert stage.app.is_running
        assert "The run has ended; q leaves." in stage.text()


async def test_the_log_scrolls_back_and_forth(folder: Path, staged: Staged) -> None:
    async with staged(folder, size=(80, 24)) as stage:
        await stage.press("7")
        newest = stage.text()
        assert "done" in newest
        await stage.press("pageup")
        assert "done" not in stage.text()
        await stage.press("pagedown")
        assert stage.text() == newest


async def test_a_click_focuses_a_panel_or_chooses_a_strategy(folder: Path, staged: Staged) -> None:
    async with staged(folder) as stage:
        await stage.pilot.click("#memory")
        await stage.rest()
        assert stage.watch._focused == "memory"
        await stage.pilot.click("#comparison", offset=(6, 4))
        await stage.rest()
        assert stage.watch.selected == "pmap"


async def test_ctrl_l_draws_everything_again(folder: Path, staged: Staged) -> None:
    async with staged(folder) as stage:
        before = stage.text()
        await stage.press("ctrl+l")
        assert stage.text() == before


async def test_the_command_palette_opens_and_closes(folder: Path, staged: Staged) -> None:
    async with staged(folder) as stage:
        await stage.pilot.press("ctrl+p")
        await stage.pilot.pause(0.3)
        assert "Picture" in stage.text()
        await stage.pilot.press("escape")
        await stage.rest()
        assert "Picture" not in stage.text()


async def test_a_strategy_that_failed_says_why_and_the_others_are_still_compared(
    tmp_path: Path, staged: Staged
) -> None:
    made.write(tmp_path / "run", endings={"fsdp": made.Ending("failed", 6)})
    async with staged(tmp_path / "run") as stage:
        await stage.press("down")
        lines = stage.text()
        assert "✗ fsdp" in lines
        assert "rank 2 was killed by SIGKILL at step 5" in lines
        await stage.press("7", "enter")
        lines = stage.text()
        assert "rank 2 ended with -9: killed by SIGKILL" in lines
        assert "step 5 loss 7.04" in lines


async def test_a_folder_that_becomes_unreadable_is_told_in_two_lines_and_no_traceback(
    folder: Path, staged: Staged
) -> None:
    async with staged(folder, at_ns=9 * made.S) as stage:
        for head in folder.glob("*/experiment.json"):
            head.write_bytes(msgspec.json.encode({"format": 99}))
        stage.playback._reel._readers.clear()
        await stage.pilot.press("right")
        await stage.pilot.pause(0.3)
        failure = stage.app.failure
    assert failure is not None
    assert "format 99" in failure.message
    assert failure.hint
