"""A screen whose table can be taken along: copied by row, exported, and saved as it is drawn, in either look."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, ClassVar, cast

from textual.binding import Binding, BindingType
from textual.screen import Screen

from meshscope.ui.commands import Command
from meshscope.ui.exporting import FORMATS, Subject, copied, exported
from meshscope.ui.look import Look
from meshscope.ui.screens.choosing import PICTURES, Choosing
from meshscope.ui.sheet import Sheet, chosen
from meshscope.units import counted

if TYPE_CHECKING:
    from meshscope.ui.commanding import Commanding


class Taking(Screen[None]):
    """``y`` copies, ``x`` exports, ``s`` saves the screen, ``T`` turns light or dark."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "copy", show=False),
        Binding("x", "export", show=False),
        Binding("s", "save", show=False),
        Binding("T", "app.turn_light", show=False),
    ]

    def __init__(self, look: Look, title: str) -> None:
        super().__init__()
        self.look = look
        self._title = title

    # What heirs say

    def sheet(self) -> Sheet | None:
        """All that the screen shows as a table; None while there is nothing."""
        raise NotImplementedError

    @property
    def row(self) -> str:
        """The first cell of the row that is chosen."""
        raise NotImplementedError

    def say(self, text: str) -> None:
        """Show a line for a few seconds."""
        raise NotImplementedError

    def draw(self) -> None:
        """Draw everything again."""
        raise NotImplementedError

    # Keys

    def action_copy(self) -> None:
        given = self.sheet()
        if given is None:
            self.say("There is nothing to copy yet.")
            return
        rows = chosen(given, name=self.row)
        text, more = copied(rows)
        self.app.copy_to_clipboard(text)
        self.say(f"Copied {counted(len(rows.rows), 'row')} with headings{more}")

    def action_export(self) -> None:
        given = self.sheet()
        if given is None:
            self.say("There are no numbers to export yet.")
            return
        self.app.push_screen(Choosing(f"export {self._title}", FORMATS, self.look), partial(self._export, given))

    def _export(self, given: Sheet, kind: str | None) -> None:
        if kind is None:
            return
        self.say(exported(given, Subject(self._title, self._title), kind))

    def action_save(self) -> None:
        app = cast("Commanding", self.app)
        self.app.push_screen(Choosing("save the screen", PICTURES, self.look), app.save_screen)

    def wear(self, look: Look) -> None:
        """Be drawn in another look from now on."""
        self.look = look
        self.draw()

    def commands(self) -> Iterator[Command]:
        """What can be taken along, by name."""
        yield Command("Copy the selected row", "With headings, to the clipboard of the terminal", self.action_copy, "y")
        yield Command("Export the table", "As CSV or JSON, at full precision", self.action_export, "x")
        yield Command("Save the screen", "As a picture or as plain text", self.action_save, "s")
