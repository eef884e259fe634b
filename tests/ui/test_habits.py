"""Every key of the boards, and what one takes along from them; many steps in one application: starting is slow."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import made
import pytest
from textual.app import App
from textual.screen import Screen

from meshscope.recording.clock import Clock
from meshscope.run import Gallery, Loading, Opening, trace_files
from meshscope.ui import clipboard
from meshscope.ui.app import MeshscopeApp, Options
from meshscope.ui.look import Depth, Look
from meshscope.ui.picture import text
from meshscope.ui.playback import Playback
from meshscope.ui.remembered import Memory
from meshscope.ui.screens.board import Board
from meshscope.ui.screens.traces import Traces
from meshscope.ui.screens.watch import Watch

Staged = Callable[..., Any]


def state(app: App[Any], board: Board) -> dict[str, Any]:
    """All that a key may change."""
    found = {
        "screen": type(app.screen).__name__,
        "selected": board.selected,
        "focused": board._focused,
        "maximised": board._is_maximised,
        "scroll": board._scroll,
        "picked": board._picked,
        "pointed": board._cell is not None,
        "dark": board.look.is_dark,
        "clipboard": app.clipboard,
        "said": board._said[1],
    }
    if isinstance(board, Watch):
        clock = board.playback.clock
        found |= {
            "at_s": (clock.now() - clock.start_unix_ns) // made.S if clock.is_paused else None,
            "speed": clock.speed,
            "ended": clock.is_at_end,
        }
    return found


def keys_of(board: type[Board]) -> set[str]:
    """Every key that is bound, by whichever class."""
    return {
        key.strip()
        for kind in board.__mro__
        if kind.__module__.startswith("meshscope")
        for binding in kind.__dict__.get("BINDINGS", ())
        for key in binding.key.split(",")
    }


# A key, and what it must have changed (only what is named is looked at; "" stands for a change of no state).
Flow = tuple[tuple[str, dict[str, Any]], ...]

MOVING: Flow = (
    ("down", {"selected": "pmap"}),
    ("up", {"selected": "fsdp"}),
    ("j", {"selected": "pmap"}),
    ("k", {"selected": "fsdp"}),
    ("right_square_bracket", {"selected": "pmap"}),
    ("left_square_bracket", {"selected": "fsdp"}),
    ("tab", {"focused": "overlap"}),
    ("shift+tab", {"focused": "split"}),
    ("1", {"focused": "comparison"}),
    ("2", {"focused": "split"}),
    ("3", {"focused": "overlap"}),
    ("4", {"focused": "steptime"}),
    ("5", {"focused": "memory"}),
    ("6", {"focused": "devices"}),
    ("8", {"focused": "waiting"}),
    ("f", {"focused": "findings"}),
    ("7", {"focused": "log"}),
    ("9", {"focused": "findings"}),
    ("0", {"focused": "findings", "said": "No panel 0 here (compiled again): nothing was compiled again."}),
    ("7", {"focused": "log"}),
    ("pageup", {"scroll": 5}),
    ("pagedown", {"scroll": 0}),
    ("m", {"maximised": True}),
    ("escape", {"maximised": False}),
    ("enter", {"maximised": True}),
    ("enter", {"maximised": False}),
    ("ctrl+l", {}),
)
CLOCK: Flow = (
    ("left", {"at_s": 18}),
    ("h", {"at_s": 16}),
    ("l", {"at_s": 18}),
    ("right", {"at_s": 20}),
    ("l", {"at_s": 22}),
    ("shift+right", {"at_s": 32}),
    ("shift+left", {"at_s": 22}),
    ("greater_than_sign", {"speed": 2.0}),
    ("full_stop", {"speed": 4.0}),
    ("less_than_sign", {"speed": 2.0}),
    ("comma", {"speed": 1.0, "said": "×1, once it plays on: space."}),
    ("home", {"at_s": 0}),
    ("left", {"at_s": 0, "said": "This is the beginning of the recording."}),
    ("backspace", {"at_s": 22}),
    ("end", {"ended": True}),
    ("right", {"ended": True, "said": "This is the end of the recording."}),
    ("end", {"ended": True}),
    ("backspace", {"at_s": 22}),
    ("L", {"ended": True}),
    ("backspace", {"at_s": 22}),
    ("space", {"at_s": None}),
    ("space", {"ended": False}),
)
OVER: Flow = (
    ("question_mark", {"screen": "Help"}), ("escape", {"screen": "BOARD"}),
    ("f1", {"screen": "Help"}), ("escape", {"screen": "BOARD"}),
    ("ctrl+p", {"screen": "Palette"}), ("escape", {"screen": "BOARD"}),
    ("x", {"screen": "Choosing"}), ("escape", {"screen": "BOARD"}),
    ("s", {"screen": "Choosing"}), ("escape", {"screen": "BOARD"}),
    ("t", {"screen": "Timeline"}), ("escape", {"screen": "BOARD"}),
    ("T", {"dark": False}), ("T", {"dark": True}), ("2", {"focused": "split"}),
    ("e", {"pointed": True}), ("e", {"pointed": False}),
    ("y", {"said": "Copied"}),
)  # fmt: skip
BACK: Flow = (
    ("2", {"focused": "split"}),
    ("5", {"focused": "memory"}),
    ("m", {"maximised": True}),
    ("down", {"selected": "pmap"}),
    ("backspace", {"selected": "fsdp", "maximised": True}),
    ("backspace", {"focused": "memory", "maximised": False}),
    ("backspace", {"focused": "split"}),
)
THERE: Flow = (
    ("K", {"focused": "kernels"}), ("P", {"focused": "path"}), ("I", {"focused": "idle"}), ("g", {}),
    ("c", {"screen": "Strategies"}), ("escape", {"screen": "BOARD"}),
)  # fmt: skip
"""Panels and a screen with a letter of their own, on boards that have them."""

PROFILE: Flow = (("p", {"said": "nothing to profile"}),)
LEAVING = {"q", "ctrl+c", "ctrl+q"}  # tested where leaving is
ASKING = {"e", "t", "y", "x"}  # these need the answers of panels


async def walk(stage: Any, board: Board, flow: Flow) -> None:
    """Press each key and wait for what it must change."""
    for number, (key, expected) in enumerate(flow):
        if key in ASKING:
            await stage.rest()
        stage.app.simulate_key(key)
        await asyncio.sleep(0)
        for name, told in expected.items():
            wanted = type(board).__name__ if told == "BOARD" else told
            for _ in range(400):
                found = state(stage.app, board)[name]
                if wanted in found if name == "said" else wanted == found:
                    break
                await asyncio.sleep(0.01)
            else:
                pytest.fail(f"after {key} (number {number}) {name} is {found!r}, not {wanted!r}")


async def test_every_key_of_the_watch_screen_does_what_it_says(folder: Path, staged: Staged) -> None:
    async with staged(folder, at_ns=20 * made.S) as stage:
        assert stage.watch.selected == "fsdp"
        there = tuple(step for step in THERE if step[0] in keys_of(Watch))
        flows = (MOVING, PROFILE, there, OVER, BACK, CLOCK)
        for flow in flows:
            await walk(stage, stage.watch, flow)
    pressed = {key for flow in flows for key, _ in flow}
    assert keys_of(Watch) - pressed == LEAVING


@pytest.mark.slow
async def test_every_key_of_the_traces_screen_does_what_it_says(folder: Path) -> None:
    opening = Opening(Loading(trace_files(folder / "ddp").files + trace_files(folder / "fsdp").files))
    screen = Traces(opening, Look(), fps=50)
    app = MeshscopeApp(Options(), lambda _: screen)
    async with app.run_test(size=(120, 40)) as pilot:
        stage = _Traced(app, pilot, screen)
        await stage.rest()
        first, second = screen.scene.strategies[:2]
        moving: Flow = (
            ("down", {"selected": second}), ("up", {"selected": first}), ("j", {"selected": second}),
            ("k", {"selected": first}), ("right_square_bracket", {"selected": second}),
            ("left_square_bracket", {"selected": first}), ("tab", {"focused": "overlap"}),
            ("shift+tab", {"focused": "split"}),
            ("1", {"focused": "traces"}), ("2", {"focused": "split"}), ("3", {"focused": "overlap"}),
            ("5", {"focused": "overlap"}), ("6", {"focused": "overlap"}), ("7", {"focused": "overlap"}),
            ("8", {"focused": "waiting"}), ("9", {"focused": "findings"}), ("0", {"focused": "findings"}),
            ("2", {"focused": "split"}), ("f", {"focused": "findings"}),
            ("4", {"focused": "files"}), ("pageup", {"scroll": 5}), ("pagedown", {"scroll": 0}),
            ("m", {"maximised": True}), ("escape", {"maximised": False}), ("enter", {"maximised": True}),
            ("enter", {"maximised": False}), ("ctrl+l", {}), ("2", {"focused": "split"}),
            ("4", {"focused": "files"}), ("backspace", {"focused": "split"}),
            ("e", {"pointed": True}), ("left", {"pointed": True}), ("right", {"pointed": True}),
            ("l", {"pointed": True}), ("h", {"pointed": True}), ("escape", {"pointed": False}),
        )  # fmt: skip
        there = tuple(step for step in THERE if step[0] in keys_of(Traces))
        for flow in (moving, there, OVER):
            await walk(stage, screen, flow)
    pressed = {key for flow in (moving, there, OVER) for key, _ in flow}
    assert keys_of(Traces) - pressed == LEAVING


class _Traced:
    def __init__(self, app: MeshscopeApp, pilot: Any, screen: Traces) -> None:
        self.app, self.pilot, self.screen = app, pilot, screen

    async def rest(self) -> None:
        await self.pilot.pause()
        while not self.screen.is_at_rest:
            await self.pilot.pause(0.01)
        await self.pilot.pause()


# Taking along


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder."""
    found = tmp_path / "here"
    found.mkdir()
    monkeypatch.chdir(found)
    return found


