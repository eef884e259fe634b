"""A board whose numbers can be taken along: copied, exported, saved as they are drawn; and all it can do, by name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, ClassVar, cast

from textual.binding import Binding, BindingType

from meshscope.ui import clipboard
from meshscope.ui.asking import Answered
from meshscope.ui.commands import Command
from meshscope.ui.exporting import FORMATS, Subject, as_tabs, exported
from meshscope.ui.look import Look
from meshscope.ui.screens.choosing import PICTURES, Choosing
from meshscope.ui.screens.help import Help, Pairs
from meshscope.ui.screens.jumping import Jumping
from meshscope.ui.sheet import Sheet, chosen
from meshscope.units import counted

if TYPE_CHECKING:
    from meshscope.ui.commanding import Commanding


class Keeping(Jumping):
    """``y`` copies, ``x`` exports, ``s`` saves; ``?`` explains the panel that has the focus."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "copy", "copy", show=False),
        Binding("x", "export", "export", show=False),
        Binding("s", "save", "save", show=False),
        Binding("T", "app.turn_light", "light or dark", show=False),
    ]

    # What heirs say

    @property
    def help_keys(self) -> Pairs:
        """The keys that the help lists, with what they do."""
        raise NotImplementedError

    # Copying and exporting

    def sheet(self, name: str) -> Sheet | None:
        """The newest answer of a panel as a table; None while there is none."""
        answered = self._newest(name)
        panel = self._panel(name)
        if answered is None or answered.error is not None or panel.data is None:
            return None
        return panel.data(panel.turned(answered.answer, self._turns.get(name, 0)))

    def _newest(self, name: str) -> Answered | None:
        panel = self._panel(name)
        subject = "" if panel.is_overall else self.scene.selected
        return self._view(panel).asking.answers.get(subject)

    def action_copy(self) -> None:
        """The selected row of the panel that has the focus; all of its rows where none is; else its lines."""
        panel = self._panel(self._focused)
        given = self.sheet(panel.name)
        if given is None or not given.rows:
            lines = [line.rstrip() for line in self._view(panel).lines[1:] if line.strip()]
            what = f"what stands in “{panel.title}”"
        else:
            rows = self._selected_rows(given)
            lines = as_tabs(rows)
            every = "all " if len(rows.rows) == len(given.rows) > 1 else ""
            what = f"{every}{counted(len(rows.rows), 'row')} of “{panel.title}”, with headings"
        self.app.copy_to_clipboard("\n".join(lines))
        tmux = f"; {clipboard.TMUX}" if os.environ.get("TMUX") else ""
        self.say(f"Copied {what}{clipboard.left_out(lines)}{tmux}.")

    def _selected_rows(self, given: Sheet) -> Sheet:
        panel = self._panel(self._focused)
        if panel.is_overall:
            return chosen(given, name=(self._cell.run if self._cell else "") or self.scene.selected)
        if self._chooses_within:
            return chosen(given, at=self._picked)
        return chosen(given, rank=self._cell.rank if self._cell is not None else -1)

    def action_export(self) -> None:
        """Ask for a format, then write what the panel shows now."""
        panel = self._panel(self._focused)
        given = self.sheet(panel.name)
        if given is None or not (given.rows or given.about):
            self.say(f"“{panel.title}” has no numbers to export yet.")
            return
        answered = self._newest(panel.name)
        of = "" if panel.is_overall else self.scene.selected
        stands_on = panel.fresh(answered.answer).of if answered is not None else ""
        mark = self.scene.overall_mark if panel.is_overall else self.scene.mark
        caveats = ("" if panel.is_overall else self.scene.caveat, mark)
        subject = Subject(panel.name, panel.title, of, stands_on, "; ".join(filter(None, caveats)), mark)
        asked = Choosing(f"export {panel.title}", FORMATS, self.look)
        self.app.push_screen(asked, partial(self._export, given, subject))

    def _export(self, given: Sheet, subject: Subject, kind: str | None) -> None:
        if kind is None:
            return
        self.say(exported(given, subject, kind))

    def action_save(self) -> None:
        """Ask whether as a picture or as text, then save the screen."""
        app = cast("Commanding", self.app)
        self.app.push_screen(Choosing("save the screen", PICTURES, self.look), app.save_screen)

    # Help, looks, and commands by name

    def action_help(self) -> None:
        self.app.push_screen(Help(self.look, self.help_keys, self._panel(self._focused)))

    def wear(self, look: Look) -> None:
        """Be drawn in another look from now on."""
        self.look = look
        self._refresh()

    def commands(self) -> Iterator[Command]:
        """What this board can do, the panels by name among it."""
        for panel in self._shown():
            yield Command(f"Panel: {panel.title}", panel.promise, partial(self.focus_on, panel.name), panel.sign)
        yield Command("Next run", "Or strategy, whatever has the focus", partial(self.action_select_run, 1), "]")
        yield Command("Previous run", "Or strategy, whatever has the focus", partial(self.action_select_run, -1), "[")
        yield Command("Maximise the panel, and back", "The panel alone on the screen", self.action_maximise, "m")
        yield Command("Group otherwise", "Kernels by name, by module or scope, by phase", self.action_turn, "g")
        yield Command("Explain a number", "A cursor on the numbers; enter says what one is made of",
                      self.action_explain, "e")  # fmt: skip
        yield Command("Findings", "Pitfalls that this run shows, by cost", partial(self.action_focus_named, "findings"),
                      "f")  # fmt: skip
        yield Command("Timeline", "Lanes of all ranks, span by span", self.action_timeline, "t")
        yield Command(
            "Copy the selected row",
            "All rows where none is selected; with headings",
            self.action_copy,
            "y",
        )
        yield Command("Export the panel", "As CSV or JSON, at full precision", self.action_export, "x")
        yield Command("Save the screen", "As a picture or as plain text", self.action_save, "s")
        yield Command("Back", "To the strategy, panel and held time before", self.action_back, "bksp")
        yield Command("Help", "The keys, this panel, and what the textures mean", self.action_help, "?")
        yield Command("Draw again", "When something else has written over the screen", self.action_redraw, "ctrl+l")
