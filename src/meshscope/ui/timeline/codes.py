"""Lanes in cells: what each column of time is mostly made of, and neighbours of one kind as one segment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from rich.segment import Segment

from meshscope.analysis.coverage import Coverage, columns
from meshscope.analysis.lane_rows import Lane
from meshscope.analysis.stack import stacked_columns
from meshscope.ui.look import Look
from meshscope.ui.palette import styles, texture
from meshscope.ui.timeline.viewport import Viewport

Codes = npt.NDArray[np.uint8]
Ns = npt.NDArray[np.int64]

_SPARSE = {
    "compute": ("▏▌", "|:"), "hidden": ("▏▒", "|="), "wait": ("╷╱", ",/"), "exposed": ("╎░", "!x"),
    "copy": ("▏▚", "|%"), "host": ("▏▃", "|-"),
}  # fmt: skip
"""What a column shows that holds less than a third of a meaning, and less than two thirds; in ASCII."""

MEANINGS = tuple(_SPARSE)
_LEVELS = 3
_CODE = {meaning: number * _LEVELS for number, meaning in enumerate(MEANINGS)}
UNSEEN, CURSOR, BLANK, MATCH = 60, 61, 62, 63
PICKED = 64
"""What is added to the code of a column that belongs to the span that is chosen."""

_LENGTH_BITS = 8
_PLACE_BITS = 3
_LAST_PLACE = (1 << _PLACE_BITS) - 1


def codes(rows: Sequence[Lane], view: Viewport) -> Codes:
    """What each column of each lane shows, shape (lanes, columns): three levels of the meaning of most of it.

    All lanes at once: a frame is made of few large steps instead of many small ones.
    """
    drawn = [(at, lane.drawn) for at, lane in enumerate(rows) if lane.drawn]
    found = np.full((len(rows), view.columns), BLANK, dtype=np.uint8)
    if not drawn:
        return found
    stacks = [stack for at, _ in drawn if (stack := rows[at].stack) is not None]
    if len(stacks) == len(drawn):
        busy_ns = stacked_columns(stacks, view.edges)
    else:
        busy_ns = columns([covered for _, layers in drawn for _, covered in layers], view.edges)
    meaning = np.array([_CODE[meaning] for _, layers in drawn for meaning, _ in layers], dtype=np.uint8)
    counts = np.array([len(layers) for _, layers in drawn])
    found[[at for at, _ in drawn]] = _mixed(busy_ns, meaning, counts, view.edges[1:] - view.edges[:-1])
    return found


def _mixed(busy_ns: Ns, meaning: Codes, counts: Ns, width_ns: Ns) -> Codes:
    """Layers (layers, columns) as lanes, of which each has so many as ``counts`` says. Uses up ``busy_ns``."""
    first = np.cumsum(counts) - counts
    total_ns = _each(np.add, busy_ns, counts, first)
    # The most of a lane's layers, with its place among them in the lowest bits: of equal ones the first.
    place = np.arange(len(busy_ns)) - np.repeat(first, counts)
    np.left_shift(busy_ns, _PLACE_BITS, out=busy_ns)
    np.bitwise_or(busy_ns, (_LAST_PLACE - place)[:, None], out=busy_ns)
    most = _each(np.maximum, busy_ns, counts, first)
    mixed = meaning[first[:, None] + _LAST_PLACE - (most & _LAST_PLACE)]
    mixed += (3 * total_ns > width_ns).view(np.uint8)
    mixed += (3 * total_ns > 2 * width_ns).view(np.uint8)
    mixed[total_ns == 0] = BLANK
    return mixed


def _each(reduce: np.ufunc, busy_ns: Ns, counts: Ns, first: Ns) -> Ns:
    """Lane by lane. Most often all have as many layers, and then whole arrays go through at once."""
    many = int(counts[0])
    if not (counts == many).all():
        return np.asarray(reduce.reduceat(busy_ns, first, axis=0))
    layers = busy_ns.reshape(len(counts), many, -1)
    found = layers[:, 0].copy()
    for number in range(1, many):
        reduce(found, layers[:, number], out=found)
    return found


def mark_unseen(found: Codes, rows: Sequence[Lane], profiled: Mapping[int, Coverage], view: Viewport) -> None:
    """Where nothing was recorded of a rank its blank columns say so: that is not the same as idle."""
    ranks = tuple(dict.fromkeys(lane.rank for lane in rows))
    is_unseen = _unseen([profiled[rank] for rank in ranks], view.edges)
    place = {rank: at for at, rank in enumerate(ranks)}
    of = is_unseen[[place[lane.rank] for lane in rows]]
    found[of & (found == BLANK)] = UNSEEN


def _unseen(profiled: Sequence[Coverage], edges: Ns) -> npt.NDArray[np.bool_]:
    """Which columns no interval reaches into, shape (coverages, columns)."""
    first = np.array([one.start_ns[0] for one in profiled])[:, None]
    last = np.array([one.closed_ns[-1] for one in profiled])[:, None]
    beside = (edges[1:] <= first) | (edges[:-1] >= last)
    some = [at for at, one in enumerate(profiled) if len(one) > 1]
    if some:
        beside[some] = columns([profiled[at] for at in some], edges) == 0
    return beside


def unseen(look: Look) -> str:
    """The sign of a column of which nothing was recorded."""
    return "~" if look.is_ascii else "╌"


@lru_cache(maxsize=16)
def _glyphs(look: Look) -> dict[int, tuple[str, str]]:
    """The character and the role of each code."""
    glyphs = {BLANK: (" ", "text"), MATCH: ("*" if look.is_ascii else "●", "match")}
    glyphs[UNSEEN] = (unseen(look), "faint")
    glyphs[CURSOR] = ("|" if look.is_ascii else "│", "accent")
    for number, meaning in enumerate(MEANINGS):
        sparse = _SPARSE[meaning][look.is_ascii]
        # On a ground of its own a sparse mark would look like a full one.
        signs = ((sparse[0], f"{meaning} bare"), (sparse[1], f"{meaning} bare"), (texture(meaning, look), meaning))
        glyphs.update({number * _LEVELS + level: glyph for level, glyph in enumerate(signs)})
    glyphs.update({code + PICKED: (sign, "picked") for code, (sign, _) in tuple(glyphs.items())})
    return glyphs


class _Runs(dict[int, Segment]):
    """Runs of one code that were drawn before, by length and code."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look = look

    def __missing__(self, key: int) -> Segment:
        sign, role = _glyphs(self._look)[key & (1 << _LENGTH_BITS) - 1]
        segment = self[key] = Segment(sign * (key >> _LENGTH_BITS), styles(self._look)[role])
        return segment


@lru_cache(maxsize=16)
def _runs(look: Look) -> _Runs:
    return _Runs(look)


def segments(found: Codes, look: Look) -> list[list[Segment]]:
    """Each lane with neighbours of one code as one segment."""
    lanes, columns = found.shape
    is_first = np.empty((lanes, columns), dtype=np.bool_)
    is_first[:, 0] = True
    np.not_equal(found[:, 1:], found[:, :-1], out=is_first[:, 1:])
    at = np.flatnonzero(is_first)
    length = np.diff(np.append(at, lanes * columns))
    keys = (length << _LENGTH_BITS) | found.reshape(-1)[at]
    known = _runs(look)
    drawn = list(map(known.__getitem__, keys.tolist()))
    ends = np.searchsorted(at, np.arange(1, lanes + 1) * columns).tolist()
    return [drawn[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]
