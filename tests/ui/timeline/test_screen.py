"""The timeline on the screen: what is drawn, at every size, for every state that a run can be in."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import drawn
import numpy as np
import pytest
from meeting import met, run_of
from staged_timeline import linked, shown, subject

from meshscope.recording import bookmarks
from meshscope.run import Run
from meshscope.ui.commanding import Saying
from meshscope.ui.look import Depth, Look
from meshscope.ui.timeline.beginning import begun
from meshscope.ui.timeline.frame import Extent, Subject, frame
from meshscope.ui.timeline.viewport import whole

PICTURE = """
0 compute     ##########......########....
0 all_reduce  ......########......####....
0 copy        ..........................##
0 host        ############................
0 step        aaaaaaaaaaaaaabbbbbbbbbbbbbb
1 compute     ####............########....
1 all_reduce  ..........####....######....
1 step        aaaaaaaaaaaaaabbbbbbbbbbbbbb
"""
HOSTILE = "\x1b[31m[bold]\u202eevil\u0301 \u05d0\u05d1" + "漢" * 5000


def pictured(**about: Any) -> Run:
    return drawn.timeline(PICTURE, **about)


@cache
def many_ranks(count: int) -> Run:
    """Each comes a little later than the one before."""
    arrival_ns = np.arange(count, dtype=np.int64)[:, None] * 1000 + np.array([[0, 1_000_000]])
    return run_of(met(arrival_ns, np.array([200_000, 200_000])))


def without_steps(run: Run) -> Run:
    return replace(run, windows=tuple(replace(one, steps=(), step_ns=one.step_ns[:0]) for one in run.windows))


def named(run: Run, name: str) -> Run:
    """All spans of it called so, and all threads and streams too."""
    windows = tuple(
        replace(
            one,
            spans=replace(one.spans, name=np.zeros(len(one.spans), dtype=np.int32), names=(name,), lanes=(name,)),
        )
        for one in run.windows
    )
    return replace(run, windows=windows)


STATES: dict[str, tuple[Callable[[], Run], tuple[str, ...]]] = {
    "usual": (pictured, ("n",)),
    "one_rank_without_steps": (lambda: without_steps(drawn.timeline(PICTURE[: PICTURE.index("1 compute")])), ("n",)),
    "streams_open": (linked, ("enter", "down", "down")),
    "measured_and_searched": (linked, ("n", "m", "w", "m", "slash", *"gemm", "enter")),
    "64_ranks": (lambda: many_ranks(64), ("down",)),
    "4_of_64_ranks_unfolded": (lambda: many_ranks(64), ("r", *"60-63", "enter", "C")),
}


@pytest.mark.parametrize("name", STATES)
async def test_every_state_at_every_size(name: str, snapshot: Callable[[str, str], None]) -> None:
    made, keys = STATES[name]
    async with shown(made(), (80, 24)) as stage:
        await stage.press(*keys)
        for width, height in ((80, 24), (120, 40), (220, 60), (40, 10)):
            await stage.pilot.resize_terminal(width, height)
            await stage.pilot.pause()
            snapshot(f"timeline_{name}_{width}x{height}", stage.text())


@pytest.mark.parametrize(
    ("name", "look"),
    [("ascii", Look(is_ascii=True, depth=Depth.ANSI16)), ("no_colour", Look(depth=Depth.NONE))],
)
async def test_on_poor_terminals(name: str, look: Look, snapshot: Callable[[str, str], None]) -> None:
    async with shown(pictured(), (80, 24), look) as stage:
        await stage.press("n", "m", "w", "m")
        seen = stage.text()
        assert seen.isascii() or not look.is_ascii
        snapshot(f"timeline_{name}", seen)


@pytest.mark.parametrize("look", [Look(is_dark=False), Look(depth=Depth.ANSI16), Look(depth=Depth.NONE)])
def test_a_look_changes_colours_and_nothing_else(look: Look) -> None:
    about, extent = subject(linked()), Extent(100, 30)
    first = begun(about.lanes, whole(about.lanes.start_ns, about.lanes.end_ns, extent.placed.columns))
    usual, other = (frame(about, first, extent, one) for one in (Look(), look))
    assert [line.text for line in usual] == [line.text for line in other]
    assert usual != other


@pytest.mark.slow
async def test_a_thousand_ranks_begin_with_the_latest() -> None:
    async with shown(many_ranks(1024), (80, 24)) as stage:
        seen = stage.text()
        assert "1023 1.02 ms late" in seen
        assert "lines 1–13 of 1024" in seen


async def test_a_collective_says_what_it_waits_for_and_what_is_exposed() -> None:
    """Rank 0's first: 60 to 140, under compute till 100; rank 1 comes at 100."""
    async with shown(pictured(tells_wait=False)) as stage:
        await stage.press("n")
        assert "waits 40 ns for rank 1, transfers 40 ns; 40 ns exposed (50.0 % of it)" in stage.text()
        await stage.press("down", "down")
        assert stage.where[1] == "waits"
        assert "waits 40 ns for rank 1" in stage.text()


