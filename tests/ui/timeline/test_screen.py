"""The timeline on the screen: what is drawn, at every size, and what every key does."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import drawn
import numpy as np
import pytest
from meeting import met, run_of
from textual.pilot import Pilot

from meshscope.analysis.lanes import lanes
from meshscope.analysis.waiting import waiting
from meshscope.run import Run
from meshscope.ui.app import MeshscopeApp, Options
from meshscope.ui.look import Depth, Look
from meshscope.ui.picture import text
from meshscope.ui.screens.timeline import Timeline

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


class Stage:
    def __init__(self, app: MeshscopeApp, pilot: Pilot[str]) -> None:
        self.app, self.pilot = app, pilot

    @property
    def screen(self) -> Timeline:
        found = self.app.screen_stack[-1]
        assert isinstance(found, Timeline)
        return found

    @property
    def where(self) -> tuple[int, str, int]:
        now = self.screen.state
        assert now is not None
        return now.rank, now.role, now.at_ns

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.pilot.press(key)
        await self.pilot.pause()

    def text(self) -> str:
        return text(self.app)


@contextlib.asynccontextmanager
async def shown(run: Run, size: tuple[int, int] = (120, 40), look: Look | None = None) -> AsyncIterator[Stage]:
    found, chosen = lanes(run), look or Look()
    assert found is not None
    app = MeshscopeApp(Options(look=chosen), lambda _: Timeline(found, waiting(run), run, chosen))
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        yield Stage(app, pilot)


def pictured(**about: Any) -> Run:
    return drawn.timeline(PICTURE, **about)


def many_ranks(count: int) -> Run:
    """Each comes a little later than the one before."""
    arrival_ns = np.arange(count, dtype=np.int64)[:, None] * 1000 + np.array([[0, 1_000_000]])
    return run_of(met(arrival_ns, np.array([200_000, 200_000])))


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40), (220, 60)])
async def test_at_every_size(width: int, height: int, snapshot: Callable[[str, str], None]) -> None:
    async with shown(pictured(), (width, height)) as stage:
        await stage.press("n")
        snapshot(f"timeline_{width}x{height}", stage.text())


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


async def test_many_ranks_begin_as_a_line_each_and_unfold(snapshot: Callable[[str, str], None]) -> None:
    async with shown(many_ranks(1024), (80, 24)) as stage:
        seen = stage.text()
        assert "collapsed" in seen
        snapshot("timeline_1024_ranks", seen)
        await stage.press("r", *"1020-1023", "enter")
        assert "4 of 1024 ranks" in stage.text()


async def test_every_key_is_heard() -> None:
    """From a place where each has somewhere to go, the state or the screen is another afterwards."""
    keys = [binding.key for binding in Timeline.BINDINGS if hasattr(binding, "key")]
    assert len(keys) > 25
    async with shown(pictured()) as stage:
        begun = stage.screen.state
        assert begun is not None
        for key in (one for some in keys for one in some.split(",")):
            if key in ("escape", "q", "t"):
                continue
            stage.screen.state = replace(begun, at_ns=90, rank=0, role="compute", marks=(10,), bookmarks=(20,))
            stage.screen._show()
            before = stage.text()
            await stage.press(key)
            assert stage.text() != before or stage.screen.state != begun, key
            await stage.press("escape") if not isinstance(stage.app.screen_stack[-1], Timeline) else None
            if stage.screen._typing is not None:
                await stage.press("escape")


async def test_keys_are_letters_while_something_is_typed() -> None:
    async with shown(pictured()) as stage:
        await stage.press("slash", *"all_reduce", "enter")
        assert stage.where == (0, "collectives", 60)
        assert "“all_reduce”: 2 spans of rank 0 collectives" in stage.text()
        await stage.press("right_square_bracket")
        assert stage.where == (1, "collectives", 100)
        await stage.press("slash", *"nothing", "enter")
        assert "No name on these lanes holds “nothing”" in stage.text()
        await stage.press("r", *"7", "enter")
        assert "No rank of this run is among" in stage.text()


async def test_a_collective_says_what_it_waits_for_and_what_is_exposed() -> None:
    """Rank 0's first: 60 to 140, under compute till 100; rank 1 comes at 100."""
    async with shown(pictured(tells_wait=False)) as stage:
        await stage.press("n")
        seen = stage.text()
        assert "waits 40 ns for rank 1, transfers 40 ns; 40 ns exposed (50.0 % of it)" in seen


