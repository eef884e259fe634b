"""What a Kineto file says of time and cannot be so: rows that are dropped or mended, each by a reason that is counted.

One pass over the columns after the file has been scanned, so that every scanner is mended alike. Nothing here asks
where zero is, except for events at 0 that last 0: shifting all times of a file changes no answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from meshscope.readers.decimals import BEFORE_NS, BEYOND_NS, RATHER_NS, UNKNOWN_NS
from meshscope.readers.kineto_columns import COPY, KERNEL, PER_ALLOCATION, PER_ROW, Columns
from meshscope.readers.kineto_graphs import LONG_NS, Times
from meshscope.readers.time_bounds import (
    DAY_NS,
    LATEST_NS,
    NEGATIVE,
    NO_DURATION,
    NO_TIME,
    OUT_OF_RANGE,
    RATHER_NANOSECONDS,
    STRAY,
    TOO_EARLY,
    TOO_LONG,
    is_torn,
    is_wide,
    strays,
)  # fmt: skip
from meshscope.units import duration

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

LOST = "device event without a time"
THREADLESS = "operator without a thread"
TWICE = "device event written twice"
LOST_ALLOCATION = "allocator event without a time that can be"
RUNAWAY = "runaway duration, cut at the next event of its stream"

_TOLD_FRAC = 0.01


def repaired(found: Columns, graph_nodes: Callable[[], Times] = frozenset) -> Columns:
    """The rows with a believable time. What was dropped or mended is added to ``dropped`` and ``repaired``.

    ``graph_nodes`` is asked for the times of a graph's kernels where long ones overlap on a stream.
    """
    found = replace(found, dropped=dict(found.dropped), repaired=dict(found.repaired))
    found = _within(found)
    found = _without(found, found.dur_ns == UNKNOWN_NS, NO_DURATION)
    found = _without(found, (found.dur_ns == BEYOND_NS) | (found.dur_ns == RATHER_NS), TOO_LONG)
    found = _without(found, found.dur_ns < 0, NEGATIVE)
    found = _without(found, _lost(found), LOST)
    found = _without(found, _strays(found), STRAY)
    found = _without(found, _twice(found), TWICE)
    found = _cut_runaways(found, graph_nodes)
    found = _without(found, found.dur_ns > DAY_NS, TOO_LONG)
    return _with_timed_allocations(found)


def threaded(found: Columns) -> Columns:
    """Without operators of no thread: on CPU the thread tells computing beside a transfer from waiting for it."""
    is_nobodys = np.array([thread is None for _, thread in found.threads], dtype=bool)
    return _without(found, is_nobodys[found.thread] & found.is_of(("cpu_op", "operator", "")), THREADLESS)


def device_rows(found: Columns) -> Mask:
    """Kernels, copies and memory sets."""
    return found.is_of(KERNEL + COPY)


def _without(found: Columns, rows: Mask, reason: str) -> Columns:
    count = int(np.count_nonzero(rows))
    if not count:
        return found
    found.dropped[reason] = found.dropped.get(reason, 0) + count
    return found.kept(~rows)


def _within(found: Columns) -> Columns:
    """The rows that start at a time, and at one of which sums fit int64."""
    found = _without(found, found.start_ns == UNKNOWN_NS, NO_TIME)
    found = _without(found, found.start_ns == RATHER_NS, RATHER_NANOSECONDS)
    found = _without(found, (found.start_ns == BEYOND_NS) | (found.start_ns >= LATEST_NS), OUT_OF_RANGE)
    return _without(found, (found.start_ns == BEFORE_NS) | (found.start_ns <= -LATEST_NS), TOO_EARLY)


def _lost(found: Columns) -> Mask:
    """Device events at 0 that last 0: the profiler lost their times. Where a file begins before 0, 0 is a time."""
    is_zero: Mask = (found.start_ns == 0) & (found.dur_ns == 0)
    if not is_zero.any():
        return is_zero
    is_zero &= device_rows(found)
    begins_before = bool(((found.start_ns < 0) & (found.start_ns >= -DAY_NS)).any())
    return np.zeros_like(is_zero) if begins_before else is_zero


def _strays(found: Columns) -> Mask:
    if not is_wide(found.start_ns):
        return np.zeros(len(found.start_ns), dtype=bool)
    return strays(found.start_ns, device_rows(found))


def _twice(found: Columns) -> Mask:
    """Device events that repeat another in everything; two at once on one stream are one, unless 0 ns stands for less.

    Shape (n,), true from the second on.
    """
    again = np.zeros(len(found.start_ns), dtype=bool)
    rows = np.flatnonzero(device_rows(found) & (found.dur_ns > 0))
    rows = rows[np.argsort(found.start_ns[rows], kind="stable")]
    follows = found.start_ns[rows[1:]] == found.start_ns[rows[:-1]]
    rows = rows[np.append(follows, False) | np.insert(follows, 0, False)] if len(rows) else rows
    if not len(rows):
        return again
    order = np.lexsort([rows, *(getattr(found, name)[rows] for name in PER_ROW)])
    same = np.ones(len(rows) - 1, dtype=bool)
    for name in PER_ROW:
        column = getattr(found, name)[rows[order]]
        same &= column[1:] == column[:-1]
    again[rows[order[1:][same]]] = True
    return again


def _cut_runaways(found: Columns, graph_nodes: Callable[[], Times]) -> Columns:
    """Ends device events that outlast two whole later ones of their stream, and a millisecond, at the next one's start.

    A stream works in order: the end was recorded late. Shorter overlaps are real, from programmatic dependent launch,
    and so are those of a CUDA graph's kernels.
    """
    rows = np.flatnonzero(device_rows(found))
    if not (found.dur_ns[rows] > LONG_NS).any():
        return found
    known_ns = np.minimum(found.dur_ns, 2 * DAY_NS)
    dur_ns = _cut(found, rows, known_ns, np.zeros(len(known_ns), dtype=bool))
    cut = rows[dur_ns[rows] < known_ns[rows]]
    if len(cut) and (nodes := graph_nodes()):
        times = zip(found.start_ns[rows].tolist(), found.dur_ns[rows].tolist(), strict=True)
        is_node = np.zeros(len(known_ns), dtype=bool)
        is_node[rows] = [time in nodes for time in times]
        dur_ns = _cut(found, rows, known_ns, is_node)
        cut = rows[dur_ns[rows] < known_ns[rows]]
    if not len(cut):
        return found
    found.repaired[RUNAWAY] = len(cut)
    doubts = (*found.doubts, *_cut_doubt(found, rows, dur_ns, int((known_ns[cut] - dur_ns[cut]).sum()), len(cut)))
    return replace(found, dur_ns=dur_ns, doubts=doubts)


def _cut(found: Columns, rows: Ints, known_ns: Ints, is_node: Mask) -> Ints:
    """The durations of all rows, runaways among ``rows`` cut."""
    stream = _streams(found, rows)
    dur_ns = found.dur_ns.copy()
    for number in np.unique(stream[known_ns[rows] > LONG_NS]).tolist():
        mine = rows[stream == number]
        mine = mine[np.argsort(found.start_ns[mine], kind="stable")]
        dur_ns[mine] = _without_runaways(found.start_ns[mine], known_ns[mine], is_node[mine])
    return dur_ns


def _cut_doubt(found: Columns, rows: Ints, dur_ns: Ints, cut_ns: int, count: int) -> tuple[tuple[str, str], ...]:
    """Said where what was cut off is more than a hundredth of the span that is left."""
    span_ns = int((found.start_ns + dur_ns)[rows].max()) - int(found.start_ns[rows].min())
    if cut_ns <= _TOLD_FRAC * span_ns:
        return ()
    lasts = "1 device event lasts" if count == 1 else f"{count} device events last"
    why = (
        f"{lasts} beyond later ones of the same stream and ended for us where the next began: {duration(cut_ns)} cut "
        f"off, beside a span of {duration(span_ns)}; if they did run at once, more was hidden and less idle"
    )
    return (("hidden_ns", why),)


def _streams(found: Columns, rows: Ints) -> Ints:
    """A number for each row's stream: of its device, or of its thread where the file names no stream."""
    device, stream, thread = found.device[rows], found.stream[rows], found.thread[rows]
    thread = np.where(stream >= 0, -1, thread)
    numbers = np.zeros(len(rows), dtype=np.int64)
    count = 1
    for column in (device, stream, thread):
        least, width = int(column.min()), int(column.max()) - int(column.min()) + 1
        codes = column - least if count * width < 2**62 else np.unique(column, return_inverse=True)[1]
        width = width if count * width < 2**62 else int(codes.max()) + 1
        numbers, count = numbers * width + codes, count * width
    return numbers


