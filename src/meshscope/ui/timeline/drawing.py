"""What stands around the lanes: their names, an axis above them, what is looked at, and what the textures mean."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
from rich.cells import cell_len
from rich.segment import Segment

from meshscope.analysis.lane_rows import Lane
from meshscope.analysis.lanes import ALL, Lanes
from meshscope.ui.look import Look
from meshscope.ui.marks.cells import Line, Piece, cells, clip, ends, left, plain
from meshscope.ui.palette import styles, texture
from meshscope.ui.timeline import ranking
from meshscope.ui.timeline.codes import MEANINGS, unseen
from meshscope.ui.timeline.state import State
from meshscope.ui.timeline.viewport import Viewport
from meshscope.units import duration, percent, printable, ratio, time_unit

_TICK_COLUMNS = 14
_NARROW = 11
_TAIL = 5
_NARROW_LETTERS = 0x300
_SHORT = {"compute": "comp", "collectives": "coll", "copies": "copy", "waits": "wait", "host": "host", ALL: "all"}
_WIDE_FROM = 110
_SCORE_DECIMALS = 3
_UNITS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns"))


@dataclass(frozen=True)
class Place:
    """Cells: ``gutter`` for the names of lanes, then ``columns`` of time."""

    gutter: int
    columns: int


def place(width: int) -> Place:
    gutter = 22 if width >= _WIDE_FROM else 19 if width >= 60 else _NARROW
    return Place(gutter, max(width - gutter - 1, 1))


def head(name: str, placed: Place, look: Look, *, is_here: bool) -> list[Segment]:
    """A lane's name (see :func:`names`) in its gutter."""
    return list(_head(name, placed.gutter, look, is_here))


_newest: WeakKeyDictionary[Lanes, tuple[Hashable, list[str]]] = WeakKeyDictionary()


def names(lanes: Lanes, rows: Sequence[Lane], state: State, placed: Place) -> list[str]:
    """What lanes are called: rank and role, the queue that one is of, or what the ranks are sorted by.

    Those of the last frame where nothing of that is other: most keys move the cursor alone.
    """
    has_scores = state.sort != ranking.RANK and placed.gutter > _NARROW
    told = (state.sort, state.shown[:1], state.view) if has_scores else ()
    key = (tuple(rows), state.opened, placed.gutter, told)
    kept = _newest.get(lanes)
    if kept is None or kept[0] != key:
        score = _scores(lanes, state) if has_scores else None
        kept = _newest[lanes] = (key, [_name(lane, state, placed, score) for lane in rows])
    return kept[1]


def _name(lane: Lane, state: State, placed: Place, score: Callable[[int], str] | None) -> str:
    if lane.branch:
        indent = " " if placed.gutter <= _NARROW else "    "
        return f"{indent}└ {_middle_left_out(lane.branch, placed.gutter - 3 - len(indent))}"
    if lane.role == ALL and score is not None:
        return f"{lane.rank:>4} {score(lane.rank)}"
    if placed.gutter <= _NARROW:
        return f"{lane.rank:>4} {_SHORT[lane.role]}"
    is_opened = (lane.rank, lane.role) in state.opened
    return f"{lane.rank:>4} {lane.role}{'▾' if is_opened else ''}"


def _middle_left_out(name: str, width: int) -> str:
    """A name that finds no room with its end, where threads have their numbers."""
    name = printable(name)
    if cell_len(name) <= width:
        return name
    tail = name[-_TAIL:]
    return clip(name, width - cell_len(tail)) + tail


def _scores(lanes: Lanes, state: State) -> Callable[[int], str]:
    """How the score of a rank is written: in the unit of the first rank's, or in its own where that is longer."""
    view, sort = state.view, state.sort
    if sort == ranking.BUSY:
        return lambda rank: f"{percent(ratio(ranking.score_ns(lanes, state, sort, rank), view.span_ns))} busy"
    found = lanes.late if sort == ranking.LATE else lanes.exposed
    first_ns = found[state.shown[0]].within(view.start_ns, view.stop_ns) if state.shown else 0
    of_first = time_unit((first_ns,))

    def written(rank: int) -> str:
        score_ns = found[rank].within(view.start_ns, view.stop_ns)
        unit = of_first if score_ns <= first_ns else time_unit((score_ns,))
        score = unit.written(score_ns, _SCORE_DECIMALS)
        return f"{score} late" if sort == ranking.LATE else f"exp. {score}"

    return written


@lru_cache(maxsize=4096)
def _head(name: str, gutter: int, look: Look, is_here: bool) -> tuple[Segment, ...]:  # noqa: FBT001  # a cache's key
    text = _sized(name, gutter - 1)
    found = styles(look)
    sign = ">" if look.is_ascii else "▸"
    return (
        Segment(sign if is_here else " ", found["accent"]),
        Segment(plain(text) if look.is_ascii else text, found["strong" if is_here else "quiet"]),
    )


def _sized(name: str, width: int) -> str:
    """A name in so many cells, at once where each of its letters takes one: with another stretch all scores change."""
    if name.isprintable() and len(name) <= width and ord(max(name)) < _NARROW_LETTERS:
        return name.ljust(width)
    return left(_kept_in_line(printable(name)), width)


def _kept_in_line(text: str) -> str:
    """Without letters that are written from the right: some terminals would turn the whole line around them."""
    if text.isascii():
        return text
    return "".join("�" if unicodedata.bidirectional(c) in ("R", "AL", "AN") else c for c in text)


