"""Which kernels and operators take the time, over all ranks: how often, how long, and how evenly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from meshscope.analysis.idle import WORK
from meshscope.analysis.in_steps import begun_in_steps, rank_steps, working
from meshscope.analysis.nesting import nest
from meshscope.analysis.parts import per_window
from meshscope.intervals import union
from meshscope.kinds import Kind
from meshscope.run import Run
from meshscope.spans import SpanTable, Window
from meshscope.units import ratio

Ints = npt.NDArray[np.int64]
Key = tuple[str, Kind]


@dataclass(frozen=True)
class Operation:
    """One name over ``ranks``: ``frac`` is its share of the time of all device work, added up over spans and ranks.

    Times are those of the spans on a GPU or an XLA device. On a torch CPU rank operators nest, and a time is what an
    operator did itself, outside the operators in it. ``per_step_ns`` and ``per_step_count`` are of the calls that begin
    in a complete step, in the mean over all ranks and their steps; None where no step is complete. ``rule`` is what its
    first call was told by.
    """

    name: str
    kind: str
    count: int
    ranks: int
    total_ns: int
    mean_ns: float
    median_ns: float
    p95_ns: float
    max_ns: int
    frac: float
    rule: str = ""
    per_step_ns: float | None = None
    per_step_count: float | None = None


@dataclass(frozen=True, eq=False)
class Calls:
    """The calls of one name and kind in one window: how long each took, and which began in a complete step."""

    rank: int
    rule: str
    length_ns: Ints
    is_stepped: npt.NDArray[np.bool_]


Part = dict[Key, Calls]


@per_window
def measure(window: Window) -> Part:
    spans = window.spans
    is_nested = window.framework == "torch" and window.device_kind == "cpu"
    rows = np.flatnonzero(np.isin(spans.kind, WORK))
    if not len(rows):
        return {}
    length_ns = spans.end_ns - spans.start_ns
    if is_nested:
        rows, length_ns = own_calls(spans, rows)
    else:
        length_ns = length_ns[rows]
    names = (*spans.names, "")  # −1, no name, finds the last
    key = (spans.name[rows].astype(np.int64) % len(names)) * len(Kind) + spans.kind[rows]
    order = np.argsort(key, kind="stable")
    keys, first = np.unique(key[order], return_index=True)
    is_stepped = begun_in_steps(window, spans.start_ns[rows[order]])
    parts = zip(
        keys.tolist(), first, np.split(length_ns[order], first[1:]), np.split(is_stepped, first[1:]), strict=True
    )
    return {
        (names[code // len(Kind)], Kind(code % len(Kind))): Calls(
            window.rank, spans.rule_of(int(rows[order[at]])), lengths_ns, stepped
        )
        for code, at, lengths_ns, stepped in parts
    }


def own_calls(spans: SpanTable, rows: Ints) -> tuple[Ints, Ints]:
    """One row for each call, and what it did itself. An operator that was cut at the waits in it is one call."""
    own_ns = nest(spans.lane[rows], spans.start_ns[rows], spans.end_ns[rows]).own_ns()
    order, call = _by_call(spans, rows)
    is_first = np.diff(call, prepend=-1) > 0
    total_ns = np.zeros(int(is_first.sum()), dtype=np.int64)
    np.add.at(total_ns, call, own_ns[order])
    return rows[order][is_first], total_ns


def first_of_call(spans: SpanTable, rows: Ints) -> Ints:
    """Of each row the first one of its call, itself but where waits have cut it; shape of ``rows``."""
    order, call = _by_call(spans, rows)
    found = np.empty(len(rows), dtype=np.int64)
    found[order] = rows[order][np.flatnonzero(np.diff(call, prepend=-1))][call]
    return found


def _by_call(spans: SpanTable, rows: Ints) -> tuple[Ints, Ints]:
    """The places of some rows in order of lane, name and start, and in that order the number of each row's call."""
    order = np.lexsort((spans.start_ns[rows], spans.name[rows], spans.lane[rows]))
    return order, np.cumsum(~_continues(spans, rows[order])) - 1


def _continues(spans: SpanTable, rows: Ints) -> npt.NDArray[np.bool_]:
    """Whether each row goes on after a wait that cut the one before; rows are by lane, name and start."""
    found = np.zeros(len(rows), dtype=bool)
    before, after = rows[:-1], rows[1:]
    same = (spans.lane[before] == spans.lane[after]) & (spans.name[before] == spans.name[after])
    for lane in np.unique(spans.lane[spans.kind == Kind.WAIT]).tolist():
        mine = (spans.kind == Kind.WAIT) & (spans.lane == lane)
        waits = union(spans.start_ns[mine], spans.end_ns[mine])
        if not len(waits):
            continue
        at = np.searchsorted(waits.start_ns, spans.end_ns[before])
        wait = np.minimum(at, len(waits) - 1)
        is_cut = (waits.start_ns[wait] == spans.end_ns[before]) & (waits.end_ns[wait] == spans.start_ns[after])
        found[1:] |= same & is_cut & (spans.lane[before] == lane)
    return found


def operations(run: Run) -> tuple[Operation, ...]:
    """All of them, by total time, longest first."""
    parts: dict[Key, list[Calls]] = {}
    for window in run.windows:
        for key, calls in measure(window).items():
            parts.setdefault(key, []).append(calls)
    all_ns = sum(int(calls.length_ns.sum()) for some in parts.values() for calls in some)
    steps = rank_steps(working(run))
    found = [_operation(key, some, all_ns, steps) for key, some in parts.items()]
    return tuple(sorted(found, key=lambda one: (-one.total_ns, one.name, one.kind)))


def _operation(key: Key, some: Sequence[Calls], all_ns: int, steps: int) -> Operation:
    durations_ns = np.concatenate([calls.length_ns for calls in some])
    is_stepped = np.concatenate([calls.is_stepped for calls in some])
    total_ns = int(durations_ns.sum())
    name, kind = key
    return Operation(
        name=name,
        kind=kind.name.lower(),
        count=len(durations_ns),
        ranks=len({calls.rank for calls in some}),
        total_ns=total_ns,
        mean_ns=total_ns / len(durations_ns),
        median_ns=float(np.median(durations_ns)),
        p95_ns=float(np.percentile(durations_ns, 95)),
        max_ns=int(durations_ns.max()),
        frac=ratio(total_ns, all_ns),
        rule=some[0].rule,
        per_step_ns=int(durations_ns[is_stepped].sum()) / steps if steps else None,
        per_step_count=int(is_stepped.sum()) / steps if steps else None,
    )
