"""Keys for what is not there say why, and nothing is promised that cannot come any more."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "readers" / "support"))
from made_records import MIB, block, call, segment, write_snapshot

from meshscope.run import Loading, Opening, open_traces, trace_files
from meshscope.ui.absent import no_letter, no_panel, no_timeline
from meshscope.ui.app import MeshscopeApp, Options
from meshscope.ui.look import Look
from meshscope.ui.picture import text
from meshscope.ui.scene import Scene
from meshscope.ui.screens.board import panels
from meshscope.ui.screens.traces import Traces

PANELS = panels("traces")


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    return write_snapshot(tmp_path / "memory_rank0.pickle", [segment(block(0, 3 * MIB))], [call("alloc", MIB, 1)])


@pytest.fixture
def scene(snapshot: Path) -> Scene:
    (run,) = open_traces([snapshot]).runs
    return Scene(None, (run,), selected=run.name, is_of_traces=True, is_read=True)


def test_a_snapshot_has_no_timeline_and_no_panel_of_steps(scene: Scene) -> None:
    kind = scene.runs[0].records[0].kind
    assert no_timeline(scene) == f"There is no timeline: a {kind} has no spans."
    assert no_panel(PANELS, scene, 2).endswith(f": a {kind} has no steps and no spans.")
    assert no_panel(PANELS, scene, 6).endswith("(devices): what was read tells nothing of it.")
    kernels = next(panel for panel in PANELS if panel.key == "K")
    assert no_letter(kernels, scene).startswith("No panel K here (kernels & operators): a ")


def test_what_may_still_come_is_told_from_what_cannot() -> None:
    reading = Scene(None, (), is_of_traces=True)
    refused = replace(reading, is_read=True)
    assert no_timeline(reading) == "There is no timeline: nothing is read yet."
    assert no_timeline(refused) == "There is no timeline: none of the files could be read."
    assert "none of the files could be read" in no_panel(PANELS, refused, 2)
    assert no_timeline(Scene(None, ())).endswith("was profiled yet.")
    suiting = {panel.name for panel in PANELS if panel.suits(refused)}
    assert not suiting & {"split", "overlap", "waiting", "kernels", "idle", "path"}
    assert {"traces", "files"} < {panel.name for panel in PANELS if panel.suits(reading)}


async def shown(paths: tuple[Path, ...], *keys: str) -> str:
    opening = Opening(Loading(paths))
    screen = Traces(opening, Look(), fps=50)
    app = MeshscopeApp(Options(), lambda _: screen)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        while not screen.is_at_rest:
            await pilot.pause(0.01)
        for key in keys:
            await pilot.press(key)
        await pilot.pause()
        return text(app)


async def test_nothing_is_promised_once_all_files_are_refused(tmp_path: Path) -> None:
    bad = tmp_path / "trace.json"
    bad.write_text('{"traceEvents": 3}')
    found = await shown((bad,))
    assert "None of the files could be read" in found
    for promise in ("Fills with", "appears here", "yet"):
        assert promise not in found


async def test_a_key_that_can_do_nothing_says_so_over_an_older_message(snapshot: Path) -> None:
    files = trace_files(snapshot).files
    assert "has no spans." in await shown(files, "t")
    found = await shown(files, "t", "2")
    assert "No panel 2 here (where a step goes, by rank): a " in found
    assert "There is no timeline" not in found
    assert "There is no clock here to move" in await shown(files, "right")
    assert "No panel 2 here" not in await shown(files, "2", "4")
