"""The backward passes of a DDP rank, with the all-reduces (buckets) that each asked for."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from meshscope.analysis.host_activity import host_named
from meshscope.analysis.parts import per_window
from meshscope.analysis.phase_names import BACKWARD, PHASES
from meshscope.analysis.phases import phase_of
from meshscope.analysis.places import Places, around, places
from meshscope.intervals import Intervals, difference, union, window
from meshscope.spans import Kind, SpanTable, Window

Ints = npt.NDArray[np.int64]

_FORWARD = re.compile(r"^DistributedDataParallel\.forward$")
_ENGINE = re.compile(r"^autograd::engine::evaluate_function:")
_OPTIMIZER = re.compile(r"^Optimizer\.step#")
# The map of used parameters is all-reduced as integers: it is no bucket.
_NO_GRADIENT = re.compile(r"^(int|long|short|char|byte|bool|uint)", re.IGNORECASE)
NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class Pass:
    """One backward pass of one rank. Columns (b,) are of its buckets in the order in which they became ready.

    ``start_ns`` is when autograd began on the host. All else is by the device's clock, which a host may be far ahead
    of: ``begun_ns`` is when the first kernel that autograd launched began (on CPU, where autograd did), ``computed_ns``
    when the last ended. ``ready_ns`` is when each bucket's all-reduce could begin: it was asked for, and on a GPU the
    computation launched before it had ended, or it began. ``exposed_ns`` is the time of each beside which nothing was
    computed, ``after_ns`` the part of it after ``computed_ns``; ``exposed`` and ``tail`` are the unions of these.
    ``optimizer`` numbers the optimizer's step that comes next, and ``step`` is the profiled one in which autograd
    began, −1 outside.
    """

    rank: int
    optimizer: int
    step: int
    start_ns: int
    begun_ns: int
    computed_ns: int
    row: Ints
    size_bytes: Ints
    ready_ns: Ints
    begin_ns: Ints
    end_ns: Ints
    exposed_ns: Ints
    after_ns: Ints
    exposed: Intervals
    tail: Intervals

    @property
    def tail_ns(self) -> int:
        return self.tail.total_ns

    @property
    def signature(self) -> tuple[int, ...]:
        return tuple(self.size_bytes.tolist())


def is_ddp(window: Window) -> bool:
    return bool(host_named(window.spans, _FORWARD.search).any())


@per_window
def marks_optimizer(window: Window) -> bool:
    """Whether the trace shows steps of an optimizer: those of torch mark themselves, others may not."""
    return bool(host_named(window.spans, _OPTIMIZER.search).any())


@per_window
def passes(window: Window) -> tuple[Pass, ...]:
    """In order; empty where the trace shows no DDP, or does not mark autograd."""
    spans = window.spans
    forward_ns = np.sort(spans.start_ns[host_named(spans, _FORWARD.search)])
    engine = host_named(spans, _ENGINE.search)
    phase = phase_of(window)
    if phase is None or not len(forward_ns) or not engine.any():
        return ()
    here = places(window)
    in_engine = around(spans, engine, here) >= 0
    is_bucket = (phase == PHASES.index(BACKWARD)) & _reduces(spans, here.row)
    of_place, of_engine = (_number(forward_ns, time_ns) for time_ns in (here.time_ns, spans.start_ns[engine]))
    compute = spans.busy(Kind.COMPUTE)
    optimizer_ns = np.sort(spans.start_ns[host_named(spans, _OPTIMIZER.search)])
    found = []
    for number in np.unique(of_engine[of_engine >= 0]).tolist():
        computed = here.row[in_engine & (of_place == number) & (spans.kind[here.row] == Kind.COMPUTE)]
        if not len(computed):
            continue
        buckets = np.flatnonzero(is_bucket & (of_place == number))
        buckets = buckets[np.argsort(here.time_ns[buckets], kind="stable")]
        start_ns = int(spans.start_ns[engine][of_engine == number].min())
        found.append(
            _pass(
                window,
                here.row[buckets],
                _ready(window, here, buckets),
                start_ns=start_ns,
                begun_ns=int(spans.start_ns[computed].min()) if window.device_kind == "gpu" else start_ns,
                computed_ns=int(spans.end_ns[computed].max()),
                compute=compute,
                optimizer=int(np.searchsorted(optimizer_ns, start_ns)),
            )
        )
    return tuple(found)


def _ready(window: Window, here: Places, bucket: Ints) -> Ints:
    """When the device could begin some all-reduces, which is when it began them at the latest, (b,)."""
    asked_ns = here.time_ns[bucket]
    if window.device_kind != "gpu":
        return asked_ns
    spans = window.spans
    is_compute = here.is_known & (spans.kind[here.row] == Kind.COMPUTE)
    order = np.argsort(here.time_ns[is_compute], kind="stable")
    launched_ns, row = here.time_ns[is_compute][order], here.row[is_compute][order]
    ended_ns = np.maximum.accumulate(spans.end_ns[row])
    at = np.searchsorted(launched_ns, asked_ns, side="right") - 1
    ready_ns = np.where(at >= 0, np.maximum(asked_ns, ended_ns[np.maximum(at, 0)]), asked_ns)
    return np.minimum(ready_ns, spans.start_ns[here.row[bucket]])


def _number(starts_ns: Ints, time_ns: Ints) -> Ints:
    """Which forward pass came last, −1 before the first."""
    return np.searchsorted(starts_ns, time_ns, side="right") - 1


def _reduces(spans: SpanTable, row: Ints) -> npt.NDArray[np.bool_]:
    is_reduce = np.array([name == "all_reduce" for name in (*spans.collectives, "")], dtype=bool)
    is_whole = np.array([bool(_NO_GRADIENT.search(name)) for name in (*spans.dtypes, "")], dtype=bool)
    rows: npt.NDArray[np.bool_] = (spans.kind[row] == Kind.COLLECTIVE) & is_reduce[spans.collective[row]]
    rows &= ~is_whole[spans.dtype[row]]
    return rows


def _pass(
    window_: Window,
    row: Ints,
    ready_ns: Ints,
    *,
    start_ns: int,
    begun_ns: int,
    computed_ns: int,
    compute: Intervals,
    optimizer: int,
) -> Pass:
    spans = window_.spans
    begin_ns, end_ns = spans.start_ns[row], spans.end_ns[row]
    alone = [difference(union(begin_ns[at : at + 1], end_ns[at : at + 1]), compute) for at in range(len(row))]
    exposed = difference(union(begin_ns, end_ns), compute)
    inside = np.flatnonzero((window_.step_ns[:, 0] <= start_ns) & (start_ns < window_.step_ns[:, 1]))
    return Pass(
        rank=window_.rank,
        optimizer=optimizer,
        step=window_.steps[int(inside[0])] if len(inside) else -1,
        start_ns=start_ns,
        begun_ns=begun_ns,
        computed_ns=computed_ns,
        row=row,
        size_bytes=spans.size_bytes[row],
        ready_ns=ready_ns,
        begin_ns=begin_ns,
        end_ns=end_ns,
        exposed_ns=np.array([one.total_ns for one in alone], dtype=np.int64),
        after_ns=np.array([window(one, computed_ns, NEVER).total_ns for one in alone], dtype=np.int64),
        exposed=exposed,
        tail=window(exposed, computed_ns, NEVER),
    )
