"""Prediction beside measurement of one run, worked out in a thread while the dialog says so."""

from __future__ import annotations

from functools import partial

from textual import work

from meshscope.advisor.against import Against, against
from meshscope.errors import MeshscopeError
from meshscope.run import Run
from meshscope.ui.advise.beside import beside
from meshscope.ui.asking import in_thread
from meshscope.ui.look import Look
from meshscope.ui.marks.cells import Line, wrapped
from meshscope.ui.screens.scrolled import Scrolled
from meshscope.units import printable

_LONGEST = 6


class Beside(Scrolled):
    """What the model says of the run that was recorded, and what was measured; or why it says nothing."""

    def __init__(self, run: Run, look: Look) -> None:
        super().__init__(printable(f"{run.name}: prediction beside measurement"), look)
        self._run = run
        self._found: Against | MeshscopeError | None = None

    @property
    def is_answered(self) -> bool:
        return self._found is not None

    def on_mount(self) -> None:
        self._ask()

    @work(exclusive=True, group="beside")
    async def _ask(self) -> None:
        try:
            self._found = await in_thread(partial(against, self._run))
        except MeshscopeError as error:
            self._found = error
        if self.is_attached:
            self.show()

    def body(self, width: int) -> list[Line]:
        if self._found is None:
            return [[("Predicting the same step…", "quiet")]]
        if isinstance(self._found, MeshscopeError):
            said = ((f"cannot say: {self._found.message}", "warn"), (self._found.hint, "quiet"))
            return [[(line, role)] for text, role in said for line in wrapped(printable(text), width, _LONGEST)]
        return beside(self._found, width, self._look)
