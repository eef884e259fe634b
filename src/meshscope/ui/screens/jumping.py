"""A board that knows where one came from: backspace goes back to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual.binding import Binding, BindingType

from meshscope.ui.screens.explaining import Explaining

_MOST = 100


@dataclass(frozen=True)
class Place:
    """What a board shows: the ``choice`` of a run (None: whichever is looked at by itself), the panel, and the clock.

    ``held_ns`` is where the clock was held (unix ns); None while it ran.
    """

    choice: str | None
    focused: str
    is_maximised: bool
    held_ns: int | None = None


class Jumping(Explaining):
    """Every other run, panel or size, and every jump of the clock, leaves the place before it to come back to."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("backspace", "back", "back", show=False)]

    _places: tuple[Place, ...] = ()

    # What heirs say

    @property
    def held_ns(self) -> int | None:
        """Where the clock is held; None where it runs, or there is none."""
        return None

    def hold_at(self, unix_ns: int) -> None:
        """Hold the clock at a time."""

    # Going, and going back

    @property
    def place(self) -> Place:
        """Where the board is now."""
        return Place(self._choice or None, self._focused, self._is_maximised, self.held_ns)

    def leave_place(self) -> None:
        """Take note of where the board is, before it goes elsewhere."""
        if not self._places or self._places[-1] != self.place:
            self._places = (*self._places[-_MOST + 1 :], self.place)

    def choose(self, name: str) -> None:
        if name != self.scene.selected:
            self.leave_place()
        super().choose(name)

    def focus_on(self, name: str) -> None:
        if name != self._focused:
            self.leave_place()
        super().focus_on(name)

    def action_maximise(self) -> None:
        self.leave_place()
        super().action_maximise()

    def action_back(self) -> None:
        """To the newest place that differs from this one."""
        places = [place for place in self._places if place != self.place]
        if not places:
            self.say("There is nowhere to go back to.")
            return
        *left, there = places
        if there.held_ns is not None:
            self.hold_at(there.held_ns)
        self._is_maximised = there.is_maximised
        if there.choice != self.place.choice:
            super().choose(there.choice or "")
        self.focus_on(there.focused)
        self._places = tuple(left)
