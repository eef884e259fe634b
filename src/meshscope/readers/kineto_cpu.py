"""Kinds of the rows of a torch rank on CPU, where operators compute and gloo's own threads communicate.

Compute is the union of operators on threads that run no gloo span, minus every collective call or wait nested in
them: a tensor-parallel step waits *inside* an ``aten::sum``, and counting that as compute would hide all of its
communication. ``autograd::`` and other wrappers are no operators: they block inside as well.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from meshscope import kinds
from meshscope.intervals import Intervals, union
from meshscope.kinds import Kind, is_any
from meshscope.readers.kineto_columns import Columns
from meshscope.readers.told import Told, by_name

Ints = npt.NDArray[np.int64]
_OPERATOR = ("cpu_op", "operator", "")
_ANNOTATION = ("user_annotation",)
_GLOO_THREAD = "pt_gloo_runloop"


@dataclass(frozen=True, eq=False)
class Pieces:
    """Rows of a table, some cut into several: piece i is of row ``row[i]`` and lasts [start_ns[i], end_ns[i])."""

    row: Ints
    start_ns: Ints
    end_ns: Ints


def has_gloo(columns: Columns) -> bool:
    """Whether the file holds spans of gloo's transfers."""
    named = [number for number, name in enumerate(columns.names) if name.startswith("gloo:")]
    return bool(np.isin(columns.name, named).any())


def told(columns: Columns) -> Told:
    """Kinds before waits are cut out of the operators around them (:func:`pieces` does that)."""
    named = by_name(columns.name, columns.names, columns.is_of(_OPERATOR + _ANNOTATION), kinds.OPERATORS)
    kind = named.kind
    kind[columns.is_of(_ANNOTATION) & (kind != Kind.COLLECTIVE)] = Kind.HOST
    kind[_on_gloo_threads(columns, kind) & (kind == Kind.COMPUTE)] = Kind.HOST
    for thread in np.unique(columns.thread[kind == Kind.COMPUTE]).tolist():
        _mark_nested_calls(columns, kind, columns.thread == thread)
    return replace(named, kind=kind)


def pieces(columns: Columns, kind: npt.NDArray[np.uint8]) -> Pieces:
    """Every row once, but operators with waits inside as what is left of them beside the waits."""
    start_ns, end_ns = columns.start_ns, columns.start_ns + columns.dur_ns
    whole = np.ones(len(kind), dtype=bool)
    parts = []
    for thread in np.unique(columns.thread[kind == Kind.WAIT]).tolist():
        here = columns.thread == thread
        waits = union(start_ns[here & (kind == Kind.WAIT)], end_ns[here & (kind == Kind.WAIT)])
        rows = np.flatnonzero(here & (kind == Kind.COMPUTE))
        cut = _cut(rows, start_ns[rows], end_ns[rows], waits)
        whole[rows[_touches(start_ns[rows], end_ns[rows], waits)]] = False
        parts.append(cut)
    rest = np.flatnonzero(whole)
    return Pieces(
        np.concatenate([rest, *(part.row for part in parts)]),
        np.concatenate([start_ns[rest], *(part.start_ns for part in parts)]),
        np.concatenate([end_ns[rest], *(part.end_ns for part in parts)]),
    )


def _on_gloo_threads(columns: Columns, kind: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    """Rows of threads that run gloo spans, or that torch named as gloo's (whose span may not be in the window).

    Transfers between two ranks are recorded on the thread that asks for them: a thread that shows more than spans of
    gloo and operators (calls, annotations, autograd's wrappers) is a caller's, and its operators compute.
    """
    running = set(np.unique(columns.thread[kind == Kind.COLLECTIVE]).tolist())
    is_callers = is_any(kind, (Kind.LAUNCH, Kind.WAIT)) | ((kind == Kind.HOST) & columns.is_of(_OPERATOR + _ANNOTATION))
    running -= set(np.unique(columns.thread[is_callers]).tolist())
    for number, thread in enumerate(columns.threads):
        if any(_GLOO_THREAD in name for name in columns.thread_names.get(thread, ())):
            running.add(number)
    return np.isin(columns.thread, np.array(sorted(running), dtype=np.int32))


def _mark_nested_calls(columns: Columns, kind: npt.NDArray[np.uint8], here: npt.NDArray[np.bool_]) -> None:
    """Collective calls nested in an operator of their thread become WAIT: the operator computes nothing meanwhile."""
    calls = np.flatnonzero(here & (kind == Kind.LAUNCH))
    computing = here & (kind == Kind.COMPUTE)
    busy = union(columns.start_ns[computing], (columns.start_ns + columns.dur_ns)[computing])
    if not len(calls) or not len(busy):
        return
    at = np.searchsorted(busy.start_ns, columns.start_ns[calls], side="right") - 1
    is_inside = (at >= 0) & ((columns.start_ns + columns.dur_ns)[calls] <= busy.end_ns[np.maximum(at, 0)])
    # An operator inside the call (a copy of its input, say) covers part of it at most, never the whole.
    kind[calls[is_inside]] = Kind.WAIT


def _touches(start_ns: Ints, end_ns: Ints, waits: Intervals) -> npt.NDArray[np.bool_]:
    low = np.searchsorted(waits.end_ns, start_ns, side="right")
    high = np.searchsorted(waits.start_ns, end_ns, side="left")
    return high > low


def _cut(rows: Ints, start_ns: Ints, end_ns: Ints, waits: Intervals) -> Pieces:
    """What is left of the rows that touch a wait: one piece before each wait and one after the last."""
    low = np.searchsorted(waits.end_ns, start_ns, side="right")
    high = np.searchsorted(waits.start_ns, end_ns, side="left")
    touched = np.flatnonzero(high > low)
    count = (high - low)[touched] + 1
    owner = np.repeat(touched, count)
    place = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    wait = low[owner] + place
    is_first, is_last = place == 0, place == np.repeat(count, count) - 1
    bound = len(waits) - 1
    starts = np.where(is_first, start_ns[owner], waits.end_ns[np.clip(wait - 1, 0, bound)])
    ends = np.where(is_last, end_ns[owner], waits.start_ns[np.clip(wait, 0, bound)])
    keep = ends > starts
    return Pieces(rows[owner[keep]], starts[keep], ends[keep])
