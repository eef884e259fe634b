"""The timeline as it is drawn: a state of it, what it is of, and what goes on with both when more is known."""

from __future__ import annotations

from dataclasses import replace

from textual.app import ComposeResult
from textual.screen import Screen
from textual.strip import Strip

from meshscope.analysis.lanes import Lanes
from meshscope.ui.canvas import Canvas
from meshscope.ui.look import Look
from meshscope.ui.marks.cells import Line, Piece, strip
from meshscope.ui.timeline import frame, keys
from meshscope.ui.timeline.beginning import begun, carried
from meshscope.ui.timeline.frame import Extent, Subject
from meshscope.ui.timeline.state import State
from meshscope.ui.timeline.viewport import whole
from meshscope.units import ranges

_NOTHING_YET = "Nothing was profiled up to here. Lanes appear with the first trace that is written."


Kept = tuple[Lanes, State]
"""A state to come back to, and what it is of."""


class Drawn(Screen[None]):
    """``subject`` is None while the clock stands where nothing is profiled yet; the state waits for it to come back.

    ``pointed`` is the state as it would be with the cursor where the mouse is, None where that is on no lane.
    """

    DEFAULT_CSS = "Drawn { overflow: hidden; }"

    def __init__(self, subject: Subject | None, look: Look, kept: Kept | None = None) -> None:
        super().__init__()
        self.subject, self.look = subject, look
        self._over: Lanes | None = kept[0] if kept is not None else None  # what the state is of
        self.state: State | None = kept[1] if kept is not None else None
        self.pointed: State | None = None
        self.said = ""
        self._above: list[Strip] = []
        self._has_begun = False

    def compose(self) -> ComposeResult:
        yield Canvas(id="timeline")

    # What heirs say

    def begin(self, state: State) -> State:
        """The state that is drawn first, once the size of the screen is known."""
        return state

    @property
    def kept(self) -> Kept | None:
        """What another timeline of the same run goes on from."""
        return (self._over, self.state) if self._over is not None and self.state is not None else None

    def foot(self, width: int) -> Line:
        return keys.foot(width, self.look)

    # What is drawn

    @property
    def extent(self) -> Extent:
        return Extent(self.size.width, self.size.height)

    def on_resize(self) -> None:
        self._settle()
        self.show()

    def renew(self, subject: Subject | None) -> None:
        """Show what is known by now of the same run."""
        if subject is not None and self._over is not None:
            new = set(subject.lanes.steps.number.tolist()) - set(self._over.steps.number.tolist())
            steps = f"{'step' if len(new) == 1 else 'steps'} {ranges(new, 3)}"
            self.said = f"New: {steps}; end goes to the newest." if new else self.said
        self.subject, self.pointed = subject, None
        self._settle()
        self.show()

    def _settle(self) -> None:
        """Bring the state over what there is to show, in the size there is."""
        columns = self.extent.placed.columns
        if self.subject is None or not self.size.width:
            return
        lanes = self.subject.lanes
        if self.state is None or self._over is None:
            self.state = begun(lanes, whole(lanes.start_ns, lanes.end_ns, columns))
        elif self._over is not lanes:
            self.state = carried(self._over, lanes, self.state)
        self._over = lanes
        if self.state.view.columns != columns:
            self.state = replace(self.state, view=self.state.view.sized(columns))
        if not self._has_begun:
            self._has_begun = True
            self.state = self.begin(self.state)

    def wear(self, look: Look) -> None:
        """Be drawn in another look from now on."""
        self.look = look
        self.show()

    def say(self, text: str) -> None:
        """Show a line until the next key."""
        self.said = text
        self.show_below()

    def show(self) -> None:
        """Draw everything."""
        width, height = self.size
        if not width or not height:
            return
        if self.subject is None or self.state is None:
            self._paint(self._empty())
            return
        self.state = frame.scrolled(self.subject.lanes, self.state, self.extent.lanes)
        self._above = frame.above(self.subject, self.state, self.extent, self.look)
        self.show_below()

    def show_below(self) -> None:
        """Draw what is said below the lanes: all that a mouse changes by moving over them."""
        if self.subject is None or self.state is None:
            return
        now, is_pointed = self.pointed or self.state, self.pointed is not None
        self._paint([
            *self._above,
            *frame.below(self.subject, now, self.extent, self.look, said=self.said, is_pointed=is_pointed),
        ])  # fmt: skip

    def _empty(self) -> list[Strip]:
        heading: list[Piece] = [(" timeline", "accent")]
        texts: list[Line] = [heading, (), [(f" {_NOTHING_YET}", "quiet")]]
        return [strip(line, self.size.width, self.look) for line in texts]

    def _paint(self, strips: list[Strip]) -> None:
        width, height = self.size
        canvas = self.query_one(Canvas)
        canvas.styles.width, canvas.styles.height = width, height
        blank = strip((), width, self.look)
        foot = strip(self.foot(width), width, self.look)
        canvas.paint([*(strips + [blank] * height)[: height - 1], foot])
