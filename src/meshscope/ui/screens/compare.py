"""Two runs side by side: the verdict, each number as two bars, and below them what changed most."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen

from meshscope.analysis.change import Change, Quantity
from meshscope.analysis.change_words import NAMES, OF_A_STEP, PROFILED
from meshscope.analysis.pairing import Changes
from meshscope.analysis.work_changes import Seen, WorkChange
from meshscope.ui.canvas import Canvas
from meshscope.ui.commands import Command
from meshscope.ui.look import Look
from meshscope.ui.marks.bars import length
from meshscope.ui.marks.cells import Line, Piece, ends, left, named, right, strips, wrapped
from meshscope.ui.screens.choosing import PICTURES, Choosing
from meshscope.ui.screens.dialog import Dialog
from meshscope.units import UNKNOWN, duration, milliseconds, printable, rate, ratio, size

if TYPE_CHECKING:
    from meshscope.ui.commanding import Commanding

_SHOW = {"ns": duration, "bytes": size, "per_s": rate}
_ROLES = {"faster": "good", "slower": "bad"}
_INKS = ("compute", "exposed", "copy", "idle")
_BETTER_MORE = ("throughput",)
_NAME_WIDTH = 13
_FIGURE_WIDTH = 9
_CHANGE_WIDTH = 10
_LEAST_BAR = 6

KEYS = (
    ("← →  h l  tab", "another strategy"),
    ("↑ ↓  j k", "scroll; pgup pgdn and space by pages, home to the top"),
    ("s", "save the screen as a picture or as plain text"),
    ("T", "light or dark"),
    ("ctrl+p", "all commands by name"),
    ("q  esc", "leave"),
)


def drawn(pair: Change, width: int, look: Look) -> list[Line]:
    """All lines of a pair, ``width`` cells wide; as many as it takes."""
    role = _ROLES.get(pair.verdict, "strong")
    lines: list[Line] = [[(line, role)] for line in wrapped(printable(pair.sentence), width, 4)]
    lines += [[], _heading(width, pair, "per step", "99 % interval")]
    lines += [_quantity(found, width, look) for found in pair.quantities if found.metric in OF_A_STEP]
    inside = [found for found in pair.quantities if found.metric not in OF_A_STEP]
    lines += [[(line, "quiet")] for line in wrapped(PROFILED, width, 2)] if inside else []
    lines += [_quantity(found, width, look) for found in inside]
    if pair.works:
        lines += [[], _heading(width, pair, "what changed", "ms of a step")]
        most_ns = max(max(_total_ns(work.a), _total_ns(work.b)) for work in pair.works)
        lines += [_work(work, most_ns, width, look) for work in pair.works if work.how]
        if not any(work.how for work in pair.works):
            lines.append([("no kernel, operator or collective changed beyond its noise", "quiet")])
    notes = [f"differs: {what}" for what in pair.differs] + [f"– {note}" for note in pair.basis]
    lines.append([])
    return lines + [[(line, "quiet")] for note in notes for line in wrapped(printable(note), width, 3)]


def _quantity(found: Quantity, width: int, look: Look) -> Line:
    most = max((value for value in (found.a, found.b) if not math.isnan(value)), default=math.nan)
    interval = UNKNOWN if math.isnan(found.low + found.high) else f"{_percent(found.low)} … {_percent(found.high)}"
    ink = found.metric if found.metric in _INKS else "text"
    bars = [length(ratio(value, most), _bar_width(width), ink, look) for value in (found.a, found.b)]
    show = _SHOW[found.unit]
    line = _line(NAMES.get(found.metric, found.metric), bars, (show(found.a), show(found.b)))
    return [*line, (right(_percent(found.change), _CHANGE_WIDTH), _role(found)), (f"  {interval}", "quiet")]


def _role(found: Quantity) -> str:
    if found.verdict not in ("more", "less"):
        return "quiet"
    return "good" if (found.verdict == "more") == (found.metric in _BETTER_MORE) else "bad"


def _work(work: WorkChange, most_ns: float, width: int, look: Look) -> Line:
    totals = _total_ns(work.a), _total_ns(work.b)
    ink = work.kind if work.kind in _INKS else "text"
    bars = [length(ratio(total_ns, most_ns), _bar_width(width), ink, look) for total_ns in totals]
    shown = [milliseconds(total_ns) if total_ns else UNKNOWN for total_ns in totals]
    change = f"{'−' if work.effect_ns < 0 else '+'}{milliseconds(abs(work.effect_ns))}"
    role = "bad" if work.effect_ns > 0 else "good"
    line = _line(printable(work.name), bars, (shown[0], shown[1]))
    return [*line, (right(change, _CHANGE_WIDTH), role), (f"  {work.how}", "text")]


def _total_ns(seen: Seen | None) -> float:
    return seen.total_ns if seen else 0.0


def _bar_width(width: int) -> int:
    """What is left of the line for each of two bars, after names, figures, the change and its interval."""
    return max((width - _NAME_WIDTH - 2 * (_FIGURE_WIDTH + 2) - _CHANGE_WIDTH - 22) // 2, _LEAST_BAR)


def _line(name: str, bars: Sequence[list[Piece]], figures: tuple[str, str]) -> list[Piece]:
    line: list[Piece] = [(left(name, _NAME_WIDTH), "text")]
    for bar, figure in zip(bars, figures, strict=True):
        line += [(" ", "text"), *bar, (right(figure, _FIGURE_WIDTH), "strong"), (" ", "text")]
    return line


def _heading(width: int, pair: Change, name: str, last: str) -> Line:
    side = _bar_width(width) + _FIGURE_WIDTH
    titles = ("", "") if pair.strategy else (f" {printable(pair.a_title)}", f" {printable(pair.b_title)}")
    heads = "".join(f" {right(head + title, side)} " for head, title in zip("AB", titles, strict=True))
    return [(f"{left(name, _NAME_WIDTH)}{heads}{right('B − A', _CHANGE_WIDTH)}  {last}", "quiet")]


def _percent(frac: float) -> str:
    return UNKNOWN if math.isnan(frac) else f"{'−' if frac < 0 else '+'}{abs(frac) * 100:.1f} %"


class Compare(Screen[None]):
    """A and B. Left and right choose among strategies, up and down scroll.

    Leaving the first screen of all leaves the program, and any other goes back to where it was opened.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "save", show=False),
        Binding("T", "app.turn_light", show=False),
        Binding("question_mark,f1", "help", show=False),
        Binding("left,h,shift+tab", "choose(-1)", show=False),
        Binding("right,l,tab", "choose(1)", show=False),
        Binding("up,k", "scroll(-1)", show=False),
        Binding("down,j", "scroll(1)", show=False),
        Binding("pageup", "scroll(-10)", show=False),
        Binding("pagedown,space", "scroll(10)", show=False),
        Binding("home", "scroll(-100000)", show=False),
        Binding("q,escape,backspace", "leave", show=False),
    ]

    def __init__(self, found: Changes, look: Look, *, is_first: bool = True) -> None:
        super().__init__()
        self._is_first = is_first
        self._found = found
        self._look = look
        self._chosen = 0
        self._top = 0

    def compose(self) -> ComposeResult:
        yield Canvas(id="compare")

    def on_resize(self) -> None:
        self._show()

    def _show(self) -> None:
        width, height = self.size.width, self.size.height
        lines = drawn(self._found.changes[self._chosen], max(width - 2, 1), self._look)
        room = max(height - 3, 1)
        self._top = max(0, min(self._top, len(lines) - room))
        body = [[(" ", "text"), *line] for line in lines[self._top : self._top + room]]
        body += [[]] * (room - len(body))
        canvas = self.query_one(Canvas)
        canvas.styles.width, canvas.styles.height = width, height
        canvas.paint(
            strips([self._head(width), [], *body, self._keys(is_long=len(lines) > room)], width, height, self._look)
        )

    def _head(self, width: int) -> Line:
        tabs: list[Piece] = [
            (f"  {printable(pair.title)}", "accent" if at == self._chosen else "quiet")
            for at, pair in enumerate(self._found.changes)
        ]
        alone = ", ".join(f"{printable(title)} only in {side}" for side, title in self._found.alone)
        return ends([(" meshscope  compare", "strong"), *tabs], [(alone, "quiet")], width)

    def _keys(self, *, is_long: bool) -> Line:
        keys = [("← →", "strategy")] if len(self._found.changes) > 1 else []
        keys += [("?", "help")]
        keys += [("↑ ↓", "scroll")] if is_long else []
        line: list[Piece] = [(" ", "text")]
        for key, what in (*keys, ("q", "leave" if self._is_first else "back")):
            line += [(named(key, self._look), "key"), (f" {what}   ", "quiet")]
        return line

    def action_choose(self, by: int) -> None:
        self._chosen, self._top = (self._chosen + by) % len(self._found.changes), 0
        self._show()

    def action_scroll(self, by: int) -> None:
        self._top += by
        self._show()

    def action_save(self) -> None:
        app = cast("Commanding", self.app)
        app.push_screen(Choosing("save the screen", PICTURES, self._look), app.save_screen)

    def action_help(self) -> None:
        # Where there is one pair only, nothing else can be chosen.
        keys = KEYS if len(self._found.changes) > 1 else KEYS[1:]
        lines: list[Line] = [[(f"{named(key, self._look):<14}", "key"), (what, "text")] for key, what in keys]
        self.app.push_screen(Dialog("compare", lines, self._look))

    def wear(self, look: Look) -> None:
        """Be drawn in another look from now on."""
        self._look = look
        self._show()

    def commands(self) -> Iterator[Command]:
        """What this screen can do."""
        yield Command("Next strategy", "The next pair", partial(self.action_choose, 1), "right")
        yield Command("Save the screen", "As a picture or as plain text", self.action_save, "s")
        yield Command("Help", "The keys", self.action_help, "?")
        yield Command("Quit", "Leave", self.action_leave, "q")

    def action_leave(self) -> None:
        if self._is_first:
            self.app.exit("")
        else:
            self.dismiss(None)
