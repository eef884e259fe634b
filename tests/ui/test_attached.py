"""A job that was attached to on the watch screen: it is somebody else's, and every word says so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from meshscope.experiment import Experiment, Plan, PlannedRun
from meshscope.recording.control import Asked
from meshscope.recording.entries import Ended, Log, Phase, RankStarted
from meshscope.recording.journal import Journal
from meshscope.recording.layout import create, create_plan
from meshscope.ui.screens.detaching import Detaching

S = 1_000_000_000
T0 = 1_700_000_000 * S

Staged = Callable[..., Any]


@pytest.fixture
def attached(tmp_path: Path) -> Path:
    """Two ranks of somebody's job, ten seconds after the first look; no trace has come yet."""
    folder = tmp_path / "run"
    title = "2 processes of train.py, attached to"
    planned = PlannedRun(strategy="attached", title=title, framework="torch", folder="attached", ranks=2)
    create_plan(folder, Plan(t0_unix_ns=T0, runs=[planned], ranks=2, model="", request={"attach": {}}))
    about = {"strategy": "attached", "title": title, "framework": "torch", "device_kind": "cpu", "model": ""}
    create(folder / "attached", Experiment(t0_unix_ns=T0, ranks=2, is_attached=True, cores=4, **about))
    journal = Journal(folder / "attached", "supervisor", t0_unix_ns=T0)
    for rank in range(2):
        journal.append(
            RankStarted(t_ns=S, rank=rank, device=rank, device_name="CPU", device_kind="cpu", pid=4000 + rank)
        )
        journal.append(Phase(t_ns=S, rank=rank, phase="attached"))
    journal.append(Log(t_ns=2 * S, level="info", text="attached to pid 4000 by its Kineto daemon socket", rank=0))
    journal.append(Log(t_ns=10 * S, level="info", text="attached to pid 4001 by its Kineto daemon socket", rank=1))
    return folder


async def test_the_screen_says_that_it_is_attached_and_asks_whether_to_detach(attached: Path, staged: Staged) -> None:
    wall = [T0 + 11 * S]
    async with staged(attached, wall=lambda: wall[0]) as stage:
        shown = stage.text()
        assert "Attached. No trace has been taken yet." in shown
        assert "step 0" not in shown, "nobody counts its steps"
        await stage.press("q")
        assert isinstance(stage.app.screen, Detaching)
        asked = stage.text()
        assert "detach: the recording ends, the job goes on as it was" in asked
        assert "every rank is ended" not in asked
        await stage.press("c")
        assert Asked(attached).new() == []
        await stage.press("q")
        await stage.pilot.press("d")
        await stage.pilot.pause()
        assert [ask.what for ask in Asked(attached).new()] == ["stop"]
        assert "Detaching: the job goes on as it was" in stage.text()
        for folder in (attached / "attached", attached):
            Journal(folder, "supervisor", t0_unix_ns=T0).append(Ended(t_ns=11 * S, outcome="done"))
        wall[0] += 2 * S
        await stage.pilot.pause(1.0)
        line = stage.app.return_value or ""
    assert line.endswith(f"Recorded in {attached}")
