"""Lanes in cells: what a column of time is mostly made of, an axis above them, and where the cursor stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from rich.segment import Segment
from textual.strip import Strip

from meshscope.analysis.lanes import Lane, Lanes
from meshscope.ui.look import Look
from meshscope.ui.marks.cells import Line, Piece, clip, left, strip
from meshscope.ui.palette import styles, texture
from meshscope.ui.timeline.going import matching
from meshscope.ui.timeline.state import State
from meshscope.ui.timeline.viewport import Viewport
from meshscope.units import duration

Codes = npt.NDArray[np.uint8]

_SPARSE = {
    "compute": ("▏▌", "|:"), "hidden": ("▏▒", "|="), "wait": ("╷╱", ",/"), "exposed": ("╎░", "!x"),
    "copy": ("▏▚", "|%"), "host": ("▏▃", "|-"),
}  # fmt: skip
"""What a column shows that holds less than a third of a meaning, and less than two thirds; in ASCII."""

_MEANINGS = tuple(_SPARSE)
_LEVELS = 3
_BLANK, _MATCH = 62, 63
_PICKED = 64
"""What is added to the code of a column that belongs to the span that is chosen."""

_TICK_COLUMNS = 14


@dataclass(frozen=True)
class Place:
    """Cells: ``gutter`` for the names of lanes, then ``columns`` of time."""

    gutter: int
    columns: int


def place(width: int) -> Place:
    gutter = 22 if width >= 110 else 18 if width >= 60 else 9
    return Place(gutter, max(width - gutter - 1, 1))


def lane_codes(lane: Lane, view: Viewport) -> Codes:
    """What each column shows: three levels for each meaning, the most of what is in it."""
    edges = view.edges
    codes, is_any = np.zeros(view.columns, dtype=np.uint8), np.zeros(view.columns, dtype=np.bool_)
    total, most = np.zeros(view.columns), np.full(view.columns, -1.0)
    for meaning, covered in lane.layers:
        if not len(covered):
            continue
        share, there = covered.columns(edges)
        codes[share > most] = _MEANINGS.index(meaning) * _LEVELS
        total, most, is_any = total + share, np.maximum(most, share), is_any | there
    codes += (total > 1 / 3).view(np.uint8)
    codes += (total > 2 / 3).view(np.uint8)
    codes[~is_any] = _BLANK
    return codes


@lru_cache(maxsize=16)
def _glyphs(look: Look) -> dict[int, tuple[str, str]]:
    """The character and the role of each code."""
    glyphs = {_BLANK: (" ", "text"), _MATCH: ("*" if look.is_ascii else "◆", "match")}
    for number, meaning in enumerate(_MEANINGS):
        sparse = _SPARSE[meaning][look.is_ascii]
        # On a ground of its own a sparse mark would look like a full one.
        signs = ((sparse[0], f"{meaning} bare"), (sparse[1], f"{meaning} bare"), (texture(meaning, look), meaning))
        glyphs.update({number * _LEVELS + level: glyph for level, glyph in enumerate(signs)})
    glyphs.update({code + _PICKED: (sign, "picked") for code, (sign, _) in tuple(glyphs.items())})
    return glyphs


@lru_cache(maxsize=16)
def _runs(look: Look) -> dict[int, Segment]:
    """Runs of one code that were drawn before, by code and length."""
    del look  # what it is kept by
    return {}


def segments(codes: Codes, look: Look) -> list[Segment]:
    """Neighbours of one code as one segment."""
    firsts = np.flatnonzero(codes[1:] != codes[:-1]) + 1
    edges = [0, *firsts.tolist(), len(codes)]
    values = [int(codes[0]), *codes[firsts].tolist()]
    known = _runs(look)
    found = []
    for code, at, after in zip(values, edges, edges[1:], strict=False):
        key = (after - at) << 8 | code
        segment = known.get(key)
        if segment is None:
            sign, role = _glyphs(look)[code]
            segment = known[key] = Segment(sign * (after - at), styles(look)[role])
        found.append(segment)
    return found


def lane_strip(
    lanes: Lanes, lane: Lane, state: State, placed: Place, look: Look, *, span: tuple[int, int] | None
) -> Strip:
    """One lane; ``span`` are the start and end of the span that is chosen, where it is on this lane."""
    codes = lane_codes(lane, state.view)
    if state.search is not None:
        _show_matches(lanes, lane, state, codes)
    if span is not None:
        first, last = (state.view.column(time) for time in (span[0], max(span[1] - 1, span[0])))
        codes[max(first, 0) : max(last + 1, 0)] += _PICKED
    is_here = lane.rank == state.rank and lane.role == state.role
    name = f"{lane.rank:>4} {lane.role}"
    mark: Piece = ("▸" if is_here else " ", "accent")
    head = strip([mark, (left(name, placed.gutter - 1), "strong" if is_here else "quiet")], placed.gutter, look)
    return Strip([*head, *segments(codes, look), Segment(" ", styles(look)["text"])], placed.gutter + len(codes) + 1)


_MOST_MATCHED = 200_000


def _show_matches(lanes: Lanes, lane: Lane, state: State, codes: Codes) -> None:
    """Marks columns in which a searched name begins."""
    assert state.search is not None
    view = state.view
    first, last = np.searchsorted(lane.rows.start_ns, [view.start_ns, view.stop_ns]).tolist()
    if last - first > _MOST_MATCHED:
        return
    rows = np.arange(first, last)
    begin_ns = lane.rows.start_ns[rows[matching(lanes, lane, state.search, rows)]]
    columns = ((begin_ns - view.start_ns + 1).astype(np.float64) * view.columns / view.span_ns).astype(np.int64)
    codes[np.clip(columns, 0, view.columns - 1)] = _MATCH


def axis(lanes: Lanes, state: State, placed: Place) -> list[Line]:
    """Two lines: times from the beginning of what was profiled, and below them steps, marks and the cursor."""
    view = state.view
    tick_ns = view.tick_ns(_TICK_COLUMNS)
    first = -(-(view.start_ns - lanes.start_ns) // tick_ns) * tick_ns
    times = [
        (view.column(lanes.start_ns + at), "╵" + _time(at, tick_ns), "quiet")
        for at in range(first, view.stop_ns - lanes.start_ns, tick_ns)
    ]
    steps = [
        (max(view.column(start), 0), f"▏step {number}", "quiet")
        for number, start, end in zip(*(column.tolist() for column in _steps_seen(lanes, view)), strict=True)
        if end > view.start_ns
    ]
    marks = [(view.column(at), "◆", "warn") for at in state.bookmarks]
    marks += [(view.column(at), "AB"[number], "good") for number, at in enumerate(state.marks)]
    marks.append((view.column(state.at_ns), "▼", "accent"))
    return [_laid(placed, times), _laid(placed, steps, over=marks)]


def _steps_seen(lanes: Lanes, view: Viewport) -> tuple[npt.NDArray[np.int64], ...]:
    steps = lanes.steps
    seen = (steps.end_ns > view.start_ns) & (steps.start_ns < view.stop_ns)
    return steps.number[seen], steps.start_ns[seen], steps.end_ns[seen]


def _time(at_ns: int, tick_ns: int) -> str:
    """A time with as many decimals as tell it from its neighbours."""
    for unit_ns, unit in ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs")):
        if abs(at_ns) >= unit_ns or (tick_ns >= unit_ns and at_ns == 0):
            decimals = 0
            while tick_ns % max(unit_ns // 10**decimals, 1) and 10**decimals < unit_ns:
                decimals += 1
            return f"{at_ns / unit_ns:.{decimals}f} {unit}"
    return f"{at_ns} ns"


def _laid(
    placed: Place, words: Sequence[tuple[int, str, str]], over: Sequence[tuple[int, str, str]] = ()
) -> list[Piece]:
    """Words at their columns, as far as they find room; ``over`` are signs that always do."""
    line: list[Piece] = [(" " * placed.gutter, "text")]
    signs = sorted((column, sign, role) for column, sign, role in over if 0 <= column < placed.columns)
    end = 0
    for column, text, role in sorted([*words, *signs]):
        room = min([placed.columns, *(sign[0] for sign in signs if sign[0] > column)]) - column
        if end <= column < placed.columns and len(text) <= room:
            line += [(" " * (column - end), "text"), (text, role)]
            end = column + len(text)
    return line


def heading(lanes: Lanes, state: State, name: str, width: int) -> tuple[list[Piece], list[Piece]]:
    """What is looked at, and how long the stretch on the screen is."""
    per_column = duration(state.view.span_ns / state.view.columns)
    on_screen = "on the screen, " if width >= 110 else "· "
    right: list[Piece] = [(f"{duration(state.view.span_ns)} {on_screen}{per_column} a column ", "quiet")]
    ranks = f"{len(state.shown)} of {len(lanes.ranks)} ranks" if len(state.shown) < len(lanes.ranks) else ""
    words = [f"by {state.sort}" if state.sort != "rank" else "", ranks]
    words.append("collapsed" if state.is_collapsed else "")
    if lanes.residual_ns is not None:
        words.append(f"clocks agree within {duration(lanes.residual_ns)}")
    more = " · ".join(word for word in words if word)
    return [(" timeline ", "accent"), (clip(name, max(width // 3, 8)), "strong"), (f"  {more}", "quiet")], right


_WORDS = {"wait": "waiting for a rank", "host": "host"}


def legend(rows: Sequence[Lane], placed: Place, look: Look) -> list[Piece]:
    """What the textures mean that are on these lanes."""
    drawn = {meaning for lane in rows for meaning, covered in lane.layers if len(covered)}
    pieces: list[Piece] = [(" " * placed.gutter, "text")]
    for meaning in _MEANINGS:
        if meaning in drawn:
            pieces += [(texture(meaning, look), meaning), (f" {_WORDS.get(meaning, meaning)}  ", "quiet")]
    return pieces
