"""Which windows cover the same stretch of a run."""

from __future__ import annotations

from dataclasses import replace

from meeting import run_of, window

from meshscope.analysis.rounds import rounds
from meshscope.spans import Window


def at(rank: int, start_ns: int, *steps: int) -> Window:
    return replace(window(rank, [start_ns], [start_ns + 100]), steps=tuple(steps))


def told(*windows: Window) -> list[list[tuple[int, int]]]:
    return [[(one.rank, one.start_ns) for one in members] for members in rounds(run_of(windows))]


def test_one_window_of_each_rank_is_one_round_whatever_the_clocks_say() -> None:
    assert told(at(1, 9_000_000_000), at(0, 0)) == [[(0, 0), (1, 9_000_000_000)]]


def test_windows_that_share_a_step_are_one_round() -> None:
    windows = [at(0, 0, 4, 5), at(1, 900, 5), at(0, 1000, 9), at(1, 5000, 9)]
    assert told(*windows) == [[(0, 0), (1, 900)], [(0, 1000), (1, 5000)]]


def test_windows_without_steps_join_the_round_that_they_overlap_most() -> None:
    windows = [at(0, 0, 4), at(1, 20, 4), at(0, 500, 9), at(1, 530)]
    assert told(*windows) == [[(0, 0), (1, 20)], [(0, 500), (1, 530)]]


def test_a_rank_has_one_window_in_a_round() -> None:
    assert told(at(0, 0), at(0, 50), at(1, 60)) == [[(0, 0)], [(0, 50), (1, 60)]]


def test_windows_without_device_work_are_in_no_round() -> None:
    assert told(replace(at(0, 0), device_kind="none")) == []
    assert rounds(run_of([])) == ()
