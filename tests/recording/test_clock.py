"""One clock for live, paused, wound back and replayed."""

from __future__ import annotations

from meshscope.recording.clock import Clock


class Wall:
    def __init__(self, now: int) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now


def test_a_following_clock_is_the_wall_until_the_end() -> None:
    wall = Wall(100)
    clock = Clock(wall=wall)
    assert clock.now() == 100
    wall.now = 500
    clock.end_unix_ns = 300
    assert clock.now() == 300
    assert clock.is_at_end


def test_a_replay_runs_at_its_speed_and_stops_at_the_end() -> None:
    wall = Wall(10_000)
    clock = Clock(wall=wall, speed=8, start_unix_ns=1_000, end_unix_ns=2_000)
    clock.seek(1_000)
    wall.now += 50
    assert clock.now() == 1_400
    wall.now += 1_000
    assert clock.now() == 2_000
    assert clock.is_at_end


def test_a_live_run_can_be_paused_wound_back_and_caught_up() -> None:
    wall = Wall(5_000)
    clock = Clock(wall=wall, start_unix_ns=1_000)
    clock.pause()
    wall.now = 6_000
    assert clock.now() == 5_000
    clock.seek(10)
    assert clock.now() == 1_000
    clock.resume()
    wall.now = 6_500
    assert clock.now() == 1_500
    clock.follow()
    assert clock.now() == 6_500


def test_no_clock_runs_ahead_of_the_wall() -> None:
    wall = Wall(5_000)
    clock = Clock(wall=wall, start_unix_ns=1_000)
    clock.run_at(4)
    wall.now = 5_010
    assert clock.now() == 5_010


def test_changing_speed_does_not_move() -> None:
    wall = Wall(9_000)
    clock = Clock(wall=wall, start_unix_ns=0, end_unix_ns=8_000)
    clock.seek(2_000)
    wall.now += 100
    clock.run_at(2)
    assert clock.now() == 2_100
    wall.now += 100
    assert clock.now() == 2_300