_Word = tuple[int, tuple[str, ...], str]
"""A column, what may stand there (the longest first) and its role."""


def axis(lanes: Lanes, state: State, placed: Place) -> list[Line]:
    """Two lines: times from the beginning of what was profiled, and below them steps, marks and the cursor."""
    view = state.view
    tick_ns = view.tick_ns(_TICK_COLUMNS)
    first = -(-(view.start_ns - lanes.start_ns) // tick_ns) * tick_ns
    unit_ns, unit = _unit(max(view.stop_ns - lanes.start_ns, tick_ns))
    times = [
        (view.column(lanes.start_ns + at), (f"╵{_time(at, tick_ns, unit_ns)} {unit}",), "quiet")
        for at in range(first, view.stop_ns - lanes.start_ns, tick_ns)
    ]
    steps = [
        (max(view.column(start), 0), (f"▏step {number}", f"▏{number}", "▏"), "quiet")
        for number, start, end in zip(*(column.tolist() for column in _steps_seen(lanes, view)), strict=True)
        if end > view.start_ns
    ]
    marks: list[_Word] = [(view.column(at), ("◆",), "warn") for at in state.bookmarks]
    marks += [(view.column(at), ("AB"[number],), "good") for number, at in enumerate(state.marks)]
    marks.append((view.column(state.at_ns), ("▼",), "accent"))
    return [_laid(placed, times), _laid(placed, steps, over=marks)]


def _steps_seen(lanes: Lanes, view: Viewport) -> tuple[npt.NDArray[np.int64], ...]:
    """Steps that begin in different columns; more than there are columns cannot be told apart."""
    steps = lanes.steps
    seen = np.flatnonzero((steps.end_ns > view.start_ns) & (steps.start_ns < view.stop_ns))
    seen = seen[:: max(len(seen) // view.columns, 1)]
    return steps.number[seen], steps.start_ns[seen], steps.end_ns[seen]


def _unit(most_ns: int) -> tuple[int, str]:
    """One unit for all times of an axis that goes so far."""
    return next(((ns, unit) for ns, unit in _UNITS if most_ns >= ns), _UNITS[-1])


def _time(at_ns: int, tick_ns: int, unit_ns: int) -> str:
    """A time with as many decimals as tell it from its neighbours."""
    decimals = 0
    while tick_ns % max(unit_ns // 10**decimals, 1) and 10**decimals < unit_ns:
        decimals += 1
    return f"{at_ns / unit_ns:.{decimals}f}"


def _laid(placed: Place, words: Sequence[_Word], over: Sequence[_Word] = ()) -> list[Piece]:
    """Words at their columns, as long as they find room; ``over`` are signs that always do."""
    line: list[Piece] = [(" " * placed.gutter, "text")]
    signs = sorted(sign for sign in over if 0 <= sign[0] < placed.columns)
    found = sorted([*words, *signs])
    end = 0
    for at, (column, forms, role) in enumerate(found):
        after = (other[0] for other in (found[at + 1 :] if len(forms) > 1 else signs) if other[0] > column)
        room = min(placed.columns, next(after, placed.columns)) - column
        text = next((form for form in forms if len(form) <= room), "")
        if text and end <= column < placed.columns:
            line += [(" " * (column - end), "text"), (text, role)]
            end = column + len(text)
    return line


def heading(lanes: Lanes, state: State, name: str, badge: Piece | None, width: int) -> Line:
    """What is looked at and how the clock of a replay stands; at the right how long the stretch on the screen is."""
    view = state.view
    of_all = f" of {duration(lanes.end_ns - lanes.start_ns)}" if view.span_ns < lanes.end_ns - lanes.start_ns else ""
    on_screen = f"{of_all} on the screen, " if width >= _WIDE_FROM else f"{of_all if width >= 60 else ''} · "
    per_column = f"{duration(view.span_ns / view.columns)} a column "
    right: list[Piece] = [(f"{duration(view.span_ns)}{on_screen}{per_column}", "quiet")]
    words = [f"{len(state.shown)} of {len(lanes.ranks)} ranks" if len(state.shown) < len(lanes.ranks) else ""]
    words.append(f"most {state.sort} first" if state.sort != ranking.RANK else "")
    if lanes.residual_ns is not None and width >= _WIDE_FROM:
        words.append(f"clocks agree within {duration(lanes.residual_ns)}")
    more = " · ".join(word for word in words if word)
    first: list[Piece] = [(" timeline ", "accent"), (clip(name, max(width // 3, 8)), "strong")]
    return ends([*first, *([("  ", "text"), badge] if badge else []), (f"  {more}", "quiet")], right, width)


_WORDS = {"wait": "waiting"}


def legend(rows: Sequence[Lane], more: str, placed: Place, look: Look, *, has_unseen: bool) -> Line:
    """What the textures mean that are on these lanes; ``more`` stands at the right."""
    width = placed.gutter + placed.columns + 1
    drawn = {meaning for lane in rows for meaning, _ in lane.drawn}
    pieces: list[Piece] = []
    for meaning in MEANINGS:
        if meaning in drawn:
            pieces += [(texture(meaning, look), meaning), (f" {_WORDS.get(meaning, meaning)}  ", "quiet")]
    if has_unseen:
        pieces += [(unseen(look), "faint"), (" not recorded", "quiet")]
    indent = max(min(placed.gutter, width - cells(pieces) - cells([(more, "quiet")]) - 1), 1)
    return ends([(" " * indent, "text"), *pieces], [(more, "quiet")], width)