async def test_where_waiting_cannot_be_told_the_reason_is_said() -> None:
    async with shown(drawn.timeline(PICTURE[: PICTURE.index("1 compute")], world=2)) as stage:
        await stage.press("n")
        seen = stage.text()
        assert "40 ns exposed (50.0 % of it); waiting cannot be told from transfer: only rank 0 alone" in seen
        assert "0 waits" not in seen


async def test_between_two_marks_the_lane_is_measured() -> None:
    async with shown(pictured()) as stage:
        stage.put(replace(stage.state, marks=(60, 140), role="collectives", rank=0))
        told = "A to B: 80 ns; rank 0 collectives: hidden 40 ns (50.0 %), exposed 40 ns (50.0 %), 1 span begins"
        assert told in stage.text()


async def test_hostile_names_are_harmless_and_lanes_stay_aligned() -> None:
    async with shown(named(pictured(), HOSTILE), (80, 24)) as stage:
        await stage.press("enter", "down", "w")
        seen = stage.text()
        assert "\x1b" not in seen
        assert "\u202e" not in seen
        assert "[bold]" in seen
        gutters = [line[:19] for line in seen.splitlines()[3:16]]
        assert not any(letter in gutter for gutter in gutters for letter in "\u05d0\u05d1")
        await stage.press("e")
        assert "\x1b" not in stage.text()
        await stage.press("escape")
        about = stage.screen.subject
        assert about is not None
        for line in frame(about, stage.state, Extent(80, 24)):
            assert line.cell_length == 80
            assert sum(segment.cell_length for segment in line) == 80


async def test_the_name_of_a_thread_keeps_its_end() -> None:
    async with shown(named(pictured(), "tf_XLAEigen/1234567"), (80, 24)) as stage:
        await stage.press("enter")
        assert "     └ tf_XLA…34567" in stage.text()


async def test_resizing_keeps_the_stretch_and_the_cursor() -> None:
    async with shown(pictured(), (120, 40)) as stage:
        await stage.press("n")
        before = stage.state
        await stage.pilot.resize_terminal(80, 24)
        await stage.pilot.pause()
        after = stage.state
        assert (after.at_ns, after.view.start_ns, after.view.stop_ns) == (
            before.at_ns, before.view.start_ns, before.view.stop_ns,
        )  # fmt: skip
        for size in ((20, 5), (8, 3), (1, 1), (220, 60)):
            await stage.pilot.resize_terminal(*size)
            await stage.pilot.pause()


async def test_bookmarks_are_kept_beside_the_recording(tmp_path: Path) -> None:
    async with shown(pictured(), folder=tmp_path) as stage:
        await stage.press("n", "B")
    assert json.loads((tmp_path / "bookmarks.json").read_text()) == {"times_ns": [60]}
    async with shown(pictured(), folder=tmp_path) as stage:
        assert stage.state.bookmarks == (60,)
        await stage.press("0", "apostrophe")
        assert stage.where[2] == 60
        await stage.press("B")
    assert json.loads((tmp_path / "bookmarks.json").read_text()) == {"times_ns": []}


async def test_a_bookmark_that_cannot_be_kept_is_told() -> None:
    async with shown(pictured(), folder=Path("/no/such/place")) as stage:
        await stage.press("n", "B")
        assert "lasts until you leave" in stage.text()


@pytest.mark.parametrize("content", [b"", b"{", b'{"times_ns": "x"}', b'{"times_ns": [9e99]}', b"[]"])
def test_bookmarks_that_cannot_be_read_are_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "bookmarks.json").write_bytes(content)
    assert bookmarks.bookmarks(tmp_path) == ()


async def test_nothing_profiled_yet_says_what_will_come_and_then_it_comes() -> None:
    async with shown(pictured()) as stage:
        await stage.press("n")
        before, about = stage.state, stage.screen.subject
        stage.screen.renew(None)
        assert "Nothing was profiled up to here." in stage.text()
        await stage.press("n", "plus", "e", "y", "slash", "a", "enter", "enter")
        stage.screen.renew(about)
        assert stage.state == before


async def test_what_the_program_has_to_say_stands_below_the_lanes_until_the_next_key() -> None:
    async with shown(pictured()) as stage:
        assert isinstance(stage.screen, Saying)
        stage.screen.say("Saved meshscope.svg")
        assert "Saved meshscope.svg" in stage.text()
        await stage.press("ctrl+l", "n")
        assert "Saved meshscope.svg" not in stage.text()


async def test_a_badge_says_how_the_clock_stands() -> None:
    async with shown(pictured()) as stage:
        about = stage.screen.subject
        assert isinstance(about, Subject)
        stage.screen.renew(replace(about, badge=("● live", "good")))
        assert "timeline ddp  ● live" in stage.text().splitlines()[0]


async def test_it_turns_light_and_names_every_key_as_a_command() -> None:
    async with shown(pictured()) as stage:
        assert stage.screen.look.is_dark
        stage.screen.wear(replace(stage.screen.look, is_dark=False))
        assert not stage.screen.look.is_dark
        found = {one.title: one for one in stage.screen.commands()}
        before = stage.state.at_ns
        found["Next collective"].run()
        await stage.press("ctrl+l")
        assert stage.state.at_ns != before
        assert found["Next collective"].key == "n"
