"""Strategies side by side: what is drawn of them in every state, and every key."""

from __future__ import annotations

import asyncio
import csv
import math
import re
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import made
import pytest
from rich.cells import cell_len

from meshscope.analysis.explaining import explanations
from meshscope.run import Gallery, Run
from meshscope.ui.look import Depth, Look
from meshscope.ui.marks.cells import strips
from meshscope.ui.marks.cited import Cell, spots
from meshscope.ui.scene import Scene, Stance
from meshscope.ui.screens import strategies as screen
from meshscope.ui.screens.compare import Compare
from meshscope.ui.screens.dialog import Dialog
from meshscope.ui.screens.explained import Explained
from meshscope.ui.screens.strategies import Strategies
from meshscope.ui.screens.watch import Watch
from meshscope.ui.strategies import columns, state
from meshscope.ui.strategies.answer import Answer, question
from meshscope.ui.strategies.columns import Sorting
from meshscope.ui.strategies.drawing import drawn
from meshscope.ui.strategies.placing import placing, rounded_up, scale, tick
from meshscope.ui.strategies.state import State
from meshscope.units import UNKNOWN, milliseconds

sys.path.insert(0, str(Path(__file__).parent.parent / "analysis" / "support"))
from drawn import run
from stepped import Step, profiled, windows

Staged = Callable[..., Any]
Snapshot = Callable[[str, str], None]
SIZES = [(80, 24), (120, 40), (220, 60)]
ASCII = Look(is_ascii=True, depth=Depth.NONE)
MS = 1_000_000


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("strategies") / "run"
    made.write(folder, made.SIX, endings={"pjit": made.Ending("failed", 6)})
    return folder


def scene(folder: Path, after_s: float = 200.0) -> Scene:
    now = made.T0 + int(after_s * made.S)
    plan, runs = Gallery(folder).at(now)
    return Scene(plan, runs, Stance(now_unix_ns=now, start_unix_ns=made.T0))


@pytest.fixture(scope="module")
def answers(whole: Path) -> Callable[[str], Answer]:
    """The answer in a state, asked for once."""
    return lru_cache(maxsize=None)(lambda name: STATES[name](whole))


@pytest.fixture(scope="module")
def ended(answers: Callable[[str], Answer]) -> Answer:
    return answers("ended")


def shown(answer: Answer, now: State = State(), size: tuple[int, int] = (120, 40), look: Look = Look()) -> str:  # noqa: B008  # frozen
    found = drawn(answer, now, size, look)
    assert len(found.lines) == size[1]
    return "\n".join(strip.text.rstrip() for strip in strips(found.lines, *size, look)) + "\n"


def of_traces(*runs: Run, **about: Any) -> Answer:
    return question(Scene(None, runs, Stance(is_at_end=True), is_of_traces=True, **about))


def traced(title: str, some: list[Step], *, is_stepped: bool = True) -> Run:
    found = run(windows=windows(some), strategy="", title=title, model="", global_batch=0)
    if is_stepped:
        return found
    return replace(found, windows=tuple(replace(one, steps=(), step_ns=one.step_ns[:0]) for one in found.windows))


NEW = [Step(compute=60, exposed=30, hidden=6, idle=10, late=4), Step(compute=61, exposed=30, hidden=6, idle=10),
       Step(compute=60, exposed=31, hidden=6, idle=12)]  # fmt: skip
OLD = [Step(compute=80, exposed=100, idle=20, copied=3)] * 3

STATES: dict[str, Callable[[Path], Answer]] = {
    "ended": lambda folder: question(scene(folder)),
    "begun": lambda folder: question(scene(folder, 10.5)),
    "unprofiled": lambda folder: question(scene(folder, 3.6)),
    "nothing": lambda folder: question(scene(folder, 0.5)),
    "traces": lambda _: of_traces(traced("new", NEW), traced("old", OLD), traced("kernels", NEW, is_stepped=False)),
}


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("name", STATES)
def test_every_state_looks_as_it_did(
    answers: Callable[[str], Answer], snapshot: Snapshot, name: str, size: tuple[int, int]
) -> None:
    snapshot(f"strategies-{name}-{size[0]}x{size[1]}", shown(answers(name), size=size))


