"""Draws the README's pictures anew from the shipped recordings: ``python .assets/render.py [FOLDER]``.

Each is the screen that ``meshscope replay`` shows at the end of the recording; nothing in it depends on the machine.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from pathlib import Path

from meshscope.recording.clock import Clock
from meshscope.run import Gallery
from meshscope.ui.app import MeshscopeApp, Options
from meshscope.ui.look import Look
from meshscope.ui.picture import picture
from meshscope.ui.playback import Playback
from meshscope.ui.screens.watch import Watch

HERE = Path(__file__).parent
PATIENCE_S = 60.0


@dataclass(frozen=True)
class Shot:
    """One picture: of which recording, in a terminal of which size, after which keys."""

    name: str
    recording: str
    size: tuple[int, int]
    title: str
    keys: tuple[str, ...] = ()


SHOTS = (Shot("watch.svg", "tiny-4-cpu-ranks", (120, 40), "meshscope"),)


async def drawn(shot: Shot) -> str:
    """The picture of a screen once everything on it has been answered."""
    folder = HERE.parent / "recordings" / shot.recording
    clock = Clock()
    playback = Playback(folder, Gallery(folder, wall=clock.wall), clock)
    app = MeshscopeApp(Options(look=Look()), lambda _: Watch(playback, Look(), fps=20.0))
    async with asyncio.timeout(PATIENCE_S), app.run_test(size=shot.size) as pilot:
        await _rest(app)
        for key in shot.keys:
            await pilot.press(key)
            await _rest(app)
        await pilot.pause()
        return picture(app, title=shot.title)


async def _rest(app: MeshscopeApp) -> None:
    while not (isinstance(app.screen, Watch) and app.screen.is_at_rest):
        await asyncio.sleep(0.02)


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    for shot in SHOTS:
        (folder / shot.name).write_text(asyncio.run(drawn(shot)), encoding="utf-8")
        print(f"drew {folder / shot.name}")


if __name__ == "__main__":
    main()
