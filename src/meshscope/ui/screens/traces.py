"""Traces opened by themselves: the same panels over what is known so far, while their files are read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, cast

from textual.binding import Binding, BindingType

from meshscope.analysis.traced import sentence
from meshscope.run import Opening, Seen, SoFar
from meshscope.ui import header, progress
from meshscope.ui.commands import Command
from meshscope.ui.look import Look
from meshscope.ui.marks.cells import Line, Piece
from meshscope.ui.panels import traces
from meshscope.ui.panels.traces import Table
from meshscope.ui.scene import Scene, Stance
from meshscope.ui.screens.dialog import TRACE_KEYS
from meshscope.ui.screens.help import Pairs
from meshscope.ui.screens.keeping import Keeping
from meshscope.ui.view import PanelView

if TYPE_CHECKING:
    from meshscope.ui.app import MeshscopeApp

INTERRUPTED = 130
"""What a shell is told by a command that Ctrl-C ended."""

_STILL = Stance(is_at_end=True)


def _said(seen: Seen) -> tuple[object, ...]:
    """What panels may show of it; the rest is how far the reading is, which only the header tells."""
    return (seen.number, seen.refused, seen.notes, seen.so_far.is_done)


class Traces(Keeping):
    """Looks at an opening several times a second until all is read; leaving ends the reading at once."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+c", "interrupt", show=False, priority=True)]

    def __init__(self, opening: Opening, look: Look, *, fps: float = 4.0) -> None:
        super().__init__(look, Scene(None, (), _STILL, is_of_traces=True), of="traces", fps=fps)
        self.opening = opening
        self._seen = opening.seen()
        self._drawn: Seen | None = None

    def on_mount(self) -> None:
        self._refresh()
        self.opening.start()
        self._tick()
        self.tick_at(self._fps)

    def on_unmount(self) -> None:
        self.opening.close()

    @property
    def table(self) -> Table | None:
        """The newest rows of all runs."""
        answered = self._view(self._panels[0]).asking.answers.get("")
        return cast("Table", answered.answer) if answered is not None and answered.error is None else None

    @property
    def so_far(self) -> SoFar:
        return self._seen.so_far

    @property
    def is_at_rest(self) -> bool:
        """Whether all is read and everything that is known has been drawn."""
        seen = self.opening.seen()
        return seen is self._drawn and seen.so_far.is_done and self.is_explained and self.is_told

    @property
    def selected(self) -> str:
        names = self.scene.strategies
        return self._choice if self._choice in names and self._choice else names[0] if names else ""

    def _tick(self) -> None:
        self._fall_silent()
        seen = self.opening.seen()
        before = self._drawn
        if seen is before:
            return
        self._seen = self._drawn = seen
        if before is None or _said(before) != _said(seen):
            told = Scene(None, seen.runs, _STILL, partial=seen.partial, refused=seen.refused, notes=seen.notes)
            self._look_at(replace(told, is_of_traces=True, is_read=seen.so_far.is_done))
        else:
            self._refresh_header()

    # Drawing

    def header_height(self, width: int) -> int:
        return header.height(width)

    def header_lines(self, width: int) -> list[Line]:
        return progress.lines(self.scene, self.table, self._seen, width, self.header_height(width))

    def footer_line(self, width: int, *, is_small: bool) -> list[Piece]:
        if self._cell is not None:
            return self.explaining_footer(width)
        return progress.footer(width, self.look, runs=len(self.scene.runs), is_small=is_small, grip=self.grip)

    def table_height(self) -> int:
        return traces.height(self.table) + 2

    # Keys

    @property
    def help_keys(self) -> Pairs:
        return TRACE_KEYS

    def commands(self) -> Iterator[Command]:
        yield from super().commands()
        yield Command("Quit", "Leave; reading ends", self.action_leave, "q")

    def action_leave(self) -> None:
        cast("MeshscopeApp", self.app).leave_with(self.farewell)

    def action_interrupt(self) -> None:
        """As leaving; while files are being read the shell is told that they were not read to the end."""
        code = 0 if self.so_far.is_done else INTERRUPTED
        cast("MeshscopeApp", self.app).leave_with(self.farewell, code=code)

    @property
    def farewell(self) -> str:
        """The line that stays in the shell."""
        table = self.table
        found = table.of(self.scene.selected) if table is not None else None
        if found is None:
            return ""
        said = sentence(found)
        return f"{found.name}, {self.scene.caveat}: {said}" if self.scene.caveat else f"{found.name}: {said}"

    def on_panel_view_clicked(self, message: PanelView.Clicked) -> None:
        if self.is_pointed_at(message):
            return
        self.focus_on(message.panel.name)
        if message.panel.is_overall and self.table is not None and self._placed is not None:
            rect = self._placed.panels.get(message.panel.name)
            height = rect.height - 1 if rect is not None else 0
            name = traces.name_at(self.table, message.line, height, self.scene.selected)
            if name:
                self.choose(name)