def test_in_ascii_without_a_colour_it_reads_the_same(ended: Answer, snapshot: Snapshot) -> None:
    marked = State(Sorting("transfer"), "pmap", ("ddp", "fsdp"))
    text = shown(ended, marked, look=ASCII)
    assert text.isascii()
    snapshot("strategies-ascii", text)


@pytest.mark.parametrize("size", [(60, 20), (40, 12), (30, 8), (20, 5), (1, 1)])
def test_a_narrow_screen_keeps_its_size_and_who_is_compared(ended: Answer, size: tuple[int, int]) -> None:
    text = shown(ended, size=size)
    assert all(cell_len(line) <= size[0] for line in text.splitlines())
    assert "ddp" in text or size < (30, 8)


def test_every_number_is_explained_by_the_value_it_shows(whole: Path, ended: Answer) -> None:
    runs, look = scene(whole).runs, Look()
    lines = strips(drawn(ended, State(), (220, 60), look).lines, 220, 60, look)
    cited = spots(lines)
    assert {spot.cell.run for spot in cited} == {one.name for one in ended.contenders}
    names = {spot.cell.number for spot in cited}
    assert {f"mean_step.{part}" for part in ("span", "compute", "hidden", "waiting", "transfer", "idle")} < names
    assert {"step_time", "throughput", "memory.peak", "speedup", "compile"} < names
    for spot in cited:
        shown = lines[spot.line].text[spot.start : spot.start + spot.width]
        (found,) = explanations(runs, spot.cell.number, of=spot.cell.run)
        first = found.cases[0]
        if spot.cell.number.startswith("mean_step.") and shown != UNKNOWN:
            assert first.figure is not None
            assert shown == milliseconds(float(first.figure.value)), spot.cell
        elif shown == UNKNOWN:
            assert any(case.figure is None and case.why for case in found.cases), spot.cell


# One scale


@pytest.mark.parametrize("width", [60, 78, 118, 218])
def test_a_millisecond_is_as_long_in_every_column(ended: Answer, width: int) -> None:
    placed = placing(ended, width)
    assert placed.places[-1].end <= width
    for place in placed.bars:
        for one in ended.contenders:
            if one.is_ranked and one.split is not None:
                assert one.split.parts_ns[place.key.name] <= (place.width + 0.5) * placed.ns_per_cell
    ordered = sorted(placed.places, key=lambda place: place.start)
    assert all(a.end < b.start for a, b in pairwise(ordered))


def test_bars_are_as_long_as_their_figures_say(ended: Answer) -> None:
    placed = placing(ended, 118)
    text = shown(ended)
    ddp = next(at for at, line in enumerate(text.splitlines()) if "✓ ddp" in line)
    for name, mark in (("compute", "█"), ("idle", "·")):
        place = placed.of(name)
        assert place is not None
        found = ended.of("ddp")
        assert found is not None
        assert found.split is not None
        bar = text.splitlines()[ddp + 1][1 + place.start : 1 + place.end].count(mark)
        assert bar == round(found.split.parts_ns[name] / placed.ns_per_cell)


def test_one_that_is_not_ranked_does_not_set_the_scale(ended: Answer) -> None:
    single = ended.of("torch-single")
    assert single is not None
    assert single.split is not None
    assert single.split.parts_ns["compute"] > 200 * MS
    placed = placing(ended, 118)
    compute = placed.of("compute")
    assert compute is not None
    assert compute.width * placed.ns_per_cell < 120 * MS


def test_a_scale_fits_and_nothing_finer_would() -> None:
    # 14 and 6 cells; 10 cells beside one that takes no fewer than 8.
    assert scale([70.0, 30.0], 4, 20) == pytest.approx(5.0, rel=1e-3)
    assert scale([100.0, 1.0], 8, 18) == pytest.approx(10.0, rel=1e-3)
    assert math.isnan(scale([0.0, 0.0], 8, 18))


@pytest.mark.parametrize(("value", "above"), [(1.2, 2), (2, 2), (3, 5), (7, 10), (0.03, 0.05), (40, 50)])
def test_ticks_are_at_round_numbers(value: float, above: float) -> None:
    assert rounded_up(value) == pytest.approx(above)


