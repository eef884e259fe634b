"""Which way to train: a model and a cluster are asked about, and every way that deserves it stands there with its cost.

Nothing on this screen was measured, and it says so. The search runs in a thread; keys go on meanwhile, and what comes
back is drawn only where nothing newer was asked.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, cast

from textual import events, work
from textual.binding import Binding, BindingType

from meshscope.errors import MeshscopeError
from meshscope.ui.advise import form as forms
from meshscope.ui.advise import state as states
from meshscope.ui.advise.answer import Answer
from meshscope.ui.advise.arithmetic import arithmetic
from meshscope.ui.advise.form import Form
from meshscope.ui.advise.help import help_lines
from meshscope.ui.advise.state import FLIPS, State
from meshscope.ui.asking import in_thread
from meshscope.ui.commands import Command
from meshscope.ui.screens.advise_asked import Asked
from meshscope.ui.screens.choosing import PICTURES, Choosing
from meshscope.ui.screens.dialog import Dialog
from meshscope.ui.screens.scrolled import Paragraphs

if TYPE_CHECKING:
    from meshscope.advisor.ranking import Ranked
    from meshscope.ui.app import MeshscopeApp


class Advise(Asked):
    """Letters are typed where a field has the keys, and act elsewhere.

    Leaving the first screen of all leaves the program, and any other goes back to where it was opened.
    """

    DEFAULT_CSS = "Advise { overflow: hidden; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", show=False),
        Binding("down", "move(1)", show=False),
        Binding("left", "turn(-1)", show=False),
        Binding("right", "turn(1)", show=False),
        Binding("home", "move(-100000)", show=False),
        Binding("end", "move(100000)", show=False),
        Binding("pageup", "scroll(-1)", show=False),
        Binding("pagedown", "scroll(1)", show=False),
        Binding("tab,shift+tab", "cross", show=False, priority=True),
        Binding("enter", "enter", show=False),
        Binding("f1", "help", show=False),
        Binding("escape", "leave", show=False),
        Binding("ctrl+c,ctrl+q", "quit", show=False, priority=True),
        # Letters are typed where a field has the keys.
        Binding("k", "letter('move', -1)", show=False),
        Binding("j", "letter('move', 1)", show=False),
        Binding("h", "letter('turn', -1)", show=False),
        Binding("l", "letter('turn', 1)", show=False),
        Binding("space", "letter('mark')", show=False),
        Binding("o", "letter('open')", show=False),
        Binding("e", "letter('explain')", show=False),
        Binding("f", "letter('flip')", show=False),
        Binding("s", "letter('save')", show=False),
        Binding("T", "letter('light')", show=False),
        Binding("question_mark", "letter('help')", show=False),
        Binding("q,backspace", "letter('leave')", show=False),
    ]

    # Keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Letters act where no field takes them."""
        del parameters
        return not (action == "letter" and self.form.at)

    def action_letter(self, action: str, *parameters: int) -> None:
        getattr(self, f"action_{action}")(*parameters)

    def on_key(self, event: events.Key) -> None:
        if not self.form.at:
            return
        if event.key == "ctrl+u":
            self._change(forms.erased(self.form, 9999))
        elif event.key in ("backspace", "delete"):
            self._change(forms.erased(self.form))
        elif event.character is not None and event.character.isprintable():
            self._change(forms.typed(self.form, event.character))
        else:
            return
        event.stop()

    def on_paste(self, event: events.Paste) -> None:
        if self.form.at:
            event.stop()
            self._change(forms.typed(self.form, event.text.strip().replace("\n", " ")))

    def _change(self, form: Form) -> None:
        self.form = form
        self._show()

    def _become(self, state: State) -> None:
        self.state = state
        self._show()

    def action_cross(self) -> None:
        self._change(forms.crossed(self.form))

    def action_move(self, by: int) -> None:
        if self.form.at:
            self._change(forms.moved(self.form, by))
        else:
            self._become(states.moved(self.state, self.answer, by))

    def action_turn(self, by: int) -> None:
        if self.form.at:
            self._change(forms.changed(self.form, by))
        else:
            self._become(states.turned(self.state, by))

    def action_scroll(self, by: int) -> None:
        if self._drawn is not None:
            lines, room = self._drawn.view_lines, max(self._drawn.view_room, 1)
            self._become(states.scrolled(self.state, by * max(room - 1, 1), lines, room))

    def action_enter(self) -> None:
        """Ask, where the question was changed; else what the view or the candidate has to say."""
        if self.form.at or self.answer is None or self.answer.asked != self.form.asked:
            self.form = forms.crossed(self.form) if self.form.at else self.form
            self.ask()
        elif self.state.view == FLIPS:
            self.action_flip()
        else:
            self.action_explain()

    def action_mark(self) -> None:
        if self.answer is not None and self.answer.rows:
            self._become(states.marked(self.state))

    def action_flip(self) -> None:
        """Ask what would flip the choice, once."""
        self._become(State(self.state.chosen, self.state.marked, FLIPS))
        if self.answer is not None and self.flips is None and self._flipped_s is None:
            self._flipped_s = time.monotonic()
            self._ask_flips(self.answer)
            self._show()

    def action_explain(self) -> None:
        """The arithmetic of the candidate that is looked at, term by term."""
        row = self.row
        if self.answer is not None and row is not None:
            title, said = arithmetic(self.answer, row)
            self.app.push_screen(Paragraphs(title, said, self.look))

    @property
    def row(self) -> Ranked | None:
        """The candidate that is looked at."""
        rows = self.answer.rows if self.answer is not None else ()
        return rows[self.state.chosen] if self.state.chosen < len(rows) else None

    def action_open(self) -> None:
        """Write the simulated steps of what is marked (or looked at) and look at them as at any recording."""
        rows = self.answer.rows if self.answer is not None else ()
        picked = [rows[at] for at in self.state.marked if at < len(rows)] or [one for one in (self.row,) if one]
        if self.answer is None or not picked or self._keeping:
            self.say("There is no candidate to simulate yet.")
            return
        self._keeping = True
        self.say(f"Simulating a step of {len(picked)}…" if len(picked) > 1 else "Simulating a step…")
        self._write(self.answer, picked)

    @work(exclusive=True, group="keep")
    async def _write(self, of: Answer, picked: list[Ranked]) -> None:
        from meshscope.run import Gallery

        try:
            folder = await in_thread(partial(self._keep, of, picked, self._places))
            reel = Gallery(folder)
        except MeshscopeError as error:
            self.say(f"{error.message} {error.hint}".strip())
            return
        finally:
            self._keeping = False
        cast("MeshscopeApp", self.app).watch_folder(folder, reel)

    def action_save(self) -> None:
        app = cast("MeshscopeApp", self.app)
        app.push_screen(Choosing("save the screen", PICTURES, self.look), app.save_screen)

    def action_light(self) -> None:
        cast("MeshscopeApp", self.app).action_turn_light()

    def action_help(self) -> None:
        self.app.push_screen(Dialog("advise", help_lines(self.look), self.look))

    def action_leave(self) -> None:
        if self.form.at:
            self._change(forms.crossed(self.form))
        elif self._is_first:
            self.app.exit("")
        else:
            self.dismiss(None)

    def action_quit(self) -> None:
        """Out of the program from its first screen; over a run, back to the screen that asks what becomes of it."""
        if self._is_first:
            self.app.exit("")
        else:
            self.dismiss(None)

    def commands(self) -> Iterator[Command]:
        """What this screen can do."""
        yield Command("Ask", "What the fields say now", self.ask, "enter")
        yield Command("Change the question", "Model, devices, sequence, batch, precision", self.action_cross, "tab")
        yield Command("Next view", "Why, rules, time and memory, what flips it", partial(self.action_turn, 1), "right")
        yield Command("Mark", "To be simulated together with others", self.action_mark, "space")
        yield Command("Open simulated", "The predicted step as a recording", self.action_open, "o")
        yield Command("Arithmetic", "What the prediction is made of, term by term", self.action_explain, "e")
        yield Command("What flips it", "The same question with one thing changed", self.action_flip, "f")
        yield Command("Save the screen", "As a picture or as plain text", self.action_save, "s")
        yield Command("Help", "The keys, and what the textures mean", self.action_help, "?")
        yield Command("Back", "To where this was opened, or out", self.action_leave, "esc")

    # The mouse

    def on_click(self, event: events.Click) -> None:
        if self._drawn is None:
            return
        if event.y in self._drawn.rows and event.x >= self._drawn.rows_from:
            self.form = replace(self.form, at="")
            self._become(states.chosen(self.state, self._drawn.rows[event.y]))
            return
        field = _at(self._drawn.fields, event)
        view = _at(self._drawn.tabs, event)
        if field:
            self._change(replace(self.form, at=field))
        elif view:
            self._become(State(self.state.chosen, self.state.marked, view))

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._wheel(event.y, -1)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._wheel(event.y, 1)

    def _wheel(self, line: int, by: int) -> None:
        """The candidates over their table, what is said elsewhere."""
        if self._drawn is None:
            return
        if line in self._drawn.rows:
            self._become(states.moved(self.state, self.answer, by))
        else:
            self._become(states.scrolled(self.state, by, self._drawn.view_lines, max(self._drawn.view_room, 1)))


def _at(places: dict[str, tuple[int, int, int]], event: events.Click) -> str:
    """The name of what was pointed at; "" for nothing."""
    found = (name for name, (line, start, end) in places.items() if line == event.y and start <= event.x < end)
    return next(found, "")
