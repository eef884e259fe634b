"""Live and replay are one path with different clocks."""

from __future__ import annotations

import re
from pathlib import Path

import made
import pytest

from meshscope.errors import RecordingError
from meshscope.recording.clock import Clock
from meshscope.run import SILENCE_NS, Gallery
from meshscope.ui.header import lines
from meshscope.ui.playback import SPEEDS, Playback


class Wall:
    """A wall clock that stands still until it is moved."""

    def __init__(self, unix_ns: int) -> None:
        self.unix_ns = unix_ns

    def __call__(self) -> int:
        return self.unix_ns


def playback(folder: Path, wall: Wall) -> Playback:
    return Playback(folder, Gallery(folder, wall=wall), Clock(wall=wall))


@pytest.fixture
def ended(tmp_path: Path) -> tuple[Path, int]:
    folder = tmp_path / "run"
    return folder, made.write(folder)


@pytest.fixture
def live(tmp_path: Path) -> tuple[Path, int]:
    folder = tmp_path / "run"
    return folder, made.write(folder, started=2, endings={"fsdp": made.Ending("", 30)}, is_over=False)


def test_a_live_run_follows_the_wall(live: tuple[Path, int]) -> None:
    folder, end = live
    wall = Wall(end)
    found = playback(folder, wall)
    assert found.stance().is_live
    wall.unix_ns += 3 * made.S
    assert found.stance().now_unix_ns == wall.unix_ns
    assert found.is_running


def test_a_recording_that_has_ended_is_held_at_its_end(ended: tuple[Path, int]) -> None:
    folder, end = ended
    found = playback(folder, Wall(end + 1000 * made.S))
    assert found.stance().is_at_end
    assert found.stance().now_unix_ns == end
    assert not found.is_running
    assert [stretch.strategy for stretch in found.stretches] == list(made.FOUR)


def test_the_end_is_noticed_while_watching(live: tuple[Path, int]) -> None:
    folder, end = live
    wall = Wall(end)
    found = playback(folder, wall)
    made.stop(folder)
    wall.unix_ns += 2 * made.S
    scene = found.scene()
    assert scene.stance.is_at_end
    assert all(run.ended is not None for run in scene.runs)


def test_the_clock_of_a_run_that_is_stopped_never_runs_back(live: tuple[Path, int]) -> None:
    """Its end lies before the look that finds it, here in another second than the look before that."""
    folder, end = live
    wall = Wall(end + made.S - end % made.S + 900_000_000)
    found = playback(folder, wall)

    def clock() -> str:
        title = "".join(text for text, _ in lines(found.scene(), None, (), 120)[0])
        return str(re.search(r"\d+:\d\d", title)[0])  # type: ignore[index]

    seen = [clock()]
    made.stop(folder, wall.unix_ns + 50_000_000)
    for later_ns in (300_000_000, 300_000_000, 900_000_000):
        wall.unix_ns += later_ns
        found.stance()
        seen.append(clock())
    assert not found.is_running
    assert seen == sorted(seen)
    assert seen[-1] == seen[0]


def test_a_run_whose_writers_fell_silent_ends_where_that_became_certain(live: tuple[Path, int]) -> None:
    folder, end = live
    wall = Wall(end + SILENCE_NS // 2)
    assert playback(folder, wall).is_running
    wall.unix_ns = end + 100 * made.S
    found = playback(folder, wall)
    assert not found.is_running
    assert found.scene().runs[-1].is_lost


def test_a_paused_live_run_stands_still_and_follows_again_when_asked(live: tuple[Path, int]) -> None:
    folder, end = live
    wall = Wall(end)
    found = playback(folder, wall)
    found.toggle()
    wall.unix_ns += 10 * made.S
    stance = found.stance()
    assert stance.is_paused
    assert not stance.is_live
    assert stance.now_unix_ns == end
    found.to_end()
    assert found.stance().is_live


def test_playing_up_to_the_wall_becomes_live(live: tuple[Path, int]) -> None:
    folder, end = live
    wall = Wall(end)
    found = playback(folder, wall)
    found.clock.speed = 8.0
    found.seek_by(-5)
    assert not found.stance().is_live
    wall.unix_ns += 30 * made.S
    assert found.stance().is_live


def test_seeking_stays_within_the_recording(ended: tuple[Path, int]) -> None:
    folder, end = ended
    found = playback(folder, Wall(end + 1000 * made.S))
    found.seek_by(-1000)
    assert found.clock.now() == found.clock.start_unix_ns
    found.seek_by(1000)
    assert found.stance().is_at_end


def test_back_from_the_end_the_clock_is_held_until_it_is_let_go(ended: tuple[Path, int]) -> None:
    folder, end = ended
    wall = Wall(end + 1000 * made.S)
    found = playback(folder, wall)
    found.seek_by(-1)
    wall.unix_ns += 60 * made.S
    assert found.stance().is_paused
    assert end - found.clock.now() == pytest.approx(2 * made.S, rel=0.01)
    found.seek_by(-1)
    assert end - found.clock.now() == pytest.approx(4 * made.S, rel=0.01)
    found.toggle()
    wall.unix_ns += made.S
    assert end - found.clock.now() == pytest.approx(3 * made.S, rel=0.01)


def test_the_end_plays_again_from_the_beginning(ended: tuple[Path, int]) -> None:
    folder, end = ended
    found = playback(folder, Wall(end + 1000 * made.S))
    found.toggle()
    assert found.clock.now() == found.clock.start_unix_ns
    assert not found.clock.is_paused


def test_speed_stays_within_its_steps_and_nobody_is_faster_than_the_wall(live: tuple[Path, int]) -> None:
    folder, end = live
    found = playback(folder, Wall(end))
    found.faster(1)
    assert found.stance().is_live
    found.seek_by(-1)
    for _ in range(20):
        found.faster(1)
    assert found.clock.speed == SPEEDS[-1]
    for _ in range(20):
        found.faster(-1)
    assert found.clock.speed == SPEEDS[0]


def test_a_folder_without_a_recording_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordingError):
        Gallery(tmp_path)