def _without_runaways(start_ns: Ints, dur_ns: Ints, is_node: Mask) -> Ints:
    """Durations of one stream's events, in order of start; those of a graph stay as they are."""
    end_ns = start_ns + dur_ns
    least = np.minimum.accumulate(end_ns[::-1])[::-1]
    if not ((dur_ns[:-1] > LONG_NS) & ~is_node[:-1] & (least[1:] <= end_ns[:-1])).any():
        return dur_ns
    starts, durs, nodes = start_ns.tolist(), dur_ns.tolist(), is_node.tolist()
    first = second = following = 2**63  # the two earliest ends, and the earliest start, of what starts later
    at = len(starts)
    while at:
        since = at = at - 1
        while at and starts[at - 1] == starts[since]:
            at -= 1
        for row in range(at, since + 1):
            if durs[row] > LONG_NS and not nodes[row] and second <= starts[row] + durs[row]:
                durs[row] = following - starts[row]
        for row in range(at, since + 1):
            # An event of 0 ns lies inside another only if it starts before that one's end.
            end = starts[row] + max(durs[row], 1)
            first, second = (end, first) if end < first else (first, min(second, end))
        following = starts[at]
    return np.array(durs, dtype=np.int64)


def _with_timed_allocations(found: Columns) -> Columns:
    """Allocator events without a time, or more than a day away from every row, are counted and left out."""
    time_ns = found.memory_time_ns
    if not len(time_ns):
        return found
    known: Mask = (time_ns > -LATEST_NS) & (time_ns < LATEST_NS)
    if len(found.start_ns) and not is_torn(found.start_ns):
        known &= time_ns >= int(found.start_ns.min()) - DAY_NS
        known &= time_ns <= int((found.start_ns + found.dur_ns).max()) + DAY_NS
    if known.all():
        return found
    found.dropped[LOST_ALLOCATION] = int(np.count_nonzero(~known))
    return replace(found, **{name: getattr(found, name)[known] for name in PER_ALLOCATION})
