"""A timeline on a made screen, over a run in which every key has somewhere to go."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import drawn
import made_spans
from textual import events
from textual.pilot import Pilot

from meshscope.analysis.lanes import Lanes, lanes
from meshscope.analysis.waiting import waiting
from meshscope.run import Run
from meshscope.ui.app import MeshscopeApp, Options
from meshscope.ui.look import Look
from meshscope.ui.picture import text
from meshscope.ui.screens.timeline import Timeline
from meshscope.ui.timeline.frame import Subject
from meshscope.ui.timeline.state import State


class Stage:
    """The running timeline, its app and its pilot."""

    def __init__(self, app: MeshscopeApp, pilot: Pilot[str]) -> None:
        self.app, self.pilot = app, pilot

    @property
    def screen(self) -> Timeline:
        found = next(screen for screen in self.app.screen_stack if isinstance(screen, Timeline))
        assert isinstance(found, Timeline)
        return found

    @property
    def state(self) -> State:
        assert self.screen.state is not None
        return self.screen.state

    @property
    def where(self) -> tuple[int, str, int]:
        return self.state.rank, self.state.role, self.state.at_ns

    @property
    def lanes(self) -> Lanes:
        assert self.screen.subject is not None
        return self.screen.subject.lanes

    def put(self, state: State) -> None:
        self.screen.state = state
        self.screen.show()

    async def press(self, *keys: str) -> None:
        """As the driver hands them on; the pilot's own way sleeps between them."""
        for key in keys:
            self.app.post_message(events.Key(key, key if len(key) == 1 else None))
            if self.screen.typing is None or len(key) > 1:  # letters that are typed come one after the other
                await self.pilot.pause()

    def text(self) -> str:
        return text(self.app)


def subject(run: Run) -> Subject:
    found = lanes(run)
    assert found is not None
    return Subject(found, waiting(run), run.name)


@contextlib.asynccontextmanager
async def shown(
    run: Run, size: tuple[int, int] = (120, 40), look: Look | None = None, *, folder: Path | None = None
) -> AsyncIterator[Stage]:
    chosen = look or Look()
    app = MeshscopeApp(Options(look=chosen), lambda _: Timeline(subject(run), chosen, folder=folder))
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        yield Stage(app, pilot)


def linked() -> Run:
    """Two ranks with launches, two streams, a collective that rank 0 waits in, and two steps of 150 ns."""
    ask = made_spans.launch(0, 10)
    reduce = made_spans.launch(50, 60, "ncclLaunch")
    first = [
        ask, reduce, made_spans.kernel(20, 50, ask), made_spans.kernel(60, 100, lane="stream 9"),
        made_spans.collective(60, 140, reduce, size_bytes=4000),
        made_spans.kernel(200, 280, name="gemm_large"), made_spans.collective(250, 300), made_spans.copy(285, 295),
    ]  # fmt: skip
    second = [
        made_spans.kernel(0, 40), made_spans.collective(100, 140, size_bytes=4000), made_spans.kernel(180, 240),
        made_spans.collective(240, 300),
    ]  # fmt: skip
    steps = [(0, 150), (150, 300)]
    windows = [made_spans.window(spans, rank=rank, steps=steps) for rank, spans in enumerate((first, second))]
    return drawn.run(windows=windows)
