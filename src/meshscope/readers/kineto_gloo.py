"""Which call a gloo span carries out: gloo works its queue in order, so calls are matched first in, first out.

The span alone does not say: a reduce-scatter shows as ``gloo:all_reduce``, and a span has the shape of its input only.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from meshscope import kinds
from meshscope.kinds import Kind
from meshscope.readers.kineto_columns import Columns
from meshscope.readers.sizes import itemsize

Ints = npt.NDArray[np.int64]

_SHOWN_AS = {"reduce_scatter": ("all_reduce", "reduce_scatter"), "all_gather": ("all_gather", "all_gather_base")}


@dataclass(frozen=True, eq=False)
class Calls:
    """For every row: ``call`` is the row of the call that a gloo span carries out (−1 none), ``size_bytes`` of either.

    ``collective`` lists, for each row of ``spans``, the collective that was called.
    """

    spans: Ints
    collective: list[str]
    call: Ints
    size_bytes: Ints
    unmatched: int


def calls(columns: Columns, kind: npt.NDArray[np.uint8]) -> Calls:
    """Matches gloo spans to ``c10d::`` calls by order, collective and number of elements."""
    is_call = [name.startswith("c10d::") for name in columns.names]
    enqueued = _by_start(columns, np.flatnonzero(np.array(is_call, dtype=bool)[columns.name]))
    spans = _by_start(columns, np.flatnonzero(kind == Kind.COLLECTIVE))
    call = np.full(len(kind), -1, dtype=np.int64)
    size_bytes = columns.size_bytes.copy()
    waiting = _queues(columns, enqueued)
    taken: set[int] = set()
    collective = []
    for span in spans.tolist():
        shown = kinds.collective(columns.names[columns.name[span]])
        found = _taken(columns, waiting[shown], span, taken)
        collective.append(kinds.collective(columns.names[columns.name[found]]) if found >= 0 else shown)
        if found >= 0:
            call[span] = found
            size_bytes[span] = _size(columns, span, found)
    return Calls(spans, collective, call, size_bytes, collective_unmatched(call, spans))


def collective_unmatched(call: Ints, spans: Ints) -> int:
    return int((call[spans] < 0).sum())


def _by_start(columns: Columns, rows: Ints) -> Ints:
    return rows[np.argsort(columns.start_ns[rows], kind="stable")]


def _queues(columns: Columns, enqueued: Ints) -> defaultdict[str, list[int]]:
    """Calls in their order, by each collective that they may show as."""
    queues: defaultdict[str, list[int]] = defaultdict(list)
    for row in enqueued.tolist():
        called = kinds.collective(columns.names[columns.name[row]])
        for shown in _SHOWN_AS.get(called, (called,)):
            queues[shown].append(row)
    return queues


def _taken(columns: Columns, queue: list[int], span: int, taken: set[int]) -> int:
    """The first call of a queue that a span may carry out, which leaves it; −1 when there is none."""
    start_ns, moved = columns.start_ns[span], columns.elements[span]
    for place, call in enumerate(queue):
        if columns.start_ns[call] > start_ns:
            break
        asked = columns.elements[call]
        if call not in taken and (asked < 0 or moved < 0 or moved <= asked):
            taken.add(call)
            del queue[place]
            return call
    return -1


def _size(columns: Columns, span: int, call: int) -> int:
    """The larger of the span's own bytes and the call's, whose list of tensors may name no type."""
    dtype = columns.dtypes[columns.dtype[span]] if columns.dtype[span] >= 0 else ""
    asked = int(columns.elements[call]) * itemsize(dtype) if columns.elements[call] > 0 else -1
    return max(int(columns.size_bytes[span]), int(columns.size_bytes[call]), asked if 0 < asked < 2**63 else -1)
