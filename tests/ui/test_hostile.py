"""Names out of a trace are text, whatever is in them: on every panel and screen, in cells that stay aligned."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import hostile
import made
import pytest
from terminal import OFF, Terminal
from textual.pilot import Pilot

from meshscope.analysis.figures import figures
from meshscope.analysis.lanes import lanes
from meshscope.analysis.pairing import changes
from meshscope.analysis.waiting import waiting
from meshscope.run import Gallery, Loading, Opening, Run, open_traces, trace_files
from meshscope.ui.app import MeshscopeApp, Options
from meshscope.ui.launching import Bundled
from meshscope.ui.look import Depth, Look
from meshscope.ui.marks.cells import clip, left, right, strip
from meshscope.ui.panel import Frame, Panel
from meshscope.ui.picture import cells, text
from meshscope.ui.scene import Scene, Stance
from meshscope.ui.screens.board import panels
from meshscope.ui.screens.compare import Compare
from meshscope.ui.screens.start import Start
from meshscope.ui.screens.timeline import Timeline
from meshscope.ui.screens.traces import Traces
from meshscope.ui.shelf import shelf
from meshscope.ui.timeline.frame import Subject
from meshscope.units import printable

LOOKS = {"unicode": Look(), "ascii": Look(is_ascii=True, depth=Depth.NONE)}


def assert_aligned(rows: list[str], width: int) -> None:
    for row in rows:
        assert hostile.is_harmless(row), ascii(row)
        assert hostile.width(row) == width, ascii(row)


def assert_screen(app: MeshscopeApp) -> None:
    assert_aligned(["".join(segment.text for segment in row) for row in cells(app)], app.size.width)
    assert app.title == "meshscope"


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hostile.write(tmp_path_factory.mktemp("hostile"))[0].parent


@pytest.fixture(scope="module")
def runs(trace: Path) -> tuple[Run, ...]:
    opened = open_traces([trace], jobs=1)
    assert opened.refused == ()
    return opened.runs


@pytest.mark.parametrize("codes", [range(0x3100), pytest.param(range(0x3100, 0x110000), marks=pytest.mark.slow)])
def test_every_character_that_is_shown_is_as_wide_as_it_is_counted(codes: range) -> None:
    """After a letter: what Rich counts is what Unicode's properties say."""
    for code in codes:
        shown = printable(f"a{chr(code)}")
        if shown[1:] != "�":
            assert hostile.is_harmless(shown), hex(code)
            assert hostile.width(left(shown, 5)) == 5, hex(code)


@pytest.mark.parametrize("name", hostile.NAMES)
def test_a_name_is_cut_to_its_cells(name: str) -> None:
    given = hostile.NAMES[name]
    for width in (1, 2, 3, 7, 40):
        for shown in (left(given, width), right(given, width), strip([(given, "text")], width, Look()).text):
            assert_aligned([shown], width)
        assert hostile.width(clip(given, width)) <= width
        assert strip([(given, "text")], width, LOOKS["ascii"]).text.isascii()


def test_accents_and_other_scripts_stay_as_they_are() -> None:
    for name in ("Größe", "e\u0301te\u0301", "行列積", "Ω·µ", "кернел", "커널", "カーネル"):
        assert printable(name) == name


def test_marks_on_one_letter_are_at_most_three() -> None:
    marks = "\u0301" * 5
    assert printable(f"a{marks}b") == "a\u0301\u0301\u0301��b"


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("panel", panels("traces"), ids=lambda panel: panel.name)
def test_a_panel_over_a_hostile_trace_stays_aligned(runs: tuple[Run, ...], panel: Panel, look: str) -> None:
    stance = Stance(is_at_end=True)
    scene = Scene(None, runs, stance, runs[0].name, partial={}, is_of_traces=True)
    answer = panel.question(scene)
    for size in ((37, 10), (71, 30), (160, 60)):
        frame = Frame(*size, look=LOOKS[look], selected=runs[0].name)
        assert_aligned([strip.text for strip in panel.draw(answer, frame)], size[0])


async def test_the_screen_of_a_hostile_trace_stays_aligned(trace: Path) -> None:
    screen = Traces(Opening(Loading(trace_files(trace).files, jobs=1)), Look(), fps=50)
    app = MeshscopeApp(Options(), lambda _: screen)
    async with app.run_test(size=(120, 40)) as pilot:
        await at_rest(pilot, lambda: screen.is_at_rest)
        assert_screen(app)
        await pilot.press("m")
        for number in "1234567890":
            await pilot.press(number)
            await at_rest(pilot, lambda: screen.is_at_rest)
            assert_screen(app)


async def test_the_timeline_of_a_hostile_trace_stays_aligned(runs: tuple[Run, ...]) -> None:
    found = lanes(runs[0])
    assert found is not None
    subject = Subject(found, waiting(runs[0]), runs[0].name)
    app = MeshscopeApp(Options(), lambda _: Timeline(subject, Look()))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        for key in ("n", "down", "n", "n", "end", "plus", "plus", "n", "b"):
            await pilot.press(key)
            await pilot.pause()
            assert_screen(app)


async def test_two_hostile_traces_side_by_side_stay_aligned(runs: tuple[Run, ...]) -> None:
    one = [figures(run) for run in runs]
    app = MeshscopeApp(Options(), lambda _: Compare(changes(one, one), Look()))
    async with app.run_test(size=(100, 60)) as pilot:
        await pilot.pause()
        assert_screen(app)


async def test_hostile_folders_on_the_start_screen_stay_aligned(tmp_path: Path) -> None:
    for name in hostile.NAMES.values():
        made.write(tmp_path / name.replace("/", "|").replace("\x00", "")[:60], ("ddp",))
    found = shelf([tmp_path])
    screen = Start(Bundled(), found, Look(), open_reel=Gallery)
    app = MeshscopeApp(Options(), lambda _: screen)
    async with app.run_test(size=(180, 40)) as pilot:
        await pilot.press("tab")
        await pilot.pause(0.2)
        assert "[red]bold[|]" in text(app)
        assert_screen(app)


async def at_rest(pilot: Pilot[str], holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        await pilot.pause()
        while not holds():
            await asyncio.sleep(0.02)
        await pilot.pause()


@pytest.fixture
def opened(trace: Path) -> Iterator[Terminal]:
    command = ["-m", "meshscope", "open", str(trace)]
    found = Terminal(*command, program=(), size=(120, 40), environ={"MESHSCOPE_CACHE": "off"})
    yield found
    found.close()


@pytest.mark.slow
def test_no_byte_of_a_hostile_trace_steers_the_terminal(opened: Terminal) -> None:
    """All that is written, on every panel, the timeline and the help, and in the line that stays in the shell."""
    opened.wait_for("2 files read")
    for key in ("m", *"1234567890", "m", "f", "\x1b[B", "t", "n", "n", "n", "+", "+", "?", "\x1b", "\x1b"):
        opened.type(key)
        time.sleep(0.6)  # an escape and the key after it must not become one
        opened.read(1.0)
    opened.type("q")
    assert opened.end() == 0
    opened.assert_as_it_was()
    drawn, _, farewell = opened.output.partition(OFF[0])
    hostile.Paper(120, 40).write(drawn)
    assert "bold[/]" in drawn
    hostile.Paper(2000, 2).write(farewell)
    assert "A step takes" in farewell