async def test_what_is_copied_exported_and_saved_is_what_is_selected(folder: Path, staged: Staged, here: Path) -> None:
    async with staged(folder) as stage:
        await stage.press("1", "down", "y")
        heads, row = stage.app.clipboard.split("\n")
        assert heads.split("\t")[0] == "strategy"
        assert row.split("\t")[0] == "fsdp"
        assert "Copied 1 row of “strategies”, with headings." in stage.text()
        await stage.press("2", "y")
        assert len(stage.app.clipboard.splitlines()) == 1 + 2 * made.RANKS
        assert f"Copied all {2 * made.RANKS} rows of “where a step goes, by rank”, with headings." in stage.text()
        await stage.press("e", "down", "y", "escape")
        assert {line.split("\t")[0] for line in stage.app.clipboard.splitlines()[1:]} == {"1"}

        await stage.press("x", "c")
        await stage.press("x", "down", "enter")
        assert "Saved meshscope-split-fsdp-" in stage.text()
        tables, objects = list(here.glob("meshscope-split-fsdp-*.csv")), list(here.glob("meshscope-split-fsdp-*.json"))
        assert len(tables) == len(objects) == 1
        rows = list(csv.DictReader(tables[0].open(encoding="utf-8")))
        told = json.loads(objects[0].read_text(encoding="utf-8"))
        assert [int(row["span_ns"]) for row in rows] == [row["span_ns"] for row in told["rows"]]
        assert told["of"] == "fsdp"
        assert "steps" in told["stands_on"]

        await stage.press("s", "t")
        (saved,) = here.glob("meshscope-2*.txt")
        assert "save the screen" not in saved.read_text(encoding="utf-8")  # the dialog is gone by then
        assert "where a step goes, by rank" in saved.read_text(encoding="utf-8")
        *_, time, memory = saved.read_text(encoding="utf-8").splitlines()
        assert time == "textures of time: █ compute  ▒ hidden under compute  ░ exposed communication  · idle"
        assert memory.startswith("textures of memory: ▓ parameters  ╬ gradients  ≡ optimizer  ▄ activations")
        await stage.press("s", "v")
        (drawn,) = here.glob("meshscope-2*.svg")
        assert drawn.read_text(encoding="utf-8").startswith("<svg")
        assert "plain text" not in drawn.read_text(encoding="utf-8")


