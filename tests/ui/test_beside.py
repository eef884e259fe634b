"""Prediction beside measurement on the screen: each term as two bars, the worst one named, or why none is said."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

import advised
import planned
import pytest

from meshscope.advisor.against import Against, Side
from meshscope.advisor.coverage import NotCovered
from meshscope.advisor.multipliers import Provenance
from meshscope.advisor.readings import Readings
from meshscope.advisor.recorded import Asked, recorded
from meshscope.advisor.simulated import write
from meshscope.cli.opening import open_paths
from meshscope.ui.advise.beside import beside
from meshscope.ui.look import Look
from meshscope.ui.marks.cells import cells

PATIENCE_S = 30.0

Staged = Callable[..., AbstractAsyncContextManager]  # type: ignore[type-arg]


def found() -> Against:
    """0.210 s predicted, 0.200 measured; exposed communication is 30 ms too much."""
    measured = Readings(0.2, 0.195, 0.205, 40, 0.204, 0.2, 0.16, 0.02, 0.02, 0.02, peak_bytes=40e9)
    return Against(
        name="ddp",
        asked=Asked(planned.MODEL, planned.candidate("ddp"), 8, "gpu", "H100", 0),
        cluster=planned.cluster(),
        measured=measured,
        calibrated=Provenance(),
        step=advised.figure(0.21),
        terms=(Side("compute", 0.15, 0.16), Side("exposed communication", 0.05, 0.02), Side("idle", 0.01, 0.02)),
        collectives=(Side("all_reduce", 0.04, math.nan, (25, 0)),),
        memory=(Side("parameters", 5e9, 5e9),),
        peak=advised.figure(38e9),
        cannot_say=("terms: one of them \x1b[2J",),
    )


def said(one: Against, width: int = 96, look: Look | None = None) -> str:
    lines = beside(one, width, look or Look())
    assert max(cells(line) for line in lines) <= width
    return "\n".join("".join(text for text, _ in line) for line in lines)


def test_the_step_and_the_term_that_is_most_off_come_first() -> None:
    lines = " ".join(said(found()).split())
    assert "ddp: 210 ms predicted (189 ms to 231 ms), 200 ms measured" in lines
    assert "5.0 % too long, within the prediction's interval" in lines
    assert "Most off: exposed communication, 30.0 ms too much (15.0 % of the profiled step)." in lines
    assert "Calibrated on nothing" in lines


def test_each_term_is_two_bars_under_one_scale() -> None:
    lines = said(found(), look=Look(is_ascii=True)).splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("compute"))
    predicted, measured = lines[at].count("#"), lines[at + 1].count("#")
    assert measured > predicted > 0
    assert predicted / measured == pytest.approx(150 / 160, abs=0.03)
    assert lines[at + 1].rstrip().endswith("−10.0 ms")


def test_what_only_one_side_knows_has_no_figure_on_the_other() -> None:
    lines = said(found()).splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("all_reduce"))
    assert lines[at + 1].split()[:2] == ["measured", "–"]


def test_memory_ends_with_the_peak() -> None:
    lines = said(found()).splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("peak"))
    assert "38.0 GB" in lines[at]
    assert "40.0 GB" in lines[at + 1]
    assert "−2.00 GB" in lines[at + 1]


@pytest.mark.parametrize("width", [40, 60, 76, 96])
def test_nothing_is_wider_than_the_dialog(width: int) -> None:
    said(found(), max(width, 52))
    said(replace(found(), step=None, terms=(), collectives=(), memory=(), peak=None), width)


async def test_a_recording_is_set_beside_its_prediction_from_its_screen(staged: Staged) -> None:
    folder = Path(__file__).parents[2] / "recordings" / "tiny-4-cpu-ranks"
    async with staged(folder) as stage:
        assert "Prediction beside measurement" in [one.title for one in stage.app.commands()]
        stage.watch.action_beside()
        async with asyncio.timeout(PATIENCE_S):
            while not ("predicted" in stage.text() and "too " in stage.text()) and "cannot say" not in stage.text():
                await asyncio.sleep(0.05)
                await stage.pilot.pause()
        assert "prediction beside measurement" in stage.text()
        await stage.pilot.press("escape")


async def test_no_prediction_is_held_against_another(staged: Staged, tmp_path: Path) -> None:
    write(tmp_path / "plan", [planned.simulated("ddp")], now_unix_ns=1_796_000_000_000_000_000)
    (run,) = open_paths((tmp_path / "plan",)).runs
    with pytest.raises(NotCovered, match="it is simulated"):
        recorded(run)
    async with staged(tmp_path / "plan") as stage:
        stage.watch.action_beside()
        async with asyncio.timeout(PATIENCE_S):
            while "cannot say: it is simulated" not in stage.text():
                await asyncio.sleep(0.05)
                await stage.pilot.pause()