async def test_between_two_marks_the_lane_is_measured() -> None:
    async with shown(pictured()) as stage:
        begun = stage.screen.state
        assert begun is not None
        stage.screen.state = replace(begun, marks=(60, 140), role="collectives")
        await stage.press("s")
        stage.screen.state = replace(stage.screen.state, rank=0, role="collectives")
        stage.screen._show()
        assert "A to B: 80 ns; rank 0 collectives: hidden 40 ns (50.0 %), exposed 40 ns (50.0 %)" in stage.text()


async def test_hostile_names_are_harmless_and_lanes_stay_aligned() -> None:
    hostile = "\x1b[31m[bold]\u202eevil\u0301" + "漢" * 5000
    windows = [
        replace(one, spans=replace(one.spans, name=np.zeros(len(one.spans), dtype=np.int32), names=(hostile,)))
        for one in drawn.windows(PICTURE)
    ]
    async with shown(replace(pictured(), windows=tuple(windows)), (80, 24)) as stage:
        await stage.press("w")
        seen = stage.text()
        assert "\x1b" not in seen
        assert "\u202e" not in seen
        assert "[bold]" in seen
        for line in stage.screen.frame(80, 24):
            assert line.cell_length == 80


async def test_resizing_keeps_the_stretch_and_the_cursor() -> None:
    async with shown(pictured(), (120, 40)) as stage:
        await stage.press("n")
        before = stage.screen.state
        assert before is not None
        await stage.pilot.resize_terminal(80, 24)
        await stage.pilot.pause()
        after = stage.screen.state
        assert after is not None
        assert (after.at_ns, after.view.start_ns, after.view.stop_ns) == (
            before.at_ns, before.view.start_ns, before.view.stop_ns,
        )  # fmt: skip
        for size in ((20, 5), (8, 3), (1, 1), (220, 60)):
            await stage.pilot.resize_terminal(*size)
            await stage.pilot.pause()


async def test_bookmarks_are_kept_beside_the_recording(tmp_path: Path) -> None:
    run = replace(pictured(), path=str(tmp_path))
    async with shown(run) as stage:
        await stage.press("n", "B")
    assert json.loads((tmp_path / "bookmarks.json").read_text()) == {"times_ns": [60]}
    async with shown(run) as stage:
        assert stage.screen.state is not None
        assert stage.screen.state.bookmarks == (60,)
        await stage.press("0", "apostrophe")
        assert stage.where[2] == 60
        await stage.press("B")
    assert json.loads((tmp_path / "bookmarks.json").read_text()) == {"times_ns": []}


async def test_a_bookmark_that_cannot_be_kept_is_told() -> None:
    async with shown(replace(pictured(), path="/no/such/place")) as stage:
        await stage.press("n", "B")
        assert "lasts until you leave" in stage.text()


async def test_a_click_chooses_a_lane_and_a_time_and_the_wheel_zooms() -> None:
    async with shown(pictured()) as stage:
        await stage.pilot.click("#timeline", offset=(60, 4))
        await stage.pilot.pause()
        now = stage.screen.state
        assert now is not None
        assert (now.rank, now.role) == (0, "collectives")
        assert now.view.column(now.at_ns) == 60 - 22


async def test_from_the_watch_screen_and_back(
    folder: Path, staged: Callable[..., contextlib.AbstractAsyncContextManager[Any]]
) -> None:
    async with staged(folder) as stage:
        await stage.pilot.press("t")
        for _ in range(200):
            await stage.pilot.pause(0.02)
            if isinstance(stage.app.screen, Timeline):
                break
        assert "timeline" in text(stage.app).splitlines()[0]
        await stage.pilot.press("escape")
        await stage.rest()
        assert stage.app.screen is stage.watch
