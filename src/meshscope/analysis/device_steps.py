"""When a device is at each step. Where its host is ahead of it, that is not when the host was.

A host may mark the beginning of step k + 1 while its device still has two steps to go: between the host's marks then
lies other work than that of the step. On a GPU rank of torch the bounds of a step are those of the stream that computes
most, on which work runs in the order in which it was launched: its step k begins with the first work that the host
launched after the beginning of its own step k, and ends where step k + 1 begins. Where that stream has nothing left to
do and waits for its host, the waiting belongs to the step that the host is in: the step begins when the device is
through with what came before it (a late all-reduce on another stream, too), at the earliest at the host's mark. The
last step ends when all that was launched in it has ended, at the earliest at the host's mark; so a device that keeps up
with its host has its host's steps.

A step is a stretch of the device's time, and what runs on other streams (a late all-reduce, a prefetch) counts in the
step in whose time it runs, cut where the next begins: so no work counts twice and none is lost.

Where launches are missing, the annotations that the profiler repeats on the device's side tell where steps begin. They
come second because ROCm's cover a single piece of work (18 µs of a step of 19 ms). Without either, the host's marks are
all there is. XLA's own planes mark steps where they run, and CPU ranks have one clock for both: theirs stay as they
are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from meshscope.analysis.parts import per_window
from meshscope.kinds import is_any
from meshscope.spans import Kind, SpanTable, Window
from meshscope.units import ratio

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

LAUNCHES, ANNOTATIONS, MARKS = "launches", "annotations", "host marks"

MOST_UNLINKED_FRAC = 0.1
"""Where more of a stream's work than this has no launch in the trace, from the first that was launched in it on,
launches are missing and not just older than the trace."""

_WORK = (Kind.COMPUTE, Kind.COLLECTIVE, Kind.COPY)
_STEP = re.compile(r"^ProfilerStep#([0-9]{1,9})$")


@dataclass(frozen=True, eq=False)
class DeviceSteps:
    """The complete steps of one window: ``step_ns`` (k, 2) is when the device begins and ends each.

    ``by`` is what tells: LAUNCHES, ANNOTATIONS or MARKS (the host's, for want of either); "" where there are no two
    clocks to tell apart. ``ahead_ns`` is how far the host is ahead of the device at most, at the bounds of steps.
    """

    step_ns: Ints
    by: str = ""
    ahead_ns: int = 0


@per_window
def device_steps(window: Window) -> DeviceSteps:
    marks = window.step_ns
    if window.framework != "torch" or window.device_kind != "gpu" or not len(marks):
        return DeviceSteps(marks)
    stream = _stream(window)
    if stream is not None:
        found, by = _by_launches(stream, marks), LAUNCHES
    elif (annotated := _by_annotations(window)) is not None:
        found, by = annotated, ANNOTATIONS
    else:
        return DeviceSteps(marks, MARKS)
    return DeviceSteps(found, by, max(0, int((found - marks).max())))


def device_step_ns(window: Window) -> Ints:
    """Start and end of each complete step of a window where its work runs, (k, 2)."""
    return device_steps(window).step_ns


def step_numbers(window: Window, row: Ints) -> Ints:
    """The step that the device is at when some rows of device work begin, −1 for none; shape of ``row``."""
    found = device_steps(window)
    if not found.by or not len(found.step_ns):
        return window.spans.step[row].astype(np.int64)
    bounds, time_ns = found.step_ns, window.spans.start_ns[row]
    order = np.argsort(bounds[:, 0], kind="stable")
    at = np.searchsorted(bounds[order, 0], time_ns, side="right") - 1
    chosen = order[np.maximum(at, 0)]
    is_inside = (at >= 0) & (time_ns < bounds[chosen, 1])
    return np.where(is_inside, np.array(window.steps, dtype=np.int64)[chosen], -1)


@dataclass(frozen=True, eq=False)
class _Stream:
    """The work of one stream in order, (n,): ``done_ns`` is when all up to a piece have ended, and ``launched_ns`` when
    it was launched; a piece that shows no launch came with the one before it. ``every_ns`` and ``ended_ns`` are of the
    work of all streams in the order of its launches: when each was launched, and when all up to it had ended."""

    start_ns: Ints
    done_ns: Ints
    launched_ns: Ints
    every_ns: Ints
    ended_ns: Ints


def _stream(window: Window) -> _Stream | None:
    """The one that computes most; None where the trace does not tell when its work was launched."""
    spans = window.spans
    row = np.flatnonzero(is_any(spans.kind, _WORK))
    computing = row[spans.kind[row] == Kind.COMPUTE]
    busiest = computing if len(computing) else row
    if not len(busiest):
        return None
    lanes, number = np.unique(spans.lane[busiest], return_inverse=True)
    weight_ns = np.bincount(number.reshape(-1), weights=(spans.end_ns - spans.start_ns)[busiest])
    mine = row[spans.lane[row] == lanes[int(weight_ns.argmax())]]
    mine = mine[np.lexsort((spans.end_ns[mine], spans.start_ns[mine]))]
    is_linked = _is_linked(spans, mine)
    is_own = is_linked & (spans.start_ns[spans.link[mine]] >= window.start_ns)
    first = int((is_own if is_own.any() else is_linked).argmax())
    if not is_linked.any() or ratio(int((~is_linked[first:]).sum()), len(mine) - first) > MOST_UNLINKED_FRAC:
        return None
    every = row[np.lexsort((spans.end_ns[row], spans.start_ns[row], spans.lane[row]))]
    every_ns = _launched_ns(spans, every)
    order = np.argsort(every_ns, kind="stable")
    return _Stream(
        start_ns=spans.start_ns[mine],
        done_ns=np.maximum.accumulate(spans.end_ns[mine]),
        launched_ns=_launched_ns(spans, mine),
        every_ns=every_ns[order],
        ended_ns=np.maximum.accumulate(spans.end_ns[every[order]]),
    )


def _is_linked(spans: SpanTable, row: Ints) -> Flags:
    """Which show a launch; one that begins after its work is none."""
    link = spans.link[row]
    found: Flags = (link >= 0) & (spans.start_ns[link] <= spans.start_ns[row])
    return found


def _launched_ns(spans: SpanTable, row: Ints) -> Ints:
    """When each piece was launched, of rows in order of lane and start: without a launch of its own, with the piece
    before it on its stream. Of a stream that shows none at all, when each began."""
    lane, is_linked = spans.lane[row], _is_linked(spans, row)
    launched_ns = np.where(is_linked, spans.start_ns[spans.link[row]], np.iinfo(np.int64).min)
    starts = np.flatnonzero(np.append(True, lane[1:] != lane[:-1])).tolist()
    for low, high in pairwise([*starts, len(row)]):
        here = slice(low, high)
        launched_ns[here] = (
            np.maximum.accumulate(launched_ns[here]) if is_linked[here].any() else spans.start_ns[row[here]]
        )
    return launched_ns


def _by_launches(stream: _Stream, marks: Ints) -> Ints:
    order = np.argsort(marks.reshape(-1), kind="stable")
    moments_ns = marks.reshape(-1)[order]
    found = np.empty(marks.size, dtype=np.int64)
    found[order] = np.maximum.accumulate([_reached_ns(stream, mark_ns) for mark_ns in moments_ns.tolist()])
    return found.reshape(marks.shape)


def _reached_ns(stream: _Stream, mark_ns: int) -> int:
    """When the device comes to what its host launches from a moment on."""
    first = int(np.searchsorted(stream.launched_ns, mark_ns, side="left"))
    at = int(np.searchsorted(stream.every_ns, mark_ns, side="left"))
    ended_ns = max(mark_ns, int(stream.ended_ns[at - 1])) if at else mark_ns
    if first == len(stream.start_ns):
        return ended_ns
    start_ns = int(stream.start_ns[first])
    done_ns = int(stream.done_ns[first - 1]) if first else mark_ns
    is_queued = done_ns > mark_ns and stream.launched_ns[first] <= done_ns
    return start_ns if is_queued else min(ended_ns, start_ns)


def _by_annotations(window: Window) -> Ints | None:
    """From each step's annotation on the device to the next, whichever that is; None where a step has none."""
    spans = window.spans
    number = np.array([int(told[1]) if (told := _STEP.match(name)) else -1 for name in (*spans.names, "")])
    row = np.flatnonzero((number[spans.name] >= 0) & ~is_any(spans.kind, (Kind.STEP, Kind.HOST)))
    row = row[np.argsort(spans.start_ns[row], kind="stable")]
    steps, first = np.unique(number[spans.name[row]], return_index=True)
    if not np.isin(window.steps, steps).all():
        return None
    starts = spans.start_ns[row[first]]
    ordered = np.sort(starts)
    work = is_any(spans.kind, _WORK)
    last_ns = max(int(spans.end_ns[work].max(initial=0)), int(spans.end_ns[row].max()))
    ends = np.append(ordered[1:], last_ns)[np.searchsorted(ordered, starts)]
    return np.stack((starts, ends), axis=1)[np.searchsorted(steps, window.steps)]
