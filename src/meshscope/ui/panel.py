"""What a panel is: a question put to a run, and a drawing of its answer. One file in ``panels/`` makes one."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from textual.strip import Strip

from meshscope.errors import MeshscopeError
from meshscope.ui.look import USUAL, Look
from meshscope.ui.marks.cells import Piece, strips, wrapped
from meshscope.ui.scene import Scene, version
from meshscope.ui.sheet import Sheet
from meshscope.units import printable


@dataclass(frozen=True)
class Frame:
    """What a drawing is made for. ``scroll`` counts lines back from the newest, ``selected`` is the name of a run,
    ``picked`` numbers what was chosen within the panel, ``turn`` counts how often it was turned.

    ``caveat`` says what the answers do not stand on yet; it is shown with each of them. ``mark`` stands in the title:
    that what is shown never ran.
    """

    width: int
    height: int
    look: Look = USUAL
    now_unix_ns: int = 0
    selected: str = ""
    scroll: int = 0
    picked: int = 0
    turn: int = 0
    caveat: str = ""
    mark: str = ""


@dataclass(frozen=True)
class Fresh:
    """What an answer stands on: ``of`` in words, when that was, and what measuring it cost."""

    of: str = ""
    at_unix_ns: int | None = None
    cost_frac: float | None = None


UNSTATED = Fresh()


@dataclass(frozen=True)
class Help:
    """What a panel says of itself: ``what`` it shows, and pairs of (drawn, meaning) and (key, what it does).

    ``columns`` name every heading as it is drawn, with the unit, and for a share what it is a share of; ``states`` are
    what may stand in place of numbers. Keys that do the same in every panel are not among ``keys``.
    """

    what: str
    columns: tuple[tuple[str, str], ...] = ()
    states: tuple[tuple[str, str], ...] = ()
    keys: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Panel:
    """``question`` runs in a thread and may take its time; ``draw`` is called on every change and computes nothing.

    ``depends`` gives a key of the run; while it is unchanged the question is not asked again. ``promise`` says what
    will fill the panel. ``is_overall`` asks about all runs together, whichever is selected. ``of`` names the screens
    that have it (recordings, traces opened by themselves), ``suits`` tells for which scenes; one that ``scrolls``
    has more lines than room; one that ``is_strip`` reads across and can do with a few lines below the others. ``count``
    tells how many things an answer holds to choose from, for a panel that has such: there the keys for another run move
    among them while it has the focus, and ``chooses`` gives what the footer calls one; ``is_told`` says that the footer
    tells how many, seen or not. ``key`` is the letter that leads to a panel that has no digit; ``turned`` gives an
    answer as it is grouped after so many turns.
    ``help`` and ``data`` (its answer as a table to copy and export) stand in ``ui/about/``. Titles and promises are
    written by us; everything else goes through ``units.printable``.
    """

    name: str
    title: str
    number: int
    promise: str
    question: Callable[[Scene], Any]
    draw: Callable[[Any, Frame], list[Strip]]
    fresh: Callable[[Any], Fresh] = lambda _: Fresh()
    depends: Callable[[Scene], Hashable] = lambda scene: version(scene.run)
    is_overall: bool = False
    of: tuple[str, ...] = ("recording",)
    suits: Callable[[Scene], bool] = lambda _: True
    scrolls: bool = False
    is_strip: bool = False
    count: Callable[[Any], int] | None = None
    chooses: Callable[[Any], str] = lambda _: "row"
    is_told: bool = False
    key: str = ""
    turned: Callable[[Any, int], Any] = lambda answer, _: answer
    help: Help | None = None
    data: Callable[[Any], Sheet] | None = None

    @property
    def sign(self) -> str:
        """The key that leads to it, as its title shows it."""
        return self.key or str(self.number % 10)


def note(text: str, frame: Frame, role: str = "quiet") -> list[Strip]:
    """A few words where a drawing would be."""
    lines: list[list[Piece]] = [[(line, role)] for line in wrapped(printable(text), frame.width, max(frame.height, 1))]
    return strips(lines, frame.width, frame.height, frame.look)


def refusal(error: MeshscopeError, frame: Frame) -> list[Strip]:
    """What went wrong and what to do, where a drawing would be."""
    first = [[(line, "bad")] for line in wrapped(printable(error.message), frame.width, max(frame.height - 1, 1))]
    then = [
        [(line, "quiet")] for line in wrapped(printable(error.hint), frame.width, max(frame.height - len(first), 1))
    ]
    return strips([*first, *then], frame.width, frame.height, frame.look)
