"""A question with a few answers: a key each, arrows and enter, or a click."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_lowercase
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType

from meshscope.ui.canvas import Canvas
from meshscope.ui.look import Look
from meshscope.ui.marks.cells import Line, Piece
from meshscope.ui.screens.dialog import Dialog

PICTURES = (("v", "picture (SVG)", "svg"), ("t", "plain text", "txt"))
"""What a screen can be saved as."""


class Choosing(Dialog, inherit_bindings=False):
    """``choices`` are (key, words, answer); escape and q answer None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,left,shift+tab", "move(-1)", show=False),
        Binding("down,right,tab", "move(1)", show=False),
        Binding("enter,space", "choose", show=False),
        Binding("escape", "answer(None)", show=False),
        Binding("ctrl+c,ctrl+q", "answer(None)", show=False, priority=True),
        # Bound, not listened for: a key that was typed ahead comes by way of the screen below.
        *(Binding(letter, f"pick('{letter}')", show=False) for letter in ascii_lowercase),
    ]

    def __init__(self, title: str, choices: Sequence[tuple[str, str, str]], look: Look) -> None:
        self._choices = choices
        self._at = 0
        super().__init__(title, self._drawn(), look)

    def _drawn(self) -> list[Line]:
        lines: list[Line] = []
        for index, (key, words, _) in enumerate(self._choices):
            is_here = index == self._at
            mark: Piece = ("▸ " if is_here else "  ", "accent")
            lines.append([mark, (key, "key"), ("  " + words, "strong" if is_here else "text")])
        return [*lines, [], [("  esc", "key"), ("  neither", "quiet")]]

    def action_pick(self, letter: str) -> None:
        """The answer with that key; q answers None where it is no key of its own."""
        answer = next((answer for key, _, answer in self._choices if key == letter), None)
        if answer is not None or letter == "q":
            self.dismiss(answer)

    def on_click(self, event: events.Click) -> None:
        row = event.screen_y - self.query_one(Canvas).region.y - 1
        if 0 <= row < len(self._choices):
            self.dismiss(self._choices[row][2])

    def action_move(self, by: int) -> None:
        self._at = (self._at + by) % len(self._choices)
        self._lines = self._drawn()
        self.show()

    def action_choose(self) -> None:
        self.dismiss(self._choices[self._at][2])