def test_a_tick_is_written_in_ms_without_an_idle_zero() -> None:
    assert [tick(ns) for ns in (0, 20 * MS, 0.5 * MS, 1000)] == ["0", "20", "0.5", "0.001"]


# Sorting and marking


def names(answer: Answer, sorting: Sorting) -> list[str]:
    return [one.name for one in columns.ordered(answer, sorting)]


APART = ["pjit", "torch-single", "jax-single"]


@pytest.mark.parametrize(
    ("sorting", "order"),
    [
        (Sorting(), ["ddp", "pmap", "fsdp"]),
        (Sorting("step", is_reversed=True), ["fsdp", "pmap", "ddp"]),
        (Sorting("rate"), ["ddp", "pmap", "fsdp"]),
        (Sorting("rate", is_reversed=True), ["fsdp", "pmap", "ddp"]),
        (Sorting("hidden"), ["pmap", "fsdp", "ddp"]),
        (Sorting("peak"), ["fsdp", "pmap", "ddp"]),
        (Sorting("name", is_reversed=True), ["pmap", "fsdp", "ddp"]),
        (Sorting("compile"), ["pmap", "ddp", "fsdp"]),
    ],
)
def test_any_column_sorts_and_who_is_not_ranked_stays_last(ended: Answer, sorting: Sorting, order: list[str]) -> None:
    assert names(ended, sorting) == [*order, *APART]


def test_the_first_two_are_a_and_b_and_a_third_takes_the_place_of_b() -> None:
    now = state.marked(State(), "ddp")
    assert now.marks == ("ddp", "")
    now = state.marked(state.marked(now, "fsdp"), "pmap")
    assert (now.marks, now.pair) == (("ddp", "pmap"), ("ddp", "pmap"))
    assert state.marked(now, "ddp").marks == ("", "pmap")
    assert state.marked(state.marked(now, "ddp"), "fsdp").marks == ("fsdp", "pmap")


def test_the_differences_are_of_a_and_b_or_of_the_chosen_one_and_the_fastest(ended: Answer) -> None:
    def pair(now: State) -> list[str]:
        return [one.name for one in state.compared(ended, now) or ()]

    assert pair(State(chosen="ddp")) == ["ddp", "pmap"]
    assert pair(State(chosen="fsdp")) == ["ddp", "fsdp"]
    assert pair(State(chosen="ddp", marks=("fsdp", "pmap"))) == ["fsdp", "pmap"]
    assert pair(State(chosen="pjit")) == ["ddp", "pjit"]


def test_the_line_of_differences_adds_up(ended: Answer) -> None:
    text = shown(ended, State(chosen="fsdp"), (140, 40))
    line = next(line for line in text.splitlines() if "fsdp − ddp " in line)
    step, *parts, whole = [float(number.replace("−", "-")) for number in re.findall(r"[+−][\d.]+", line)]
    assert sum(parts) == pytest.approx(whole, abs=0.3)
    assert f"The parts add up to +{whole} ms, by which profiled steps differ; unprofiled ones differ by +{step}" in text


def test_one_strategy_alone_is_shown_with_nothing_to_set_it_against() -> None:
    text = shown(question(Scene(None, (profiled("ddp", 100, NEW),), Stance(is_at_end=True))))
    assert "ddp takes 100 ms a step; there is no other to compare it with." in text
    assert " − " not in text


def test_a_hostile_name_steers_nothing() -> None:
    text = shown(of_traces(traced("\x1b[2Jnew", NEW), traced("old", OLD)))
    assert "\x1b" not in text
    assert "�[2Jnew" in text


def test_what_is_read_so_far_is_called_so() -> None:
    text = shown(of_traces(traced("new", NEW), traced("old", OLD), partial={"old": 0.4}))
    assert "So far: A profiled step of new is" in text
    assert "so far, 40 % looked at" in text


# The screen


class Held:
    """Lets a comparison begin, and end when it is told to."""

    def __init__(self, real: Callable[..., Any]) -> None:
        self._real = real
        self.may_end = threading.Event()
        self.has_begun = threading.Event()

    def __call__(self, *given: Any) -> Any:
        self.has_begun.set()
        assert self.may_end.wait(20)
        return self._real(*given)


