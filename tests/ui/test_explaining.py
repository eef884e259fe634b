"""Asking what a number on the screen is made of: the cursor, the dialog, and that nothing waits for the answer."""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import made
import numpy as np
import pytest
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

sys.path.insert(0, str(Path(__file__).parents[1] / "analysis" / "support"))

from meeting import MS, met, run_of

from meshscope.analysis.explaining import explanations
from meshscope.analysis.explaining.figure import Figure
from meshscope.recording.entries import Compiled
from meshscope.run import Gallery, Run
from meshscope.ui.look import Depth, Look
from meshscope.ui.marks.cells import strip
from meshscope.ui.marks.cited import Cell, Cited, Spot, lit, moved, spots
from meshscope.ui.panel import Frame, Panel
from meshscope.ui.panels.devices import value as reading
from meshscope.ui.scene import Scene, Stance
from meshscope.ui.screens import explaining
from meshscope.ui.screens.board import panels
from meshscope.ui.screens.explained import Explained
from meshscope.ui.words import times, whole_percent
from meshscope.units import UNKNOWN, duration, milliseconds, percent, rate, size, size_unit, time_unit

Staged = Callable[..., Any]
Snapshot = Callable[[str, str], None]
PANELS = panels()
CITING = {"comparison", "split", "overlap", "steptime", "memory", "devices", "waiting", "kernels", "path", "idle"}


# The marks


def test_a_cited_piece_looks_as_before_and_is_found_where_it_lies() -> None:
    look = Look()
    plain, cited = (strip([(" a ", "text"), ("1.2", role), (" ms", "text")], 12, look)
                    for role in ("text", Cited("text", "busy", rank=3)))  # fmt: skip
    assert plain.text == cited.text
    assert spots([plain]) == []
    assert spots([plain, cited]) == [Spot(Cell("busy", 3), 1, 3, 3)]
    assert {segment.style.color for segment in cited} == {segment.style.color for segment in plain}  # type: ignore[union-attr]


def test_neighbours_that_say_different_numbers_stay_apart() -> None:
    line = [("1", Cited("text", "busy")), ("2", Cited("text", "idle")), ("3", "text")]
    assert [spot.cell.number for spot in spots([strip(line, 5, Look(depth=Depth.NONE))])] == ["busy", "idle"]


def test_the_cursor_is_seen_without_colour() -> None:
    line = strip([("ab", "text"), ("cd", Cited("quiet", "busy"))], 6, Look(depth=Depth.NONE))
    (spot,) = spots([line])
    assert [segment.text for segment in lit(line, spot) if segment.style and segment.style.reverse] == ["cd"]
    assert lit(line, spot).text == line.text


def test_a_strip_of_others_has_no_spots() -> None:
    assert spots([Strip([Segment("x"), Segment("y", Style(bold=True))])]) == []


GRID = [
    Spot(Cell("a", 0), 1, 0, 3), Spot(Cell("b", 0), 1, 10, 3),
    Spot(Cell("c", 0), 3, 1, 3), Spot(Cell("d", 0), 3, 9, 3),
]  # fmt: skip


@pytest.mark.parametrize(
    ("here", "by", "there"),
    [
        ("a", {"down": 1}, "c"),
        ("b", {"down": 1}, "d"),
        ("d", {"down": -1}, "b"),
        ("a", {"down": -1}, "a"),
        ("a", {"along": 1}, "b"),
        ("b", {"along": 1}, "c"),
        ("a", {"along": -1}, "a"),
        ("gone", {"down": 1}, "a"),
    ],
)
def test_the_cursor_goes_to_the_nearest_number(here: str, by: dict[str, int], there: str) -> None:
    assert moved(GRID, Cell(here, 0), **by).number == there


# What panels cite


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "run"
    made.write(folder, made.SIX, endings={"pjit": made.Ending("failed", 6)})
    return folder


def scene(folder: Path, selected: str) -> Scene:
    now = made.T0 + 200 * made.S
    plan, runs = Gallery(folder).at(now)
    return Scene(plan, runs, Stance(now_unix_ns=now, start_unix_ns=made.T0), selected)


def ways(figure: Figure, number: str) -> set[str]:
    """Every way in which a panel may write a value."""
    value = float(figure.value)
    found = {write(value) for write in (milliseconds, duration, percent, whole_percent, size, rate, times)}
    found |= {f"{value:.0f}", f"{value:.3f}", f"{rate(value)} {figure.unit}", f"{percent(value)} longer"}
    if number.startswith("devices."):
        field = number.split(".")[1]
        found |= {reading(value, field), f"max {reading(value, field)}"}
    return found | in_any_unit(value)


def in_any_unit(value: float) -> set[str]:
    """As columns have it, where one unit is chosen for all of their numbers: with any number of decimals."""
    units = {unit for scale in (1, 1e3, 1e6, 1e9) for unit in (time_unit((scale,)), size_unit((scale,)))}
    return {write(value, most) for unit in units for most in range(7) for write in (unit.figure, unit.written)}


