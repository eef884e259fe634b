"""Strategies side by side on a screen of their own: who wins and why, sorted by any column, and any two compared."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import ClassVar, cast

from textual import events, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.worker import Worker

from meshscope.analysis.figures import figures
from meshscope.analysis.pairing import Changes, changes
from meshscope.errors import MeshscopeError
from meshscope.run import Run
from meshscope.ui.asking import Answered, Asking, in_thread
from meshscope.ui.canvas import Canvas
from meshscope.ui.commands import Command
from meshscope.ui.header import badge
from meshscope.ui.look import Look
from meshscope.ui.marks.cells import Line, Piece, named, strips
from meshscope.ui.palette import texture
from meshscope.ui.scene import Scene
from meshscope.ui.screens.compare import Compare
from meshscope.ui.screens.dialog import Dialog
from meshscope.ui.screens.pointing import Pointing
from meshscope.ui.sheet import Sheet
from meshscope.ui.strategies import columns, drawing, state
from meshscope.ui.strategies.answer import QUESTION, Answer
from meshscope.ui.strategies.columns import Sorting
from meshscope.ui.strategies.drawing import Drawing
from meshscope.ui.strategies.sheet import contenders_sheet
from meshscope.ui.strategies.state import State
from meshscope.units import NS_PER_S, printable

_SAID_NS = 4 * NS_PER_S
_TICK_S = 0.25
_KEYS = (
    ("↑ ↓  j k", "choose a strategy: below, how it differs from the fastest"),
    ("← →  h l", "sort by the column before or behind"),
    ("r", "the other way round"),
    ("space", "mark as A, another one as B; again: take the mark away"),
    ("enter  c", "compare A and B: step time, its parts, memory, kernels"),
    ("e", "explain: arrows choose a number, enter opens it"),
    ("y  x  s", "copy the chosen row; export as CSV or JSON; save the screen"),
    ("T", "light or dark"),
    ("esc  q", "back (backspace too); stops a comparison that goes on"),
)
_MEANINGS = (
    ("compute", "compute", "computing, beside no communication"),
    ("hidden", "hidden", "computing while communicating: that costs nothing"),
    ("wait", "waiting", "exposed: only waiting for a late rank"),
    ("exposed", "transfer", "exposed: moving data while nothing computes"),
    ("copy", "copy", "moving memory, alone"),
    ("idle", "idle", "none of these"),
)


class Strategies(Pointing):
    """Asks about the newest of ``scene`` several times a second; the cursor, the marks and the order stay."""

    DEFAULT_CSS = "Strategies { overflow: hidden; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup", "move(-5)", show=False),
        Binding("pagedown", "move(5)", show=False),
        Binding("home", "move(-100000)", show=False),
        Binding("end", "move(100000)", show=False),
        Binding("left,h", "along(-1)", show=False),
        Binding("right,l", "along(1)", show=False),
        Binding("r", "reverse", show=False),
        Binding("space", "mark", show=False),
        Binding("enter", "enter", show=False),
        Binding("c", "compare", show=False),
        Binding("question_mark,f1", "help", show=False),
        Binding("escape,q,backspace", "leave", show=False),
    ]

    def __init__(self, scene: Callable[[], Scene], look: Look) -> None:
        super().__init__(look, "strategies")
        self.state = State()
        self._scene = scene
        self._asking = Asking(QUESTION)
        self._said: tuple[int, str] = (0, "")
        self._drawn: Drawing | None = None
        self._comparing: Worker[None] | None = None

    def compose(self) -> ComposeResult:
        yield Canvas(id="strategies")

    def on_mount(self) -> None:
        self._tick()
        self.set_interval(_TICK_S, self._tick)

    def on_resize(self) -> None:
        self._show()

    # What is known

    @property
    def answered(self) -> Answered | None:
        return self._asking.answers.get("")

    @property
    def answer(self) -> Answer | None:
        """The newest; None before the first, and where the question failed."""
        answered = self.answered
        return cast("Answer", answered.answer) if answered is not None and answered.error is None else None

    @property
    def is_at_rest(self) -> bool:
        """Whether all that is known is shown, and nothing is being compared."""
        is_answered = self.answered is not None and self._asking.is_at_rest
        return is_answered and self._comparing is None and self.is_explained

    def _tick(self) -> None:
        if self._said[1] and self._comparing is None and time.monotonic_ns() - self._said[0] > _SAID_NS:
            self._said = (0, "")
            self._show()
        scene = self._scene().looking_at("")
        if not self._asking.is_fresh("") and self._asking.want(scene):
            self._ask()

    @work(exclusive=False, group="question")
    async def _ask(self) -> None:
        await self._asking.ask(lambda _: self._show())

    def say(self, text: str) -> None:
        """Show a line for a few seconds."""
        self._said = (time.monotonic_ns(), text)
        self._show()

    # Taking along

    def sheet(self) -> Sheet | None:
        answer = self.answer
        return contenders_sheet(answer, tuple(state.names(answer, self.state))) if answer is not None else None

    @property
    def runs(self) -> tuple[Run, ...]:
        return self._scene().runs

    @property
    def row(self) -> str:
        return state.chosen(self.answer, self.state) if self.answer is not None else ""

    def draw(self) -> None:
        self._show()

    def commands(self) -> Iterator[Command]:
        """What this screen can do."""
        yield Command("Mark", "As A, another one as B", self.action_mark, "space")
        yield Command("Compare A and B", "Step time, its parts, memory, kernels", self.action_compare, "c")
        yield Command("Turn the order", "The other way round", self.action_reverse, "r")
        yield Command("Explain a number", "A cursor on the numbers; enter says what one is made of",
                      self.action_explain, "e")  # fmt: skip
        yield from super().commands()
        yield Command("Help", "The keys, and what the textures mean", self.action_help, "?")
        yield Command("Back", "To the board", self.action_leave, "esc")

    # Drawing

    def _show(self) -> None:
        width, height = self.size
        if not width or not height or not self.is_mounted:
            return
        canvas = self.query_one(Canvas)
        canvas.styles.width, canvas.styles.height = width, height
        lines = self._lines(width, height)
        if self.cell is not None:
            lines[-1] = self.pointed_footer(width)
        canvas.paint(self.lit(strips(lines, width, height, self.look)))

    def _lines(self, width: int, height: int) -> list[Line]:
        answer = self.answer
        if answer is None:
            self._drawn = None
            error = self.answered.error if self.answered is not None else None
            said = [(error.message, "bad"), (error.hint, "quiet")] if error is not None else [("Reading…", "quiet")]
            return [[(" ", "text"), (printable(text), role)] for text, role in said]
        scene = self._scene()
        sign: list[Piece] = [badge(scene.stance)] if scene.is_recorded else []
        self._drawn = drawing.drawn(answer, self.state, (width, height), self.look, badge=sign, said=self._said[1])
        return list(self._drawn.lines)

    def _become(self, now: State) -> None:
        self.state = now
        self._show()

    # Keys

    def action_move(self, by: int) -> None:
        if self.answer is None or (self.cell is not None and self.go(down=by)):
            return
        if self.cell is None:
            self._become(state.moved(self.answer, self.state, by))
            return
        # What finds no room above or below comes with the one that is chosen.
        self.state = state.moved(self.answer, replace(self.state, chosen=self.cell.run), by)
        if self.answer.of(self.row) is not None:
            self.cell = replace(self.cell, run=self.row)
        self._show()

    def action_along(self, by: int) -> None:
        if self.cell is None:
            self.action_sort(by)
        else:
            self.go(along=by)

    def action_enter(self) -> None:
        if self.cell is None:
            self.action_compare()
        else:
            self.explain(self.cell, caveat=self._scene().looking_at(self.cell.run).caveat)

    def action_sort(self, by: int) -> None:
        if self.answer is not None and self._drawn is not None:
            shown = tuple(place.key.name for place in self._drawn.headings)
            self._become(replace(self.state, sorting=columns.moved(self.answer, self.state.sorting, by, shown)))

    def action_reverse(self) -> None:
        sorting = self.state.sorting
        self._become(replace(self.state, sorting=replace(sorting, is_reversed=not sorting.is_reversed)))

    def action_mark(self) -> None:
        if self.answer is None:
            return
        name = state.chosen(self.answer, self.state)
        if self.answer.of(name) is None:
            self.say(f"{printable(name)} has not started yet." if name else "There is nothing to mark yet.")
            return
        self._become(state.marked(self.state, name))

    def action_help(self) -> None:
        lines: list[Line] = [[(f"{named(key, self.look):<14}", "key"), (what, "text")] for key, what in _KEYS]
        lines.append([])
        lines += [
            [(texture(meaning, self.look) * 3, meaning), (f"  {name:<10}", "text"), (what, "quiet")]
            for meaning, name, what in _MEANINGS
        ]
        lines += [[], [("The parts add up to the profiled step. (In brackets: within the spreads.)", "quiet")]]
        self.app.push_screen(Dialog("strategies", lines, self.look))

    def action_leave(self) -> None:
        if self.cell is not None:
            self.point_at(None)
        elif self._comparing is not None:
            self._comparing.cancel()
            self._comparing = None
            self.say("Not compared.")
        else:
            self.dismiss(None)

    # Comparing two

    def action_compare(self) -> None:
        if self._comparing is not None or self.answer is None:
            return
        runs = [run for name in self._pair() for run in self._scene().runs if run.name == name]
        if len(runs) != 2:
            self.say("Mark two with space, A and B: they are compared then.")
            return
        self._said = (time.monotonic_ns(), printable(f"Comparing {runs[0].name} and {runs[1].name}…  esc stops that"))
        self._comparing = self._compare(runs[0], runs[1])
        self._show()

    def _pair(self) -> tuple[str, ...]:
        """A and B; the chosen one stands in for a B that is not marked."""
        assert self.answer is not None
        a, b = self.state.marks
        one = a or b
        return self.state.pair or ((one, state.chosen(self.answer, self.state)) if one else ())

    @work(exclusive=True, group="compare")
    async def _compare(self, a: Run, b: Run) -> None:
        try:
            found: Changes | MeshscopeError = await in_thread(lambda: changes([figures(a)], [figures(b)]))
        except MeshscopeError as error:
            found = error
        self._comparing = None
        self._said = (0, "")
        if isinstance(found, MeshscopeError):
            self.say(printable(f"{found.message} {found.hint}"))
        elif self in self.app.screen_stack:
            self._show()
            self.app.push_screen(Compare(found, self.look, is_first=False))

    # The mouse

    def on_click(self, event: events.Click) -> None:
        if self._drawn is None or self.answer is None:
            return
        if event.y in self._drawn.heading_lines:
            self._sort_at(event.x - drawing.MARGIN)
        elif event.y in self._drawn.names:
            self._become(replace(self.state, chosen=self._drawn.names[event.y]))

    def _sort_at(self, column: int) -> None:
        """By the column that was pointed at; the other way round where it is that one already."""
        assert self._drawn is not None
        place = next((place for place in self._drawn.headings if place.start <= column < place.end), None)
        if place is None:
            return
        if place.key.name == self.state.sorting.column:
            self.action_reverse()
        else:
            self._become(replace(self.state, sorting=Sorting(place.key.name)))

    def on_mouse_scroll_up(self, _: events.MouseScrollUp) -> None:
        self.action_move(-1)

    def on_mouse_scroll_down(self, _: events.MouseScrollDown) -> None:
        self.action_move(1)