async def settled(stage: Any) -> Strategies:
    async with asyncio.timeout(20):
        while True:
            await stage.pilot.pause()
            found = next((one for one in stage.app.screen_stack if isinstance(one, Strategies)), None)
            if found is not None and found.is_at_rest:
                return found
            await asyncio.sleep(0.01)


class Hands:
    """Presses keys on the screen of strategies of a stage, and sees what it shows then."""

    def __init__(self, stage: Any, here: Strategies) -> None:
        self.stage, self.here = stage, here

    async def press(self, *keys: str) -> str:
        await self.stage.pilot.press(*keys)
        await settled(self.stage)
        return str(self.stage.text())

    async def click(self, x: int, y: int) -> None:
        await self.stage.pilot.click(offset=(x, y))
        await self.stage.pilot.pause()

    @property
    def chosen(self) -> str:
        assert self.here.answer is not None
        return state.chosen(self.here.answer, self.here.state)

    @property
    def is_there(self) -> bool:
        return bool(self.stage.app.screen is self.here)


async def choose_and_sort(hands: Hands) -> None:
    for key, name in [("down", "pmap"), ("j", "fsdp"), ("up", "pmap"), ("k", "ddp"), ("end", "jax-single"),
                      ("home", "ddp"), ("pagedown", "jax-single"), ("pageup", "ddp")]:  # fmt: skip
        await hands.press(key)
        assert hands.chosen == name, key
    for key, heading in [("right", "compute▴"), ("l", "hidden▴"), ("r", "hidden▾"), ("left", "compute▴"),
                         ("h", "ms/step▴"), ("left", "strategy▴"), ("left", "strategy▴"),
                         ("right", "ms/step▴")]:  # fmt: skip
        assert heading in await hands.press(key), key
    await hands.press("home")


async def mark_and_stop_comparing(hands: Hands, held: Held) -> None:
    assert "Mark two with space" in await hands.press("enter")
    assert "▸A ✓ ddp" in await hands.press("space")
    assert "▸B ✓ fsdp" in await hands.press("down", "down", "space")
    assert "B − A" in hands.stage.text()
    await hands.stage.pilot.press("enter")
    assert held.has_begun.wait(20)
    assert "Comparing ddp and fsdp…  esc stops that" in hands.stage.text()
    await hands.stage.pilot.press("escape")
    assert "Not compared." in hands.stage.text()
    held.may_end.set()
    await settled(hands.stage)
    assert hands.is_there


async def compare_and_come_back(hands: Hands) -> None:
    text = await hands.press("c")
    assert isinstance(hands.stage.app.screen, Compare)
    assert "ddp → fsdp: B is slower" in text
    assert "A ddp" in text
    assert "q back" in text
    await hands.press("backspace")
    assert hands.is_there
    assert (hands.here.state.marks, hands.chosen) == (("ddp", "fsdp"), "fsdp")


async def point(hands: Hands) -> None:
    drawing = hands.here._drawn
    assert drawing is not None
    place = next(place for place in drawing.headings if place.key.name == "idle")
    await hands.click(1 + place.start, drawing.heading_lines[1])
    assert hands.here.state.sorting == Sorting("idle")
    await hands.click(place.end, drawing.heading_lines[0])
    assert hands.here.state.sorting == Sorting("idle", is_reversed=True)
    drawing = hands.here._drawn
    await hands.click(30, next(at for at, name in drawing.names.items() if name == "pmap"))
    assert hands.chosen == "pmap"


async def explain(hands: Hands) -> None:
    await hands.press("home", "e")
    assert hands.here.cell == Cell("step_time", run="ddp")
    assert "step_time of ddp" in hands.stage.text()
    for key, cell in [("right", Cell("mean_step.compute", run="ddp")), ("down", Cell("mean_step.compute", run="pmap")),
                      ("h", Cell("step_time", run="pmap")), ("l", Cell("mean_step.compute", run="pmap")),
                      ("k", Cell("mean_step.compute", run="ddp"))]:  # fmt: skip
        before = hands.here.state
        await hands.press(key)
        assert (hands.here.cell, hands.here.state) == (cell, before), key
    text = await hands.press("enter")
    assert isinstance(hands.stage.app.screen, Explained)
    assert "mean_step.compute of ddp" in text
    await hands.press("escape")
    assert hands.is_there
    await hands.press("escape")
    assert hands.is_there
    assert hands.here.cell is None


