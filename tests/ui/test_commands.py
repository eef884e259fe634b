"""Dialogs that answer: by letter, by name, by click, and in the order in which keys were typed."""

from __future__ import annotations

from typing import Any

import pytest
from textual.screen import Screen

from meshscope.ui.app import MeshscopeApp, Options
from meshscope.ui.commands import Command, matching
from meshscope.ui.look import Look
from meshscope.ui.picture import text
from meshscope.ui.screens.choosing import Choosing
from meshscope.ui.screens.palette import Palette
from meshscope.ui.screens.scrolled import Scrolled
from meshscope.ui.switching import FPS, respelt, stepped, turned

COMMANDS = tuple(
    Command(title, about, lambda: None)
    for title, about in (("Panel: log", "what happened"), ("Export the panel", "as CSV"), ("Quit", "leave"))
)


@pytest.mark.parametrize(
    ("typed", "titles"),
    [
        ("", ["Panel: log", "Export the panel", "Quit"]),
        ("exp", ["Export the panel"]),
        ("QU", ["Quit"]),
        ("csv", ["Export the panel"]),  # by what it says, where no title holds the letters
        ("xyz", []),
    ],
)
def test_typed_letters_find_commands(typed: str, titles: list[str]) -> None:
    assert [one.title for one in matching(COMMANDS, typed)] == titles


class _Asking(Screen[None]):
    """Asks something and keeps the answers."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: list[str | None] = []

    def ask(self, asked: Screen[Any]) -> None:
        self.app.push_screen(asked, self.answers.append)


async def test_dialogs_answer_by_letter_arrows_name_and_click() -> None:
    screen = _Asking()
    app = MeshscopeApp(Options(), lambda _: screen)
    choices = (("c", "CSV", "csv"), ("j", "JSON", "json"))
    async with app.run_test(size=(80, 24)) as pilot:
        for keys, answer in (("j", "json"), ("enter", "csv"), ("down,enter", "json"), ("up,space", "json"),
                             ("z,escape", None), ("q", None)):  # fmt: skip
            screen.ask(Choosing("export", choices, Look()))
            await pilot.press(*keys.split(","))
            await pilot.pause()
            assert screen.answers.pop() == answer, keys
        screen.ask(Choosing("export", choices, Look()))
        await pilot.pause()
        await pilot.click("#dialog", offset=(4, 2))
        await pilot.pause()
        assert screen.answers.pop() == "json"

        # All at once, before the dialog was there: as over a slow line.
        screen.ask(Palette(COMMANDS, Look()))
        for key in ("e", "x", "p", "enter"):
            app.simulate_key(key)
        await pilot.pause(0.2)
        assert screen.answers.pop() == "Export the panel"
        screen.ask(Palette(COMMANDS, Look()))
        await pilot.press("q", "u", "x", "backspace", "down", "enter")
        await pilot.pause()
        assert screen.answers.pop() == "Quit"
        screen.ask(Palette(COMMANDS, Look()))
        await pilot.pause()
        await pilot.click("#dialog", offset=(4, 4))
        await pilot.pause()
        assert screen.answers.pop() == "Quit"


class _Long(Scrolled):
    def body(self, width: int) -> list[Any]:
        return [[(f"line {number}", "text")] for number in range(100)]


async def test_a_long_text_scrolls_to_both_ends_and_no_further() -> None:
    app = MeshscopeApp(Options(), lambda _: _Long("long", Look()))
    async with app.run_test(size=(80, 24)) as pilot:
        steps = (("up", 0), ("down", 1), ("pagedown", 21), ("end", 80), ("down", 80), ("pageup", 60), ("home", 0))
        for key, first in steps:
            await pilot.press(key)
            await pilot.pause()
            shown = text(app)
            assert f"lines {first + 1}–{first + 20} of 100" in shown
            assert f"line {first} " in shown


def test_what_is_switched_goes_back_and_stays_within_what_there_is() -> None:
    look = Look()
    assert turned(turned(look)) == look
    assert respelt(respelt(look)) == look
    assert stepped(4.0, 1) == 8.0
    assert stepped(FPS[-1], 1) == FPS[-1]
    assert stepped(0.6, -1) == FPS[0]
