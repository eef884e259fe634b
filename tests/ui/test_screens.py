"""Whole screens as text, in every look and at three sizes; and what resizing and hostile text do to them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import made
import pytest

from meshscope.ui.look import Depth, Look, look
from meshscope.ui.picture import cells, picture

Staged = Callable[..., Any]
Snapshot = Callable[[str, str], None]
SIZES = [(80, 24), (120, 40), (220, 60)]


@pytest.mark.parametrize("size", SIZES)
async def test_the_screen_at_the_end_looks_as_it_did(
    folder: Path, staged: Staged, snapshot: Snapshot, size: tuple[int, int]
) -> None:
    async with staged(folder, size=size) as stage:
        snapshot(f"screen-ended-{size[0]}x{size[1]}", stage.text())


@pytest.mark.parametrize("size", SIZES)
async def test_the_screen_in_the_middle_looks_as_it_did(
    tmp_path: Path, staged: Staged, snapshot: Snapshot, size: tuple[int, int]
) -> None:
    made.write(tmp_path / "run", made.SIX, endings={"fsdp": made.Ending("failed", 6)})
    async with staged(tmp_path / "run", size=size, at_ns=19 * made.S) as stage:
        snapshot(f"screen-middle-{size[0]}x{size[1]}", stage.text())


LOOKS = {
    "ascii": look({"TERM": "xterm-256color"}, is_ascii=True),
    "locale-c": look({"TERM": "xterm-256color", "LC_ALL": "C"}),
    "linux": look({"TERM": "linux", "LANG": "en_US.UTF-8"}),
    "no-color": look({"TERM": "xterm-256color", "NO_COLOR": "1"}),
}


@pytest.mark.parametrize("name", LOOKS)
async def test_every_look_shows_the_same_screen(folder: Path, staged: Staged, snapshot: Snapshot, name: str) -> None:
    async with staged(folder, look=LOOKS[name]) as stage:
        shown = stage.text()
        assert shown.isascii() is LOOKS[name].is_ascii
        snapshot(f"screen-{name}", shown)


async def test_without_colour_nothing_on_the_screen_has_one(
    folder: Path, staged: Staged, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with staged(folder, look=Look(depth=Depth.NONE)) as stage:
        styles = [segment.style for line in cells(stage.app) for segment in line if segment.style]
        colours = {c.name for style in styles for c in (style.color, style.bgcolor) if c is not None}
        assert colours <= {"default"}


async def test_with_sixteen_colours_no_other_is_used(folder: Path, staged: Staged) -> None:
    async with staged(folder, look=Look(depth=Depth.ANSI16)) as stage:
        styles = [segment.style for line in cells(stage.app) for segment in line if segment.style]
        numbers = {c.number for style in styles for c in (style.color, style.bgcolor) if c is not None}
        assert numbers <= {None, *range(16)}


async def test_resizing_lays_everything_out_again_and_back(folder: Path, staged: Staged) -> None:
    async with staged(folder, size=(120, 40)) as stage:
        before = stage.text()
        for width, height in [(80, 24), (40, 12), (20, 5), (220, 60), (120, 40)]:
            await stage.pilot.resize_terminal(width, height)
            await stage.rest()
            lines = stage.text().splitlines()
            assert len(lines) == height
            assert all(len(line) <= width for line in lines)
        assert stage.text() == before


async def test_a_small_terminal_is_told_politely_and_still_works(folder: Path, staged: Staged) -> None:
    async with staged(folder, size=(72, 20)) as stage:
        assert "80 × 24 shows more" in stage.text()
        await stage.press("down")
        assert "▸✓ fsdp" in stage.text()


HOSTILE = "[red]bold[/] \x1b[2J\x1b]0;owned\x07 \u202ereversed\u2066 [@click=app.bell]x[/] \r\n\x9b31m end"


@pytest.mark.parametrize("size", SIZES)
async def test_text_from_a_recording_steers_nothing_and_is_no_markup(
    tmp_path: Path, staged: Staged, size: tuple[int, int]
) -> None:
    made.write(tmp_path / "run", hostile=HOSTILE)
    async with staged(tmp_path / "run", size=size) as stage:
        await stage.press("7", "enter")
        shown = stage.text()
        assert "[red]bold[/]" in shown
        assert "[@click=app.bell]x[/]" in shown
        assert not any(ord(c) < 0x20 and c != "\n" for c in shown)
        assert not any(c in shown for c in "\x7f\x9b\u202e\u2066\u2028")
        assert "owned" not in (stage.app.title or "")


async def test_hostile_names_of_strategies_devices_and_ranks_steer_nothing_either(
    tmp_path: Path, staged: Staged, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(made.SHAPES, "\x1b[31mevil", made.SHAPES["ddp"])
    made.write(tmp_path / "run", ("\x1b[31mevil",), folders={"\x1b[31mevil": "evil"})
    async with staged(tmp_path / "run") as stage:
        assert "\x1b" not in stage.text()
        assert "�[31mevil" in stage.text()


async def test_a_screen_becomes_an_svg_picture_with_its_words_and_textures(folder: Path, staged: Staged) -> None:
    async with staged(folder) as stage:
        drawn = picture(stage.app, title="a < b")
    assert drawn.startswith("<svg ")
    assert drawn.endswith("</svg>\n")
    assert "<title>a &lt; b</title>" in drawn
    assert ">strategies</text>" in drawn
    assert drawn.count("<pattern ") >= 4


async def test_a_picture_is_well_formed_whatever_is_written(tmp_path: Path, staged: Staged) -> None:
    from xml.etree import ElementTree as ET

    made.write(tmp_path / "run", hostile=HOSTILE + " <script>&amp;")
    async with staged(tmp_path / "run") as stage:
        await stage.press("7", "enter")
        root = ET.fromstring(picture(stage.app))
    assert root.tag.endswith("svg")


async def test_every_cell_of_a_run_of_part_blocks_is_drawn() -> None:
    from textual.app import App, ComposeResult
    from textual.widgets import Static

    class Blocks(App[None]):
        def compose(self) -> ComposeResult:
            yield Static("▌▌▌▌▌")

    app = Blocks()
    async with app.run_test(size=(20, 3)):
        assert picture(app).count('height="') >= 5 + 1