async def take_along(hands: Hands, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.chdir(folder)
    assert "Copied 1 row with headings" in await hands.press("y")
    heads, row = (line.split("\t") for line in hands.stage.app.clipboard.split("\n"))
    assert (heads[0], row[0]) == ("strategy", "ddp")
    assert "Saved" in await hands.press("x", "c")
    (saved,) = folder.glob("meshscope-strategies-all-*.csv")
    rows = list(csv.DictReader(saved.open()))
    assert [row["strategy"] for row in rows] == ["ddp", "pmap", "fsdp", "pjit", "torch-single", "jax-single"]
    profiled = [row for row in rows if row["profiled_step_ns"]]
    assert profiled
    for row in profiled:
        parts = sum(int(row[f"{name}_ns"]) for name in ("compute", "hidden", "exposed", "copy", "idle"))
        assert parts == int(row["profiled_step_ns"]), row["strategy"]
    before = hands.stage.text()
    assert "Saved" in await hands.press("s", "t")
    (saved,) = folder.glob("meshscope-2*.txt")
    assert saved.read_text().splitlines()[0].rstrip() == before.splitlines()[0].rstrip()
    assert hands.here.look.is_dark
    await hands.press("T")
    assert not hands.here.look.is_dark
    await hands.press("T")
    assert {"Mark", "Compare A and B", "Export the table"} <= {one.title for one in hands.here.commands()}


async def test_every_key_does_what_the_help_says(
    whole: Path, staged: Staged, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    held = Held(screen.changes)
    monkeypatch.setattr(screen, "changes", held)
    async with staged(whole, fps=4) as stage:
        await stage.pilot.press("c")
        hands = Hands(stage, await settled(stage))
        assert "ddp wins by" in stage.text()
        await choose_and_sort(hands)
        await take_along(hands, monkeypatch, tmp_path)
        await mark_and_stop_comparing(hands, held)
        await compare_and_come_back(hands)
        await explain(hands)
        assert "mark as A, another one as B" in await hands.press("question_mark")
        assert isinstance(stage.app.screen, Dialog)
        await hands.press("escape")
        await point(hands)
        for key in ("escape", "q", "backspace"):
            await stage.pilot.press(key)
            assert isinstance(stage.app.screen, Watch), key
            await stage.pilot.press("c")
            await settled(stage)


async def test_a_live_run_is_shown_within_a_second_and_the_cursor_stays(tmp_path: Path, staged: Staged) -> None:
    folder = tmp_path / "run"
    source = tmp_path / "source"
    end = made.write(source, made.FOUR[:3])
    half = made.write(folder, made.FOUR[:3], started=2, endings={"fsdp": made.Ending("", 8)}, is_over=False)
    wall = [half]
    async with staged(folder, wall=lambda: wall[0]) as stage:
        await stage.pilot.press("c")
        here = await settled(stage)
        await stage.pilot.press("space", "down", "space")
        assert re.search(r"○ pmap +waiting", stage.text())
        assert here.state.marks == ("ddp", "fsdp")
        for path in sorted(source.rglob("*")):
            copy = folder / path.relative_to(source)
            if path.is_dir():
                copy.mkdir(parents=True, exist_ok=True)
            elif path.suffix == ".jsonl" and copy.exists():
                with copy.open("ab") as file:
                    file.write(path.read_bytes()[copy.stat().st_size :])
            elif not copy.exists():
                copy.write_bytes(path.read_bytes())
        wall[0] = end + 20 * made.S
        async with asyncio.timeout(20):
            while "ddp wins by" not in stage.text():
                await asyncio.sleep(0.05)
        assert here.state.marks == ("ddp", "fsdp")
        assert "▸B ✓ fsdp" in stage.text()
