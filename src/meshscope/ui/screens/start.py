"""The start screen: pick what to run and how large, or a recording to look at."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

from textual import events, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen

from meshscope.capture.request import Request
from meshscope.errors import MeshscopeError
from meshscope.experiment import Plan
from meshscope.run import Opening
from meshscope.ui import fitting
from meshscope.ui import form as forms
from meshscope.ui.asking import in_thread
from meshscope.ui.canvas import Canvas
from meshscope.ui.commands import Command
from meshscope.ui.form import Form
from meshscope.ui.launching import Launcher, Offer
from meshscope.ui.look import Look
from meshscope.ui.marks.cells import Line, Piece, clip, filled, left, named, strips, wrapped
from meshscope.ui.playback import Reel
from meshscope.ui.screens.choosing import PICTURES, Choosing
from meshscope.ui.screens.dialog import Dialog
from meshscope.ui.screens.path import AskedPath
from meshscope.ui.shelf import Shelved
from meshscope.units import printable

if TYPE_CHECKING:
    from meshscope.ui.app import MeshscopeApp

_NAME = 16
_HERE: Piece = ("▸ ", "accent")
_WIDE = 116
_TALL = 14
_SAID_S = 4.0
_LEAVE = {
    "ranks": "as many as this machine has devices for",
    "steps": "as the model has it",
    "batch": "as the model has it",
}
_KEYS = (
    ("↑↓", "move", 1),
    ("space", "pick", 3),
    ("←→", "change", 2),
    ("tab", "look", 4),
    ("o", "open", 5),
    ("a", "advise", 3),
    ("enter", "go", 0),
    ("?", "help", 0),
    ("q", "quit", 0),
)

_HELP = (
    ("↑↓ j k", "move"),
    ("space", "pick a strategy, or leave it out"),
    ("←→", "another model; more or fewer ranks, steps, samples per batch"),
    ("0–9", "type a number; backspace takes the last digit away"),
    ("tab", "to the recordings, and back"),
    ("enter", "start what is picked, or open the recording under the cursor"),
    ("o", "open a recording or native traces by their path"),
    ("a", "advise: which strategy for a model and a cluster, predicted"),
    ("s", "save the screen as a picture or as plain text"),
    ("T", "light or dark"),
    ("ctrl+p", "all commands by name"),
    ("?", "this help"),
    ("q  esc", "leave"),
)


class Start(Screen[None]):
    """Keys change a form; every change is checked in the background, and what is wrong stands beside ``start``."""

    DEFAULT_CSS = """
    Start { overflow: hidden; }
    Start Canvas { width: 100%; height: 100%; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("tab,shift+tab", "cross", show=False, priority=True),
        Binding("space", "toggle_row", show=False),
        Binding("left,h", "change(-1)", show=False),
        Binding("right,l", "change(1)", show=False),
        Binding("backspace,delete", "erase", show=False),
        Binding("enter", "go", show=False),
        Binding("o", "open_path", show=False),
        Binding("a", "app.advise", show=False),
        Binding("s", "save", show=False),
        Binding("T", "app.turn_light", show=False),
        Binding("question_mark,f1", "help", show=False),
        Binding("q,escape,ctrl+c,ctrl+q", "leave", show=False, priority=True),
    ]

    def __init__(
        self,
        launcher: Launcher,
        shelf: Sequence[Shelved],
        look: Look,
        *,
        open_reel: Callable[[Path], Reel],
        open_path: Callable[[Path], Reel | Opening] | None = None,
    ) -> None:
        super().__init__()
        self.launcher = launcher
        self.shelf = tuple(shelf)
        self.look = look
        self.form = forms.first(launcher.offers(), launcher.models(), len(self.shelf))
        self.plan: Plan | None = None
        self.error: MeshscopeError | None = None
        self._open_reel = open_reel
        self._open_path = open_path or open_reel
        self._checked: Request | None = None
        self._is_checking = False
        self._is_starting = False
        self._said: tuple[int, str] = (0, "")

    def compose(self) -> ComposeResult:
        yield Canvas(id="start")

    def on_mount(self) -> None:
        self._changed(forms.recalled(self.form, cast("MeshscopeApp", self.app).options.memory.remembered))

    def on_resize(self) -> None:
        self._draw()

    # Keys

    def action_move(self, by: int) -> None:
        self._changed(forms.moved(self.form, by))

    def action_cross(self) -> None:
        self._changed(forms.crossed(self.form))

    def action_toggle_row(self) -> None:
        if self.form.recording is not None or self.form.at == forms.START:
            self.action_go()
        else:
            self._changed(forms.toggled(self.form))

    def action_change(self, by: int) -> None:
        self._changed(forms.changed(self.form, by))

    def action_erase(self) -> None:
        self._changed(forms.erased(self.form))

    def on_key(self, event: events.Key) -> None:
        if event.character is not None and event.character.isdecimal() and event.character.isascii():
            self._changed(forms.typed(self.form, event.character))

    def action_go(self) -> None:
        """Open the recording under the cursor, or start what the form asks for."""
        if self._is_starting:
            return
        if self.form.recording is not None:
            self._open(self.shelf[self.form.recording].folder)
        elif self.form.chosen:
            self._is_starting = True
            self._draw()
            cast("MeshscopeApp", self.app).options.memory.keep(**forms.kept(self.form))
            self._start(self.form.request())

    def action_open_path(self) -> None:
        """Ask for a path: a recording, a trace, or a folder of them."""
        if not self._is_starting:
            self.app.push_screen(AskedPath(self.look, title="open a recording or native traces"), self._typed)

    def _typed(self, text: str | None) -> None:
        if text:
            self._look_into(Path(text).expanduser())

    @work(exclusive=True, group="start")
    async def _look_into(self, path: Path) -> None:
        try:
            found = await in_thread(lambda: self._open_path(path))
        except MeshscopeError as error:
            self.error = error
            self._draw()
            return
        app = cast("MeshscopeApp", self.app)
        if isinstance(found, Opening):
            app.look_at_traces(found)
        else:
            app.watch_folder(path, found)

    def action_help(self) -> None:
        lines: list[Line] = [[(f"{named(key, self.look):<12}", "key"), (words, "text")] for key, words in _HELP]
        self.app.push_screen(Dialog("keys", lines, self.look))

    def action_leave(self) -> None:
        self.app.exit("")

    def action_save(self) -> None:
        app = cast("MeshscopeApp", self.app)
        app.push_screen(Choosing("save the screen", PICTURES, self.look), app.save_screen)

    def wear(self, look: Look) -> None:
        """Be drawn in another look from now on."""
        self.look = look
        self._draw()

    def commands(self) -> Iterator[Command]:
        """What this screen can do."""
        yield Command("Start", "What is picked, or open the recording under the cursor", self.action_go, "enter")
        yield Command("Open a path", "A recording, a native trace, or a folder of them", self.action_open_path, "o")
        yield Command("Look", "To the recordings, and back", self.action_cross, "tab")
        yield Command("Save the screen", "As a picture or as plain text", self.action_save, "s")
        yield Command("Help", "The keys", self.action_help, "?")
        yield Command("Quit", "Leave; nothing is started", self.action_leave, "q")

    def say(self, text: str) -> None:
        """Show a line where the keys stand, for a few seconds."""
        self._said = (self._said[0] + 1, text)
        self._draw()
        self.set_timer(_SAID_S, partial(self._fall_silent, self._said[0]))

    def _fall_silent(self, number: int) -> None:
        """Take a line away, unless another has been said since."""
        if self._said[0] == number:
            self._said = (number, "")
            self._draw()

    # Checking and starting

    def _changed(self, form: Form) -> None:
        self.form = form
        self._draw()
        if form.chosen and form.request() != self._checked and not self._is_checking:
            self._is_checking = True
            self._check()

    @work(exclusive=False, group="check")
    async def _check(self) -> None:
        """Ask the launcher about the newest form until it has not changed meanwhile."""
        while self._checked != self.form.request() and self.form.chosen:
            request = self.form.request()
            self.plan = self.error = None
            self._draw()
            try:
                self.plan = await in_thread(lambda request=request: self.launcher.plan(request))  # type: ignore[misc]
            except MeshscopeError as error:
                self.error = error
            self._checked = request
        self._is_checking = False
        self._draw()

    @work(exclusive=True, group="start")
    async def _start(self, request: Request) -> None:
        def launched() -> Path:
            # Planned afresh: the plan's clock starts now, not when it was last checked.
            plan = self.launcher.plan(request)
            folder = Path(str(plan.request["out"]))
            self.launcher.start(folder, plan)
            return folder

        try:
            folder = await in_thread(launched)
        except MeshscopeError as error:
            self.error, self.plan, self._checked = error, None, request
            self._is_starting = False
            self._draw()
            return
        self._open(folder)

    def _open(self, folder: Path) -> None:
        try:
            reel = self._open_reel(folder)
        except MeshscopeError as error:
            self.error, self._is_starting = error, False
            self._draw()
            return
        cast("MeshscopeApp", self.app).watch_folder(folder, reel)

    # Drawing

    def _draw(self) -> None:
        width, height = self.size
        if width and height:
            self.query_one(Canvas).paint(strips(self._lines(width, height), width, height, self.look))

    def _lines(self, width: int, height: int) -> list[Line]:
        head: list[Line] = [
            [
                (" meshscope", "accent"),
                ("   where a training step goes: DDP, FSDP, pmap and pjit side by side", "quiet"),
            ],
            *([[]] if height >= _TALL else []),
        ]
        room = max(height - len(head) - 1, 0)
        body = self._two_columns(width, room) if width >= _WIDE else self._one_column(width - 2, room)
        body = [[(" ", "text"), *line] for line in body]
        return [*head, *body, *([[]] * (room - len(body))), self._footer(width)]

    def _two_columns(self, width: int, room: int) -> list[Line]:
        side = (width - 5) * 3 // 5
        shelf = self._shelf(width - side - 5, room - 1)
        return _beside(self._seen([*self._picking(side), *self._verdict(side)], room, side), shelf, side)[:room]

    def _one_column(self, width: int, room: int) -> list[Line]:
        """Everything below each other; where that is too much it scrolls, with what is wrong held at the bottom."""
        picking, told = self._picking(width), self._verdict(width)
        shelf = self._shelf(width, max(room - 1 - len(picking) - len(told), 2))
        if len(picking) + len(told) + 1 + len(shelf) <= room:
            return [*picking, *told, [], *shelf]
        held = told[: max(room - 3, 0)] if self.error is not None else []
        within = [*picking, *([] if held else told), [], *self._shelf(width, room)]
        return [*self._seen(within, room - len(held), width), *held]

    def _seen(self, lines: Sequence[Line], room: int, width: int) -> list[Line]:
        """As many as there is room for, around the cursor."""
        at = next((number for number, line in enumerate(lines) if line and line[0] == _HERE), 0)
        return fitting.seen(lines, at, room, width)

    def _picking(self, width: int) -> list[Line]:
        lines: list[Line] = [[("run", "strong"), ("  strategies side by side, one after another", "quiet")]]
        lines += [self._strategy(offer, width) for offer in self.form.offers]
        lines.append([])
        lines += [self._field(name, width) for name in forms.FIELDS]
        return [*lines, [], self._start_row()]

    def _mark(self, row: str) -> Piece:
        return _HERE if row == self.form.at else ("  ", "accent")

    def _strategy(self, offer: Offer, width: int) -> list[Piece]:
        is_chosen, is_here = offer.strategy in self.form.chosen, offer.strategy == self.form.at
        box = "[–]" if offer.why_not else "[x]" if is_chosen else "[ ]"
        about = offer.why_not or offer.title
        return [
            self._mark(offer.strategy),
            (box + " ", "faint" if offer.why_not else "accent" if is_chosen else "quiet"),
            (left(printable(offer.strategy), _NAME), "strong" if is_here else "faint" if offer.why_not else "text"),
            (clip(printable(about), width - _NAME - 6), "warn" if offer.why_not else "quiet"),
        ]

    def _field(self, name: str, width: int) -> list[Piece]:
        is_here = name == self.form.at
        text = getattr(self.form, name) or "auto"
        shown = f"◂ {text} ▸" if is_here else f"  {text}"
        about = _LEAVE.get(name, "") if text == "auto" else ""
        if name == "model":
            about = next((model.about for model in self.form.models if model.name == self.form.model), "")
        return [
            self._mark(name),
            (left(name, 8), "strong" if is_here else "text"),
            (left(shown, _NAME - 4), "strong" if is_here else "text"),
            (clip(printable(about), max(width - _NAME - 6, 0)), "quiet"),
        ]

    def _start_row(self) -> list[Piece]:
        is_here = self.form.at == forms.START
        word = "starting…" if self._is_starting else "start"
        able = "strong" if is_here else "text"
        return [self._mark(forms.START), (f"[ {word} ]", able if self.form.chosen else "faint"), *self._summary()]

    def _summary(self) -> list[Piece]:
        if not self.form.chosen:
            return [("  pick a strategy first", "quiet")]
        if self._is_checking:
            return [("  checking what this machine has…", "quiet")]
        if self.plan is None:
            return []
        kinds = " and ".join(sorted({run.device_kind.upper() for run in self.plan.runs}))
        count = f"{len(self.plan.runs)} run{'s' if len(self.plan.runs) != 1 else ''}"
        return [(f"  {count} on {self.plan.ranks} {kinds} rank{'s' if self.plan.ranks != 1 else ''}", "good")]

    def _verdict(self, width: int) -> list[Line]:
        """What is wrong, or what is worth knowing before the start."""
        if self.error is not None:
            lines: list[Line] = [
                [("  " + line, "bad")] for line in wrapped(printable(self.error.message), width - 2, 2)
            ]
            return lines + [[("  " + line, "quiet")] for line in wrapped(printable(self.error.hint), width - 2, 2)]
        notes = self.plan.notes if self.plan is not None else []
        told: list[Line] = [
            [("  " + line, "warn")] for note in notes for line in wrapped(printable(note), width - 2, 2)
        ]
        if self.plan is not None:
            told.append([("  " + clip(f"to {printable(str(self.plan.request.get('out', '')))}", width - 2), "faint")])
        return told

    def _shelf(self, width: int, room: int) -> list[Line]:
        about = "  at a recording; o opens any path, native traces too"
        lines: list[Line] = [[("or look", "strong"), (about, "quiet")]]
        if not self.shelf:
            words = wrapped("None here yet: runs that you start appear in this list.", width - 2, 2)
            return [*lines, *([("  " + line, "quiet")] for line in words)]
        at = self.form.recording or 0
        most = max(room - 1, 1)
        first = min(max(at - most + 1, 0), max(len(self.shelf) - most, 0))
        for number, shelved in list(enumerate(self.shelf))[first : first + most]:
            lines.append(self._shelved(number, shelved, width))
        return lines

    def _shelved(self, number: int, shelved: Shelved, width: int) -> list[Piece]:
        is_here = number == self.form.recording
        when = (
            "bundled"
            if shelved.is_bundled and not shelved.is_simulated
            else "simulated"
            if shelved.is_bundled
            else time.strftime("%Y-%m-%d %H:%M", time.localtime(shelved.started_unix_ns / 1e9))
        )
        what = f"{shelved.model}  {' '.join(shelved.strategies)}"
        room = max(width - 20, 8)
        name = printable(shelved.folder.name)
        text = f"{left(printable(what), min(max(len(what), 24), room // 2))}  {name}" if room >= 40 else what
        return [
            self._mark(f"recording {number}"),
            (left(when, 18), "strong" if is_here else "quiet"),
            (clip(printable(text), room), "strong" if is_here else "text"),
        ]

    def _footer(self, width: int) -> list[Piece]:
        if self._said[1]:
            return [(" " + printable(self._said[1]), "warn")]
        return fitting.keys(_KEYS, width, self.look)


def _beside(one: Sequence[Line], other: Sequence[Line], width: int) -> list[Line]:
    """Two columns: ``one`` in ``width`` cells, then ``other``."""
    height = max(len(one), len(other))
    first = [*one, *([[]] * (height - len(one)))]
    second = [*other, *([[]] * (height - len(other)))]
    return [[*filled(a, width), ("   ", "text"), *b] for a, b in zip(first, second, strict=True)]
