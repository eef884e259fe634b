"""Made comparisons, screens over them, and snapshots of what they show."""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "support"))
sys.path.insert(0, str(Path(__file__).parents[1] / "advisor" / "support"))

import made
from textual.pilot import Pilot

from meshscope.recording.clock import Clock
from meshscope.run import Gallery
from meshscope.ui.app import MeshscopeApp, Options
from meshscope.ui.look import Look
from meshscope.ui.picture import text
from meshscope.ui.playback import Playback
from meshscope.ui.screens.watch import Watch

SNAPSHOTS = Path(__file__).parent / "snapshots"
PATIENCE_S = 20.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four strategies that have all ended."""
    made.write(tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture
def snapshot(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compares text with ``snapshots/NAME.txt``, or NAME as it is where that ends in .svg; ``--update`` writes it."""

    def check(name: str, shown: str) -> None:
        path = SNAPSHOTS / (f"pictures/{name}" if name.endswith(".svg") else f"{name}.txt")
        if request.config.getoption("--update"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(shown, encoding="utf-8")
            return
        assert path.is_file(), f"{path.name} is not there yet: run with --update and look at it"
        kept = path.read_text(encoding="utf-8")
        difference = "\n".join(
            difflib.unified_diff(kept.splitlines(), shown.splitlines(), "kept", "shown", lineterm="")
        )
        assert kept == shown, f"{path.name} differs (--update rewrites it):\n{difference}"

    return check


class Stage:
    """A running watch screen: its app, its pilot, and the wall that its clock sees."""

    def __init__(self, app: MeshscopeApp, pilot: Pilot[str], playback: Playback) -> None:
        self.app = app
        self.pilot = pilot
        self.playback = playback

    @property
    def watch(self) -> Watch:
        screen = next(screen for screen in self.app.screen_stack if isinstance(screen, Watch))
        assert isinstance(screen, Watch)
        return screen

    async def rest(self) -> None:
        """Wait until everything that is known has been drawn."""
        async with asyncio.timeout(PATIENCE_S):
            await self.pilot.pause()
            while not self.watch.is_at_rest:
                await asyncio.sleep(0.01)
            await self.pilot.pause()

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.pilot.press(key)
        await self.rest()

    def text(self) -> str:
        return text(self.app)

    def line(self, number: int) -> str:
        return self.text().splitlines()[number]


@contextlib.asynccontextmanager
async def _staged(
    folder: Path,
    *,
    size: tuple[int, int] = (120, 40),
    look: Look | None = None,
    wall: Callable[[], int] | None = None,
    at_ns: int | None = None,
    fps: float = 50.0,
    rests: bool = True,
) -> AsyncIterator[Stage]:
    clock = Clock(wall=wall) if wall else Clock()
    playback = Playback(folder, Gallery(folder, wall=clock.wall), clock)
    if at_ns is not None:
        clock.seek(clock.start_unix_ns + at_ns)
        clock.pause()
    chosen = look or Look()
    app = MeshscopeApp(Options(look=chosen), lambda _: Watch(playback, chosen, fps=fps))
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        stage = Stage(app, pilot, playback)
        if rests:
            await stage.rest()
        yield stage


@pytest.fixture
def staged() -> Callable[..., contextlib.AbstractAsyncContextManager[Stage]]:
    """``async with staged(folder) as stage``: a watch screen without a terminal. ``at_ns`` pauses it there.

    A run that goes on never rests: ``rests=False``.
    """
    return _staged
