"""What the advise screen asks and draws: searches in threads, of which only the newest answer counts."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from textual import work
from textual.app import ComposeResult
from textual.screen import Screen

from meshscope.advisor.sensitivity import Sensitivity
from meshscope.errors import MeshscopeError
from meshscope.ui.advise import state as states
from meshscope.ui.advise.answer import Answer, answer, flips
from meshscope.ui.advise.drawing import Drawing, Status, drawn
from meshscope.ui.advise.form import Form
from meshscope.ui.advise.keeping import simulated_folder
from meshscope.ui.advise.state import State
from meshscope.ui.asking import in_thread
from meshscope.ui.canvas import Canvas
from meshscope.ui.look import Look
from meshscope.ui.marks.cells import strips

if TYPE_CHECKING:
    from meshscope.advisor.ranking import Ranked

_TICK_S = 0.25
_SAID_S = 4.0

Ask = Callable[[Form], Answer]
Flip = Callable[[Answer], tuple[Sensitivity, ...]]
Keep = Callable[[Answer, "list[Ranked]", Path], Path]
"""Writes the simulated steps of candidates into a new folder beneath another, and returns it."""


class Asked(Screen[None]):
    """``ask``, ``flip`` and ``keep`` may take seconds: they run in threads. ``places`` is where recordings go."""

    def __init__(
        self,
        look: Look,
        form: Form | None = None,
        *,
        ask: Ask = answer,
        flip: Flip = flips,
        keep: Keep = simulated_folder,
        places: Path = Path(),
        is_first: bool = True,
    ) -> None:
        super().__init__()
        self.look = look
        self.form = form or Form()
        self.state = State()
        self.answer: Answer | None = None
        self.error: MeshscopeError | None = None
        self.flips: tuple[Sensitivity, ...] | None = None
        self._ask, self._flip, self._keep = ask, flip, keep
        self._places = places
        self._is_first = is_first
        self._asked_s: float | None = None
        self._flipped_s: float | None = None
        self._keeping = False
        self._wanted: Form | None = None
        self._said: tuple[int, str] = (0, "")
        self._drawn: Drawing | None = None

    def compose(self) -> ComposeResult:
        yield Canvas(id="advise")

    def on_mount(self) -> None:
        self.set_interval(_TICK_S, self._tick)
        self.ask()

    def on_resize(self) -> None:
        self._show()

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing is being worked out."""
        return self._asked_s is None and self._flipped_s is None and not self._keeping

    # Asking

    def ask(self) -> None:
        """Ask what the form says now; where a question is out already, this one comes next."""
        self._wanted = self.form
        if self._asked_s is None:
            self._asked_s = time.monotonic()
            self._work()
        self._show()

    @work(exclusive=False, group="advise")
    async def _work(self) -> None:
        while (form := self._wanted) is not None:
            self._wanted = None
            try:
                found, error = await in_thread(partial(self._ask, form)), None
            except MeshscopeError as refused:
                found, error = None, refused
            if self._wanted is None:
                self._take(found, error)
        self._asked_s = None
        self._show()

    def _take(self, found: Answer | None, error: MeshscopeError | None) -> None:
        self.error = error
        if found is not None:
            self.answer, self.flips = found, None
            self.state = states.renewed(self.state)

    @work(exclusive=True, group="flips")
    async def _ask_flips(self, of: Answer) -> None:
        try:
            found = await in_thread(partial(self._flip, of))
        except MeshscopeError as error:
            self.say(f"{error.message} {error.hint}".strip())
            found = None
        self._flipped_s = None
        if self.answer is of:
            self.flips = found
        self._show()

    def _tick(self) -> None:
        if self._asked_s is not None or self._flipped_s is not None:
            self._show()

    # Drawing

    def _status(self) -> Status:
        now = time.monotonic()
        return Status(
            asking_s=None if self._asked_s is None else now - self._asked_s,
            error=self.error,
            flips=self.flips,
            flipping_s=None if self._flipped_s is None else now - self._flipped_s,
            said=self._said[1],
        )

    def _show(self) -> None:
        width, height = self.size
        if not width or not height or not self.is_mounted:
            return
        self._drawn = drawn(self.form, self.answer, self.state, self._status(), (width, height), self.look)
        canvas = self.query_one(Canvas)
        canvas.styles.width, canvas.styles.height = width, height
        canvas.paint(strips(self._drawn.lines, width, height, self.look))

    def say(self, text: str) -> None:
        """Show a line where the keys stand, for a few seconds."""
        self._said = (self._said[0] + 1, text)
        self._show()
        self.set_timer(_SAID_S, partial(self._fall_silent, self._said[0]))

    def _fall_silent(self, number: int) -> None:
        if self._said[0] == number:
            self._said = (number, "")
            self._show()

    def wear(self, look: Look) -> None:
        """Be drawn in another look from now on."""
        self.look = look
        self._show()
