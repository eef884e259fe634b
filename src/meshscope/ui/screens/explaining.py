"""A board whose numbers can be asked about: ``e`` puts a cursor on them, enter says what one is made of."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.binding import Binding, BindingType

from meshscope.errors import InputError, MeshscopeError
from meshscope.run import Run
from meshscope.ui.asking import in_thread
from meshscope.ui.keybar import pointed_at
from meshscope.ui.later import later, loading
from meshscope.ui.look import Look
from meshscope.ui.marks.cells import Piece, named
from meshscope.ui.marks.cited import Cell, Spot, moved
from meshscope.ui.scene import Scene
from meshscope.ui.screens.timelining import Timelining
from meshscope.ui.view import PanelView
from meshscope.units import printable

if TYPE_CHECKING:
    from meshscope.analysis.explaining.number import Explanation
    from meshscope.ui.screens.explained import Explained

NOTHING = "No number here can be explained."


class Explaining(Timelining):
    """Arrows move the cursor among the numbers of the panel that has the focus, and among panels with tab."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("e", "explain", "explain", show=False),
        Binding("left,h", "along(-1)", show=False),
        Binding("right,l", "along(1)", show=False),
        Binding("enter", "enter", "maximise", show=False),
    ]

    def __init__(self, look: Look, scene: Scene, *, of: str, fps: float) -> None:
        super().__init__(look, scene, of=of, fps=fps)
        self._cell: Cell | None = None
        self._one_question = asyncio.Lock()

    @property
    def is_explained(self) -> bool:
        """Whether nothing is being worked out for an explanation."""
        return not self._one_question.locked()

    # What heirs say

    def along(self, by: int) -> None:
        """What the arrows to the sides do while there is no cursor."""
        self.say("There is no clock here to move; e puts a cursor on the numbers.")

    # The cursor

    @property
    def spots(self) -> list[Spot]:
        """The numbers of the panel that has the focus, as they are drawn now."""
        return self._view(self._panel(self._focused)).spots if self._placed is not None else []

    def lit_cell(self, view: PanelView) -> Cell | None:
        if self._cell is None or view.panel.name != self._focused:
            return None
        return self._cell

    def action_explain(self) -> None:
        if self._cell is not None:
            self._point_at(None)
        elif self.spots:
            self._point_at(self._nearest())
        else:
            self.say(NOTHING)

    def _nearest(self) -> Cell:
        """The first number, in a table of runs that of the run that is looked at."""
        mine = [spot for spot in self.spots if spot.cell.run == self.scene.selected]
        return (mine or self.spots)[0].cell

    def _point_at(self, cell: Cell | None) -> None:
        self._cell = cell
        self._show(self._view(self._panel(self._focused)))
        self._refresh_header()

    def _move(self, *, down: int = 0, along: int = 0) -> None:
        found = self.spots
        if self._cell is not None and found:
            self._point_at(moved(found, self._cell, down=down, along=along))

    def focus_on(self, name: str) -> None:
        is_asking, self._cell = self._cell is not None, None
        super().focus_on(name)
        if is_asking and self.spots:
            self._point_at(self._nearest())
        elif is_asking:
            self.say(NOTHING)

    # Keys

    def action_select(self, by: int) -> None:
        if self._cell is None:
            super().action_select(by)
        else:
            self._move(down=by)

    def action_along(self, by: int) -> None:
        if self._cell is None:
            self.along(by)
        else:
            self._move(along=by)

    def action_enter(self) -> None:
        if self._cell is None:
            self.action_maximise()
        else:
            self.explain(self._cell)

    def action_restore(self) -> None:
        if self._cell is None:
            super().action_restore()
        else:
            self._point_at(None)

    def is_pointed_at(self, message: PanelView.Clicked) -> bool:
        """Whether a click was for a number; then it is explained."""
        if self._cell is None or message.cell is None:
            return False
        self._focused = message.panel.name
        self._point_at(message.cell)
        self.explain(message.cell)
        return True

    # Asking

    def explain(self, cell: Cell) -> None:
        """Open a dialog for a number, and work it out beside the screen."""
        screen = later(explaining, self.say)
        if screen is None:
            return
        name = cell.run or self.scene.selected
        rank = f", rank {cell.rank}" if cell.rank >= 0 else ""
        caveat = self.scene.looking_at(name).caveat
        dialog = screen(printable(f"{cell.number} of {name}{rank}"), self.look, caveat=caveat)
        self.app.push_screen(dialog)
        self._work_out(dialog, cell, name, self.scene.runs)

    @work(exclusive=False, group="explanation")
    async def _work_out(self, dialog: Explained, cell: Cell, name: str, runs: tuple[Run, ...]) -> None:
        # One question in flight, as for every panel: a dialog that was closed meanwhile is not asked for.
        async with self._one_question:
            if not dialog.is_attached:
                return
            found = await in_thread(lambda: explained(runs, name, cell))
        if dialog.is_attached:
            dialog.tell(found)

    def explaining_footer(self, width: int) -> list[Piece]:
        """The keys while there is a cursor, and what it is on."""
        cell = self._cell or Cell("")
        keys = [(named("↑↓ ←→", self.look), "number"), ("enter", "explain"), ("tab", "panel"), ("esc", "done")]
        return pointed_at(keys, cell, cell.run or self.scene.selected, width)


def explaining() -> type[Explained]:
    """The dialog for an explanation."""
    # Loaded once somebody asks: the first drawing does not wait for it.
    from meshscope.ui.screens.explained import Explained

    return Explained


def explained(runs: tuple[Run, ...], name: str, cell: Cell) -> Explanation | MeshscopeError:
    """What a number of the run called ``name`` is made of, or why that cannot be said."""
    run = next((run for run in runs if run.name == name), None)
    if run is None:
        return InputError(f"{name} has not started yet.", hint="Its numbers appear with its first step.")
    try:
        with loading():
            from meshscope.analysis.explaining import explanations

        return next(iter(explanations(runs, cell.number, of=name, rank=cell.rank if cell.rank >= 0 else None)))
    except MeshscopeError as error:
        return error
