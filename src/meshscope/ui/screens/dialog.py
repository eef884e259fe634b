"""Small framed texts over a screen, the question before leaving a run, and the keys that the help of a board lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from meshscope.ui.canvas import Canvas
from meshscope.ui.look import Look
from meshscope.ui.marks.cells import Line, Piece, cells, clip, filled, strips

T = str | None

_FRAME = 6
"""Cells that a frame takes beside its title."""


def framed(lines: Sequence[Line], title: str, look: Look) -> list[Line]:
    """Lines in a quiet frame with a title, as wide as the widest of them."""
    width = max(*(cells(line) for line in lines), cell_len(title) + 2)
    corners = "++++-|" if look.is_ascii else "╭╮╰╯─│"
    top: list[Piece] = [(corners[0] + corners[4] + " ", "faint"), (title, "accent")]
    top.append((" " + corners[4] * (width - cell_len(title) - 1) + corners[1], "faint"))
    body: list[Line] = [
        [(corners[5] + " ", "faint"), *filled(line, width), (" " + corners[5], "faint")] for line in lines
    ]
    return [top, *body, [(corners[2] + corners[4] * (width + 2) + corners[3], "faint")]]


class Dialog(ModalScreen[T]):
    """Shows lines; ``escape`` dismisses it with None."""

    DEFAULT_CSS = """
    Dialog { align: center middle; background: $background 60%; &:ansi { background: transparent; } }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "answer(None)", show=False)]

    def __init__(self, title: str, lines: Sequence[Line], look: Look) -> None:
        super().__init__()
        self._title = title
        self._lines = lines
        self._look = look

    def compose(self) -> ComposeResult:
        yield Canvas(id="dialog")

    def on_mount(self) -> None:
        self.show()

    def on_resize(self) -> None:
        self.show()

    def show(self) -> None:
        lines = framed(self._lines, clip(self._title, self.size.width - _FRAME), self._look)
        width = min(cells(lines[0]), self.size.width)
        height = min(len(lines), self.size.height)
        canvas = self.query_one(Canvas)
        canvas.styles.width, canvas.styles.height = width, height
        canvas.paint(strips(lines, width, height, self._look))

    def wear(self, look: Look) -> None:
        """Be drawn in another look from now on."""
        self._look = look
        self.show()

    def action_answer(self, answer: str | None) -> None:
        self.dismiss(answer)


KEYS = (
    ("↑ ↓  j k", "choose a strategy"),
    ("[  ]", "the strategy before, the next, from any panel"),
    ("tab  shift+tab", "a panel (or 1 … 9, 0, K P I; in K, g groups)"),
    ("enter  m", "maximise the panel, and back"),
    ("f", "the findings; ↑ ↓ choose, g: what was looked for"),
    ("t  c", "the timeline; all strategies side by side"),
    ("e", "explain: arrows choose a number, enter opens it"),
    ("pgup  pgdn", "scroll the log"),
    ("", ""),
    ("space  < >", "pause, go on, at the end again; slower, faster"),
    ("← →", "seek (h l too); with shift, five times as far"),
    ("home  end", "the beginning; the newest (L too), or the end"),
    ("", ""),
    ("p", "profile the next steps now (while a run is live)"),
    ("y  x", "copy the selected row, or all; export CSV, JSON"),
    ("s", "save the screen as a picture or as plain text"),
    ("backspace", "back to the strategy, panel, held time before"),
    ("T", "light or dark"),
    ("esc", "all panels; out of a dialog, off the numbers"),
    ("?  F1", "this help"),
    ("ctrl+p", "all commands by name, these among them"),
    ("ctrl+l", "draw everything again"),
    ("q  ctrl+c", "leave; a live run can be stopped or left running"),
)
TRACE_KEYS = (
    ("↑ ↓  j k", "choose a run"),
    ("[  ]", "the run before, the next, from any panel"),
    ("tab  shift+tab", "a panel (or 1 … 9, K P I; in K, g groups)"),
    ("enter  m", "maximise the panel, and back"),
    ("f", "the findings; ↑ ↓ choose, g: what was looked for"),
    ("t", "the timeline of the run: lanes of all ranks"),
    ("c", "the runs side by side; compare two"),
    ("e", "explain: arrows choose a number, enter opens it"),
    ("pgup  pgdn", "scroll what was read"),
    ("", ""),
    ("y  x", "copy the selected row, or all; export CSV, JSON"),
    ("s", "save the screen as a picture or as plain text"),
    ("backspace", "back to the run and panel before"),
    ("T", "light or dark"),
    ("esc", "all panels; out of a dialog, off the numbers"),
    ("?  F1", "this help"),
    ("ctrl+p", "all commands by name, these among them"),
    ("ctrl+l", "draw everything again"),
    ("q  ctrl+c", "leave; reading ends"),
)
MEANINGS = (
    ("compute", "computing, beside no communication"),
    ("hidden", "communicating beside computing: costs nothing"),
    ("exposed", "communicating while nothing computes: costs time"),
    ("copy", "moving memory, alone"),
    ("idle", "neither; waiting for the host, data or others"),
)


class Leaving(Dialog):
    """Asked before a live run is left: ``stop`` it, ``leave`` it running, or None to stay."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "answer('stop')", show=False),
        Binding("l,d", "answer('leave')", show=False),
        Binding("c,escape,q", "answer(None)", show=False),
        Binding("ctrl+c", "answer('stop')", show=False),
        Binding("up,k,left,shift+tab", "move(-1)", show=False),
        Binding("down,j,right,tab", "move(1)", show=False),
        Binding("enter,space", "choose", show=False),
    ]
    TITLE: ClassVar[str] = "a run is live"
    STOPPING: ClassVar[str] = "Stopping: every rank is being ended…"
    CHOICES: ClassVar[tuple[tuple[str, str, str | None], ...]] = (
        ("l", "leave it running; meshscope watch rejoins it", "leave"),
        ("s", "stop the run: every rank is ended, what was recorded stays", "stop"),
        ("c", "cancel: back to the screen", None),
    )

    def __init__(self, look: Look) -> None:
        self._at = 0
        super().__init__(self.TITLE, self._choices(), look)

    def _choices(self) -> list[Line]:
        lines: list[Line] = []
        for index, (key, words, _) in enumerate(self.CHOICES):
            is_chosen = index == self._at
            mark: Piece = ("▸ " if is_chosen else "  ", "accent")
            lines.append([mark, (key, "key"), ("  " + words, "strong" if is_chosen else "text")])
        return lines

    def action_move(self, by: int) -> None:
        self._at = (self._at + by) % len(self.CHOICES)
        self._lines = self._choices()
        self.show()

    def action_choose(self) -> None:
        self.dismiss(self.CHOICES[self._at][2])
