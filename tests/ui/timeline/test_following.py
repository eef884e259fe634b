"""A timeline over a board: it opens, it follows the clock of a replay, and it ends where the board is."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from meshscope.ui.picture import text
from meshscope.ui.screens.timeline import Timeline

Staged = Callable[..., contextlib.AbstractAsyncContextManager[Any]]


async def opened(stage: Any) -> Timeline:
    await stage.pilot.press("t")
    async with asyncio.timeout(20):
        while not isinstance(stage.app.screen, Timeline):
            await stage.pilot.pause(0.02)
    return stage.app.screen


async def settled(stage: Any) -> None:
    async with asyncio.timeout(20):
        await stage.rest()
        while not stage.watch.is_laid_out:
            await stage.pilot.pause(0.02)
    await stage.pilot.pause()


def profiled_ns(timeline: Timeline) -> int:
    return timeline.subject.lanes.end_ns if timeline.subject is not None else -1


async def test_it_shows_what_the_clock_has_reached_and_keeps_its_place(folder: Path, staged: Staged) -> None:
    async with staged(folder) as stage:
        timeline = await opened(stage)
        assert "timeline" in text(stage.app).splitlines()[0]
        last_ns = profiled_ns(timeline)
        await stage.pilot.press("n", "plus", "m")
        place = timeline.state
        assert place is not None
        traces = sorted(entry.t_ns for entry in stage.watch.scene.run.traces)
        start = stage.watch.scene.run.experiment.t0_unix_ns
        stage.playback.clock.seek(start + traces[0] + 1)
        stage.playback.clock.pause()
        await settled(stage)
        assert profiled_ns(timeline) <= traces[0] + 1
        assert "‖ paused" in text(stage.app).splitlines()[0]
        stage.playback.clock.seek(start)
        stage.playback.clock.pause()
        await settled(stage)
        assert "Nothing was profiled up to here." in text(stage.app)
        stage.playback.to_end()
        await settled(stage)
        assert profiled_ns(timeline) == last_ns
        assert "New: step" in text(stage.app)
        now = timeline.state
        assert now is not None
        assert (now.at_ns, now.marks, now.view.start_ns) == (place.at_ns, place.marks, place.view.start_ns)
        await stage.pilot.press("escape")
        await stage.rest()
        assert stage.app.screen is stage.watch
        again = await opened(stage)
        assert again is not timeline
        assert again.state == now
