"""A lane by the queues that its spans were on: the streams of a device, the lines of an XLA trace, the threads."""

from __future__ import annotations

import re
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from meshscope.analysis.coverage import coverage
from meshscope.analysis.lane_rows import Lane, Rows
from meshscope.analysis.lanes import Lanes
from meshscope.intervals import union

Ints = npt.NDArray[np.int64]

UNNAMED = "a lane that the trace does not name"

_known: WeakKeyDictionary[Lane, tuple[Lane, ...]] = WeakKeyDictionary()


def streams(lanes: Lanes, lane: Lane) -> tuple[Lane, ...]:
    """One lane for each queue, by name (``stream 7`` before ``stream 20``); the answer is kept as long as the lane."""
    if lane not in _known:
        _known[lane] = tuple(_streams(lanes, lane))
    return _known[lane]


def is_known(lane: Lane) -> bool:
    """Whether :func:`streams` has been asked for a lane: the first time costs a sort of its spans."""
    return lane in _known


def _streams(lanes: Lanes, lane: Lane) -> list[Lane]:
    names, number = _numbered(lanes, lane)
    order = np.argsort(number, kind="stable")
    bounds = np.searchsorted(number[order], np.arange(len(names) + 1))
    found = []
    for name in sorted(names, key=_natural):
        at = names[name]
        mine = _some(lane.rows, order[bounds[at] : bounds[at + 1]])
        busy = union(mine.start_ns, mine.end_ns)
        # The layers of the whole lane are of all that it does; a queue has its part of each.
        layers = tuple((meaning, coverage(busy & covered.intervals)) for meaning, covered in lane.layers)
        found.append(Lane(lane.rank, lane.role, layers, (mine,), name))
    return found


def _numbered(lanes: Lanes, lane: Lane) -> tuple[dict[str, int], Ints]:
    """The names of the queues, each with a number, and the number of each row: windows number theirs differently."""
    names: dict[str, int] = {}
    number = np.zeros(len(lane.rows), dtype=np.int64)
    for window in np.unique(lane.rows.window).tolist():
        spans = lanes.windows[window].spans
        here = np.flatnonzero(lane.rows.window == window)
        own, back = np.unique(spans.lane[lane.rows.row[here]], return_inverse=True)
        called = [spans.lanes[at] if 0 <= at < len(spans.lanes) else UNNAMED for at in own.tolist()]
        number[here] = np.array([names.setdefault(name, len(names)) for name in called])[back.reshape(-1)]
    return names, number


def _some(rows: Rows, keep: Ints) -> Rows:
    end_ns = rows.end_ns[keep]
    return Rows(rows.start_ns[keep], end_ns, np.maximum.accumulate(end_ns), rows.window[keep], rows.row[keep])


def _natural(name: str) -> tuple[tuple[int, str], ...]:
    """Numbers within names by their value."""
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d{1,18})", name))