async def test_a_folder_that_is_not_there_is_said_in_a_line(folder: Path, staged: Staged, here: Path) -> None:
    async with staged(folder) as stage:
        for keys in (("x", "c"), ("s", "v"), ("s", "t")):
            here.rmdir() if here.exists() else None
            await stage.press(*keys)
            assert "cannot be written" in stage.text()
            assert stage.app.is_running


async def test_a_panel_without_an_answer_gives_its_words_and_exports_nothing(
    folder: Path, staged: Staged, here: Path
) -> None:
    async with staged(folder, at_ns=made.S // 10) as stage:
        await stage.press("2", "y")
        assert "Fills with the first profiled steps" in stage.app.clipboard
        await stage.press("x")
        assert "has no numbers to export yet" in stage.text()
        assert list(here.iterdir()) == []


# The palette


async def test_the_palette_finds_a_command_and_does_it(folder: Path, staged: Staged) -> None:
    async with staged(folder, look=Look(is_ascii=True, depth=Depth.NONE)) as stage:
        await stage.pilot.press("ctrl+p", *"memo")
        await stage.pilot.pause()
        assert "> Panel: memory by category, per rank" in stage.text()
        assert stage.text().isascii()
        await stage.press("enter")
        assert stage.watch._focused == "memory"
        await stage.pilot.press("ctrl+p", *"zzz")
        await stage.pilot.pause()
        assert "nothing is called that" in stage.text()
        await stage.press("enter", "escape")
        await stage.pilot.press("ctrl+p", *"quit", "enter")
        await stage.pilot.pause()
        assert not stage.app.is_running or stage.app.return_value


async def test_the_palette_names_everything_that_keys_do(folder: Path, staged: Staged) -> None:
    async with staged(folder) as stage:
        commands = {one.title: one for one in stage.app.commands()}
        titles = " ".join(commands)
        for word in ("Copy", "Export", "Save", "Timeline", "Findings", "Explain", "Profile now", "Quit", "Help",
                     "Picture", "Light colours", "ASCII", "Forget settings", "Back", "Newest", "Faster"):  # fmt: skip
            assert word in titles
        assert sum(title.startswith("Panel: ") for title in commands) == len(stage.watch._shown())
        commands["Panel: log"].run()
        commands["Light colours"].run()
        await stage.rest()
        assert (stage.watch._focused, stage.watch.look.is_dark) == ("log", False)


# Settings


async def test_what_was_chosen_is_there_the_next_time(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "config" / "screens.json"
    async with _board(folder, Memory(path)) as (app, board, pilot):
        await pilot.press("5", "m", "T", "greater_than_sign")
        await pilot.pause()
        assert not board.look.is_dark
    kept = json.loads(path.read_text())
    assert kept == {"theme": "light"}
    # As it was left by an earlier version: another recording does not begin with one panel alone.
    path.write_text(json.dumps(kept | {"focused": {"recording": "memory"}, "maximised": {"recording": True}}))
    async with _board(folder, Memory(path)) as (app, board, pilot):
        assert (board._focused, board._is_maximised, board.playback.clock.speed) == ("split", False, 1.0)
        await pilot.press("ctrl+p", *"forget", "enter")
        await pilot.pause()
        assert "Forgotten" in text(app)
        assert not path.exists()
        await pilot.press("escape", "7")
        await pilot.pause()
    assert not path.exists()


async def test_a_board_that_was_only_looked_at_writes_nothing(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "screens.json"
    path.write_text("{broken")
    async with _board(folder, Memory(path)) as (app, _, pilot):
        await pilot.pause(0.1)
        assert "Settings were damaged" in text(app)
    assert not path.exists()
    assert (tmp_path / "screens.json.damaged").read_text() == "{broken"


@contextlib.asynccontextmanager
async def _board(folder: Path, memory: Memory) -> Any:
    playback = Playback(folder, Gallery(folder), Clock())
    playback.hold_at(playback.clock.start_unix_ns + 20 * made.S)
    board = Watch(playback, Look(), fps=50)
    app = MeshscopeApp(Options(memory=memory), lambda _: board)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        while not board.is_at_rest:
            await pilot.pause(0.01)
        await pilot.pause()
        yield app, board, pilot


# The clipboard


def test_what_a_terminal_cannot_take_is_left_out_line_by_line_and_said() -> None:
    lines = ["x" * 999] * 100
    kept = clipboard.fitting("\n".join(lines))
    assert kept == "\n".join(lines[:74])
    assert clipboard.left_out(lines) == "; the first 74 of 100 lines, more than a terminal takes"
    assert clipboard.left_out(lines[:74]) == ""
    assert 73_990 < len(clipboard.fitting("é" * 80_000).encode()) <= clipboard.MOST_BYTES
    assert clipboard.fitting("\ud800") == "?"


def test_tmux_is_given_it_to_pass_through() -> None:
    assert clipboard.passed_through("a\tb", {}) == ""
    encoded = base64.b64encode(b"a\tb").decode()
    assert clipboard.passed_through("a\tb", {"TMUX": "/tmp/tmux"}) == f"\x1bPtmux;\x1b\x1b]52;c;{encoded}\a\x1b\\"


async def test_every_screen_copies_no_more_than_a_terminal_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMUX", "/tmp/tmux")
    app = MeshscopeApp(Options(), lambda _: Screen())
    async with app.run_test() as pilot:
        written: list[str] = []
        monkeypatch.setattr(app._driver, "write", written.append)
        app.copy_to_clipboard("line\n" * 50_000)
        await pilot.pause()
        assert len(app.clipboard) <= clipboard.MOST_BYTES
        assert [text[:9] for text in written if "]52;" in text] == ["\x1b]52;c;bG", "\x1bPtmux;\x1b\x1b"]