@pytest.mark.parametrize("size_of", [(71, 12), (118, 24)])
@pytest.mark.parametrize("selected", ["ddp", "fsdp", "pjit", "torch-single"])
@pytest.mark.parametrize("panel", [panel for panel in PANELS if panel.name in CITING], ids=lambda panel: panel.name)
def test_every_number_that_a_panel_cites_is_explained_by_the_value_it_shows(
    whole: Path, panel: Panel, selected: str, size_of: tuple[int, int]
) -> None:
    given = scene(whole, selected)
    drawn = panel.draw(panel.question(given), Frame(*size_of, selected=selected))
    shows_what_explains_it(drawn, given.runs, selected)


def shows_what_explains_it(drawn: list[Strip], runs: tuple[Run, ...], selected: str) -> int:
    """How many cells can be asked about; each shows the value of its explanation."""
    cited = spots(drawn)
    for spot in cited:
        cell = spot.cell
        shown = drawn[spot.line].text[spot.start : spot.start + spot.width].strip()
        rank = cell.rank if cell.rank >= 0 else None
        (found,) = explanations(runs, cell.number, of=cell.run or selected, rank=rank)
        told = [case.figure for case in found.cases if case.figure is not None]
        if shown == UNKNOWN:
            assert any(case.figure is None and case.why for case in found.cases), (cell, found.cases)
        else:
            assert any(shown in ways(figure, cell.number) for figure in told), (cell, shown, told)
    return len(cited)


def drawn_by(name: str, run: Run) -> list[Strip]:
    (panel,) = (panel for panel in PANELS if panel.name == name)
    given = Scene(None, (run,), Stance(now_unix_ns=made.T0 + 20 * made.S), run.name)
    return panel.draw(panel.question(given), Frame(118, 24, selected=run.name))


def late(ranks: int = 4) -> Run:
    """Rank 2 comes 30 ms late to every collective of 40 steps of 100 ms."""
    arrival = np.tile(np.arange(40) * 100 * MS, (ranks, 1))
    arrival[2] += 30 * MS
    windows = met(arrival, MS, steps=tuple(range(40)), host="node")
    return run_of(windows, strategy="ddp", device_kind="gpu", ranks=ranks, cores=64)


def test_what_findings_cost_and_how_long_ranks_wait_can_be_asked_about() -> None:
    assert shows_what_explains_it(drawn_by("findings", late()), (late(),), "ddp") >= 2
    assert shows_what_explains_it(drawn_by("waiting", late()), (late(),), "ddp") == 4 * 4


def test_a_row_of_several_ranks_cannot_be_asked_about() -> None:
    (panel,) = (panel for panel in PANELS if panel.name == "waiting")
    given = Scene(None, (late(16),), Stance(), "ddp")
    drawn = panel.draw(panel.question(given), Frame(118, 12, selected="ddp"))
    assert any(strip.text.split()[:1] == ["11–14"] for strip in drawn)
    assert all(spot.cell.rank >= 0 for spot in spots(drawn))


def test_what_was_compiled_again_can_be_asked_about(whole: Path) -> None:
    (run,) = (run for run in scene(whole, "ddp").runs if run.name == "pmap")
    entries = [
        Compiled(
            t_ns=at, rank=0, name="jit(train_step)", stage=stage, duration_ns=ms * MS, step=step, is_recompilation=True
        )
        for at, (step, stage, ms) in enumerate(((9, "trace", 30), (9, "compile", 450), (13, "compile", 70)))
    ]
    again = replace(run, compiles=(*run.compiles, *entries))
    assert shows_what_explains_it(drawn_by("compile", again), (again,), "pmap") == 2


def test_panels_of_figures_cite_them_and_others_do_not(whole: Path) -> None:
    given = scene(whole, "ddp")
    citing = {
        panel.name for panel in PANELS if spots(panel.draw(panel.question(given), Frame(118, 24, selected="ddp")))
    }
    assert citing == CITING


# The screen


@pytest.mark.parametrize("size_of", [(80, 24), (120, 40), (220, 60)], ids=lambda size_of: f"{size_of[0]}x{size_of[1]}")
async def test_the_dialog_looks_as_it_did(
    folder: Path, staged: Staged, snapshot: Snapshot, size_of: tuple[int, int]
) -> None:
    async with staged(folder, size=size_of) as stage:
        await stage.press("2", "e", "down", "right")
        snapshot(f"explain-cursor-{size_of[0]}x{size_of[1]}", stage.text())
        await stage.press("enter")
        snapshot(f"explain-dialog-{size_of[0]}x{size_of[1]}", stage.text())


