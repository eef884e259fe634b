"""A screen of one table whose numbers can be asked about: ``e`` puts a cursor on them, enter explains one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.binding import Binding, BindingType
from textual.strip import Strip

from meshscope.run import Run
from meshscope.ui.asking import in_thread
from meshscope.ui.keybar import pointed_at
from meshscope.ui.later import later
from meshscope.ui.look import Look
from meshscope.ui.marks.cells import Piece, named
from meshscope.ui.marks.cited import Cell, Spot, lit, moved, spots
from meshscope.ui.screens.explaining import NOTHING, explained, explaining
from meshscope.ui.screens.taking import Taking
from meshscope.units import printable

if TYPE_CHECKING:
    from meshscope.ui.screens.explained import Explained


class Pointing(Taking):
    """Every number names its run; the cursor goes among those that are drawn."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("e", "explain", show=False)]

    def __init__(self, look: Look, title: str) -> None:
        super().__init__(look, title)
        self.cell: Cell | None = None
        self._spots: list[Spot] = []
        self._one_question = asyncio.Lock()

    # What heirs say

    @property
    def runs(self) -> tuple[Run, ...]:
        """All that the table is of."""
        raise NotImplementedError

    # The cursor

    @property
    def is_explained(self) -> bool:
        """Whether nothing is being worked out for an explanation."""
        return not self._one_question.locked()

    def lit(self, drawn: Sequence[Strip]) -> list[Strip]:
        """What was drawn, with the cursor on its number."""
        self._spots = spots(drawn)
        spot = next((spot for spot in self._spots if spot.cell == self.cell), None)
        return [lit(line, spot) if spot is not None and at == spot.line else line for at, line in enumerate(drawn)]

    def point_at(self, cell: Cell | None) -> None:
        self.cell = cell
        self.draw()

    def action_explain(self) -> None:
        """Put the cursor on the first number of the chosen row, or take it away."""
        if self.cell is not None:
            self.point_at(None)
        elif self._spots:
            mine = [spot for spot in self._spots if spot.cell.run == self.row]
            self.point_at((mine or self._spots)[0].cell)
        else:
            self.say(NOTHING)

    def go(self, *, down: int = 0, along: int = 0) -> bool:
        """Take the cursor to another number; False where there is none that way."""
        if self.cell is None or not self._spots:
            return False
        there = moved(self._spots, self.cell, down=down, along=along)
        if there == self.cell:
            return False
        self.point_at(there)
        return True

    def pointed_footer(self, width: int) -> list[Piece]:
        """The keys while there is a cursor, and what it is on."""
        cell = self.cell or Cell("")
        keys = [(named("↑↓ ←→", self.look), "number"), ("enter", "explain"), ("esc", "done")]
        return pointed_at(keys, cell, cell.run, width)

    # Asking

    def explain(self, cell: Cell, *, caveat: str = "") -> None:
        """Open a dialog for a number, and work it out beside the screen."""
        screen = later(explaining, self.say)
        if screen is None:
            return
        dialog = screen(printable(f"{cell.number} of {cell.run}"), self.look, caveat=caveat)
        self.app.push_screen(dialog)
        self._work_out(dialog, cell, self.runs)

    @work(exclusive=False, group="explanation")
    async def _work_out(self, dialog: Explained, cell: Cell, runs: tuple[Run, ...]) -> None:
        async with self._one_question:
            if not dialog.is_attached:
                return
            found = await in_thread(lambda: explained(runs, cell.run, cell))
        if dialog.is_attached:
            dialog.tell(found)
