"""The mouse on a timeline: it looks without moving the cursor, puts it somewhere, pans and zooms."""

from __future__ import annotations

from dataclasses import replace

from textual import events

from meshscope.analysis.lane_rows import Lane
from meshscope.ui.look import Look
from meshscope.ui.screens.timeline_drawn import Drawn, Kept
from meshscope.ui.timeline import frame, listing, moves
from meshscope.ui.timeline.frame import Subject
from meshscope.ui.timeline.state import State, departed, panned
from meshscope.ui.timeline.viewport import Viewport

_IN, _OUT = 0.8, 1.25
_WHEEL_SHARE = 0.1


class Pointed(Drawn):
    """Without a mouse (``--no-mouse``) no such event arrives."""

    def __init__(self, subject: Subject | None, look: Look, kept: Kept | None = None) -> None:
        super().__init__(subject, look, kept)
        self._held: tuple[int, Viewport] | None = None
        self._is_dragged = False

    def _lane_at(self, y: int) -> Lane | None:
        assert self.subject is not None
        assert self.state is not None
        lines = frame.lines(self.subject.lanes, self.state, self.extent.lanes)
        at = y - frame.ABOVE
        return lines[at] if 0 <= at < len(lines) else None

    def _state_at(self, x: int, y: int) -> State | None:
        """The state with the cursor where the mouse is; at the time it has where that is on the name of a lane."""
        if self.subject is None or self.state is None or (lane := self._lane_at(y)) is None:
            return None
        column = x - self.extent.placed.gutter
        there = listing.on(self.state, lane)
        is_in = 0 <= column < self.state.view.columns
        return replace(there, at_ns=self.state.view.edge(column)) if is_in else there

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self.state is None:
            return
        if self._held is not None:
            self._drag(event.x)
            return
        is_in_time = event.x >= self.extent.placed.gutter
        pointed = self._state_at(event.x, event.y) if is_in_time else None
        if pointed != self.pointed:
            self.pointed = pointed
            self.show_below()

    def _drag(self, x: int) -> None:
        assert self._held is not None
        assert self.state is not None
        begun, view = self._held
        if x == begun and not self._is_dragged:
            return
        by_ns = (begun - x) * view.span_ns // view.columns
        there = replace(self.state, view=view.moved(by_ns))
        self.state = there if self._is_dragged else departed(self.state, there)
        self._is_dragged = True
        self.show()

    def on_mouse_down(self, event: events.MouseDown) -> None:
        self._is_dragged = False
        if self.state is not None and event.button == 1 and event.x >= self.extent.placed.gutter:
            self._held = (event.x, self.state.view)
            self.pointed = None
            self.capture_mouse()

    def on_mouse_up(self, event: events.MouseUp) -> None:
        del event
        self._held = None
        self.capture_mouse(capture=False)

    def on_click(self, event: events.Click) -> None:
        """The cursor is put there; by a second click the span is shown over the screen."""
        if self._is_dragged or self.subject is None or (there := self._state_at(event.x, event.y)) is None:
            return
        self.said, self.pointed = "", None
        if event.chain == 2 and event.x >= self.extent.placed.gutter:
            there = departed(there, moves.span_shown(self.subject.lanes, there) or there)
        self.state = there
        self.show()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._wheel(event, -1)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._wheel(event, 1)

    def _wheel(self, event: events.MouseScrollUp | events.MouseScrollDown, by: int) -> None:
        """Zoom around the mouse, or pan with shift; over the names go through the lanes."""
        if self.state is None or self.subject is None:
            return
        column = event.x - self.extent.placed.gutter
        self.pointed = None
        if column < 0:
            self.state = listing.lane_moved(self.subject.lanes, self.state, by)
        elif event.shift or event.ctrl:
            self.state = panned(self.state, by * _WHEEL_SHARE)
        else:
            around_ns = self.state.view.edge(min(column, self.state.view.columns - 1))
            view = self.state.view.zoomed(_IN if by < 0 else _OUT, around_ns)
            self.state = replace(self.state, view=view)
        self.show()