async def test_in_ascii_all_of_it_is_ascii(folder: Path, staged: Staged, snapshot: Snapshot) -> None:
    async with staged(folder, size=(80, 24), look=Look(is_ascii=True, depth=Depth.NONE)) as stage:
        await stage.press("1", "e")
        assert stage.text().isascii()
        await stage.press("enter")
        assert stage.text().isascii()
        snapshot("explain-dialog-ascii", stage.text())


async def test_arrows_and_hjkl_move_the_cursor_and_neither_the_clock_nor_the_selection(
    folder: Path, staged: Staged
) -> None:
    async with staged(folder, at_ns=40 * made.S) as stage:
        before, selected = stage.playback.clock.now(), stage.watch.selected
        await stage.press("1", "e")
        seen = [stage.watch._cell]
        for key in ("right", "l", "up", "k", "left", "h", "down", "j"):
            await stage.press(key)
            seen.append(stage.watch._cell)
        assert all(one != other for one, other in itertools.pairwise(seen))
        assert seen[0] == seen[-1]
        assert (stage.playback.clock.now(), stage.watch.selected) == (before, selected)


async def test_enter_opens_and_escape_leaves_one_thing_after_the_other(folder: Path, staged: Staged) -> None:
    async with staged(folder) as stage:
        await stage.press("1", "e")
        assert "throughput of ddp" in stage.line(-1)
        await stage.press("enter")
        assert isinstance(stage.app.screen, Explained)
        assert "samples" in stage.text()
        await stage.press("escape")
        assert stage.app.screen is stage.watch
        assert "throughput of ddp" in stage.line(-1)
        await stage.press("escape")
        assert "e explain" in stage.line(-1)


async def test_tab_takes_the_cursor_to_the_next_panel(folder: Path, staged: Staged) -> None:
    async with staged(folder) as stage:
        await stage.press("2", "e")
        assert "span of ddp, rank 0" in stage.line(-1)
        await stage.press("tab")
        assert "by_kind." in stage.line(-1)


async def test_where_nothing_can_be_explained_it_says_so(folder: Path, staged: Staged) -> None:
    async with staged(folder, size=(220, 60)) as stage:
        await stage.press("7", "e")
        assert explaining.NOTHING in stage.text()
        assert stage.watch._cell is None


async def test_a_click_on_a_number_explains_it_while_there_is_a_cursor(folder: Path, staged: Staged) -> None:
    async with staged(folder) as stage:
        await stage.press("1", "e")
        spot = next(spot for spot in stage.watch.spots if spot.cell == Cell("memory.peak", run="fsdp"))
        await stage.pilot.click("#comparison", offset=(spot.start + 1, spot.line))
        await stage.rest()
        assert "memory.peak of fsdp" in stage.text()


async def test_long_answers_scroll(folder: Path, staged: Staged) -> None:
    async with staged(folder, size=(80, 24)) as stage:
        await stage.press("2", "e", "right", "enter")
        first = stage.text()
        assert "lines 1–" in first
        await stage.press("end")
        assert "in analyze --json" in stage.text() or "events" in stage.text()
        await stage.press("home")
        assert stage.text() == first


async def test_the_screen_waits_for_no_answer_and_one_question_is_in_flight(
    folder: Path, staged: Staged, monkeypatch: pytest.MonkeyPatch
) -> None:
    release, asked = asyncio.Event(), []

    async def held(work: Callable[[], object]) -> object:
        asked.append(work)
        await release.wait()
        return work()

    async with staged(folder) as stage:
        await stage.press("1", "e")
        monkeypatch.setattr(explaining, "in_thread", held)
        for key in ("enter", "escape", "right", "enter", "escape", "right", "enter"):
            await stage.pilot.press(key)
            await stage.pilot.pause()
        assert "Working it out" in stage.text()
        assert len(asked) == 1
        release.set()
        await stage.rest()
        # The first was asked; the one that was closed before its turn was not.
        assert len(asked) == 2
        assert "Working it out" not in stage.text()


async def test_a_number_of_a_run_that_has_not_started_says_so(folder: Path, staged: Staged) -> None:
    async with staged(folder, at_ns=9 * made.S) as stage:
        stage.watch.explain(Cell("throughput", run="pjit"))
        await stage.rest()
        assert "pjit has not started yet." in stage.text()


async def test_a_kernel_with_a_long_name_does_not_burst_the_dialog(folder: Path, staged: Staged) -> None:
    async with staged(folder, size=(80, 24)) as stage:
        stage.watch.explain(Cell("operations." + "x" * 300, run="ddp"))
        await stage.rest()
        (top,) = (line for line in stage.text().splitlines() if "operations.xxx" in line and "╭" in line)
        assert top.rstrip().endswith("╮")
        assert "There is no number called" in stage.text()


async def test_help_names_the_key_and_fits(folder: Path, staged: Staged) -> None:
    async with staged(folder, size=(80, 24)) as stage:
        await stage.press("question_mark", "tab")
        assert "explain: arrows choose a number" in stage.text()
        assert "╰" in stage.line(23)
