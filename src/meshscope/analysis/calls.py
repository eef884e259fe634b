"""The collectives of one window in the order in which they were called, ready to be matched with those of its peers.

A rank comes to a collective when its span begins: on a GPU when the kernel starts, on CPU when one of gloo's threads
takes the call from its queue. A rank whose queue is full comes late, though it called in time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from meshscope.analysis.device_steps import step_numbers
from meshscope.analysis.parts import per_window
from meshscope.spans import Kind, Window

Ints = npt.NDArray[np.int64]

SYNCHRONIZING = frozenset({"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier", "send_recv"})
"""Collectives that no rank can leave before all have come. A broadcast holds back whoever waits for its root only."""

_ONE_OF = re.compile(r"one of \d+ groups of (\d+) devices")
_SAME_SIZE = frozenset({"all_reduce", "all_gather", "reduce_scatter", "barrier"})


class Queue(NamedTuple):
    """What is carried out in one order on all of its ranks: the collectives of a process group.

    ``group`` is its name, "" where untold; ``size`` and ``ranks`` are what the trace declares, 0 and () where it does
    not. ``part`` is "" where the order of the whole group is known; else the instruction (XLA), or the kind of
    collective in a trace that does not say the group.
    """

    group: str
    size: int
    ranks: tuple[int, ...]
    part: str


@dataclass(frozen=True, eq=False)
class Calls:
    """k collectives of one queue as columns of shape (k,), in order.

    ``row`` numbers rows of the window's spans. ``label`` indexes ``labels``: what has to be equal on all ranks.
    ``size_bytes`` is −1 where it is unknown or may differ between ranks, ``sequence`` and ``step`` where untold.
    """

    row: Ints
    start_ns: Ints
    end_ns: Ints
    label: Ints
    size_bytes: Ints
    sequence: Ints
    step: Ints
    labels: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.row)


@per_window
def calls(window: Window) -> dict[Queue, Calls]:
    """Synchronizing collectives by queue."""
    spans = window.spans
    kinds = np.array([name in SYNCHRONIZING for name in (*spans.collectives, "")], dtype=bool)
    rows = np.flatnonzero((spans.kind == Kind.COLLECTIVE) & kinds[spans.collective])
    rows = rows[np.argsort(_called_ns(window, rows), kind="stable")]
    label, labels = _labels(window, rows)
    size_bytes = _sizes(window, rows)
    part, parts = _parts(window, rows)
    pairs, number = np.unique(np.stack((spans.group[rows], part), axis=1), axis=0, return_inverse=True)
    number = number.reshape(-1)
    order = np.argsort(number, kind="stable")
    bounds = np.searchsorted(number[order], np.arange(len(pairs) + 1))
    found = {}
    for at, (group, kind) in enumerate(pairs.tolist()):
        mine = order[bounds[at] : bounds[at + 1]]
        row = rows[mine]
        queue = _queue(window, spans.groups[group] if group >= 0 else "", parts[kind])
        found[queue] = Calls(
            row=row,
            start_ns=spans.start_ns[row],
            end_ns=spans.end_ns[row],
            label=label[mine],
            size_bytes=size_bytes[mine],
            sequence=spans.sequence[row],
            step=step_numbers(window, row),
            labels=labels,
        )
    return found


def is_gloo(window: Window) -> bool:
    """Spans of gloo's own threads, each carrying out a call that is recorded beside it."""
    return window.framework == "torch" and window.device_kind == "cpu"


def _called_ns(window: Window, rows: Ints) -> Ints:
    """Two gloo threads take calls from one queue, so the calls tell the order where they are all known."""
    spans = window.spans
    link = spans.link[rows]
    if is_gloo(window) and len(rows) and bool((link >= 0).all()):
        return spans.start_ns[link]
    return spans.start_ns[rows]


def _labels(window: Window, rows: Ints) -> tuple[Ints, tuple[str, ...]]:
    """The name of the span, with the element type on a GPU. Streams, threads and numbers differ between ranks."""
    spans = window.spans
    dtype = np.full(len(rows), -1, dtype=np.int32) if is_gloo(window) else spans.dtype[rows]
    pairs, number = np.unique(np.stack((spans.name[rows], dtype), axis=1), axis=0, return_inverse=True)
    names = tuple(
        spans.names[name] + (f" {spans.dtypes[kind]}" if kind >= 0 else "") if name >= 0 else ""
        for name, kind in pairs.tolist()
    )
    return number.reshape(-1).astype(np.int64), names


def _sizes(window: Window, rows: Ints) -> Ints:
    spans = window.spans
    is_same = np.array([name in _SAME_SIZE for name in (*spans.collectives, "")], dtype=bool)[spans.collective[rows]]
    if is_gloo(window):
        is_same &= spans.link[rows] >= 0  # without its call, a gloo span has the size of its input only
    return np.where(is_same, spans.size_bytes[rows], -1)


def _parts(window: Window, rows: Ints) -> tuple[Ints, tuple[str, ...]]:
    """Within a group whose name is known, one order; see :class:`Queue`."""
    spans = window.spans
    if window.framework == "jax":
        return spans.name[rows].astype(np.int64), (*spans.names, "")  # −1, unknown, finds the last
    is_known = (spans.group[rows] >= 0) | (_only_group(window) is not None)
    # The kernel of an all-to-all says no more than that it sends and receives; what tells it may not be in the window.
    kinds = tuple("all_to_all" if name == "send_recv" else name for name in spans.collectives)
    place = np.array([0, *(kinds.index(name) + 1 for name in kinds)], dtype=np.int64)
    return np.where(is_known, 0, place[spans.collective[rows] + 1]), ("", *kinds)


def _only_group(window: Window) -> tuple[int, tuple[int, ...]] | None:
    """Size and ranks of the one set of ranks that the trace declares groups of; None with several or none."""
    several = {(group.size, group.ranks) for group in window.process_groups if group.size > 1 and group.ranks}
    return next(iter(several)) if len(several) == 1 else None


def _queue(window: Window, group: str, part: str) -> Queue:
    if window.framework == "jax":
        return Queue(group, devices_of(group), (), part)
    declared = next((known for known in window.process_groups if known.name == group and group), None)
    if declared is not None:
        return Queue(group, declared.size, declared.ranks, part)
    only = _only_group(window)
    if not group and only is not None:
        return Queue(group, *only, part)
    return Queue(group, 0, (), part)


def is_one_of_several(group: str) -> bool:
    """Whether a group of XLA's is known by its size only, so that two ranks of that name need not meet."""
    return _ONE_OF.fullmatch(group) is not None


def devices_of(group: str) -> int:
    """How many devices are in a group of XLA's, by its name: it lists them, or says their number; 0 where neither."""
    listed = group.removeprefix("devices ")
    if listed != group:
        return listed.count(",") + 1
    counted = _ONE_OF.fullmatch(group)
    return int(counted[1]) if counted else 0
