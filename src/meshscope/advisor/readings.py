"""What a recording measured, in the terms of the cost model: compute by what bounds it, by phase, and collectives."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from meshscope.analysis import phase_names
from meshscope.analysis.bandwidth import bus_factor
from meshscope.analysis.breakdown import Breakdown, combine, mean
from meshscope.analysis.breakdown import measure as busy
from meshscope.analysis.breakdown import per_step as per_rank_step
from meshscope.analysis.collectives import CollectiveTotal, collectives
from meshscope.analysis.in_steps import begun_in_steps, rank_steps, working
from meshscope.analysis.memory import memory
from meshscope.analysis.operations import own_calls
from meshscope.analysis.phases import phase_of
from meshscope.analysis.places import places
from meshscope.analysis.standing import device_kind, shares_cores
from meshscope.analysis.steps import Measured, measured_steps, steps
from meshscope.kinds import Kind
from meshscope.run import Run
from meshscope.spans import Window
from meshscope.units import NS_PER_S

Ints = npt.NDArray[np.int64]

MATMUL, ATTENTION, MEMORY_BOUND = "matmul", "attention", "memory_bound"
CLASSES = (MATMUL, ATTENTION, MEMORY_BOUND)

_ATTENTION = re.compile(r"attention|flash|fmha|sdpa", re.IGNORECASE)
_MATMUL = re.compile(
    r"^aten::(mm|addmm|bmm|baddbmm|_scaled_mm|mkldnn_linear\w*)$|gemm|cutlass|xmma|nvjet|cublas|Cijk_|wgmma"
    r"|triton_\w*(mm|matmul)|^%?(dot|gemm|cublas)[\w.-]*|_dot_fusion|^%?dot_general|convolution",
    re.IGNORECASE,
)


def bound_by(name: str) -> str:
    """What bounds a kernel or an operator, by its name: products of matrices, attention, or moving bytes."""
    if _ATTENTION.search(name):
        return ATTENTION
    return MATMUL if _MATMUL.search(name) else MEMORY_BOUND


@dataclass(frozen=True)
class Transfer:
    """One collective of one size: ``times`` in a step of a rank, each ``transfer_s`` without waiting for late ranks.

    ``hidden_frac`` is the share of its time beside compute. ``size_bytes`` is that of the whole tensor.
    """

    kind: str
    size_bytes: int
    ranks: int
    times: float
    transfer_s: float
    hidden_frac: float

    @property
    def bus_bytes_per_s(self) -> float:
        """As nccl-tests defines it; NaN where it does not."""
        factor = bus_factor(self.kind, self.ranks)
        return math.nan if factor is None or self.transfer_s <= 0 else factor * self.size_bytes / self.transfer_s


@dataclass(frozen=True)
class Readings:
    """Seconds of the mean step of a rank. ``step_s`` is the median of ``steps`` steps that no profiler touched, between
    ``low_s`` and ``high_s`` in 90 of 100 steps; ``profiled_s`` a step that one did. The parts (``compute_s``,
    ``hidden_s``, ``exposed_s``, ``idle_s``) are of profiled steps and add up to their span: what is hidden is compute
    as well.

    ``by_class`` maps (phase, class) to the seconds of kernels or of operators by themselves, ``calls`` the phase to how
    many there are. ``peak_bytes`` and ``memory`` (category → bytes) are of the rank that has most; NaN and empty where
    nothing was measured.
    """

    step_s: float
    low_s: float
    high_s: float
    steps: int
    profiled_s: float
    span_s: float
    compute_s: float
    hidden_s: float
    exposed_s: float
    idle_s: float
    by_class: dict[tuple[str, str], float] = field(default_factory=dict)
    calls: dict[str, float] = field(default_factory=dict)
    transfers: tuple[Transfer, ...] = ()
    memory: dict[str, float] = field(default_factory=dict)
    peak_bytes: float = math.nan
    shares_cores: bool = False
    device_kind: str = ""

    @property
    def is_profiled(self) -> bool:
        """Whether there is any step to take apart."""
        return self.span_s > 0

    def seconds(self, what: str, *phases: str) -> float:
        """Of one class in some phases, in all of them without any."""
        return sum(s for (phase, kind), s in self.by_class.items() if kind == what and (not phases or phase in phases))


def readings(run: Run) -> Readings:
    """All NaN and empty of a run without steps."""
    told, each = steps(run), measured_steps(run)
    low_s, high_s = _between(each)
    split = _split(run)
    by_class, calls = _classes(working(run))
    categories, peak_bytes = _memory(run)
    return Readings(
        step_s=told.median_ns / NS_PER_S,
        low_s=low_s,
        high_s=high_s,
        steps=told.measured,
        profiled_s=told.profiled_median_ns / NS_PER_S,
        span_s=split.span_ns / NS_PER_S,
        compute_s=split.compute_ns / NS_PER_S,
        hidden_s=split.hidden_ns / NS_PER_S,
        exposed_s=split.exposed_ns / NS_PER_S,
        idle_s=split.idle_ns / NS_PER_S,
        by_class=by_class,
        calls=calls,
        transfers=_transfers(run),
        memory=categories,
        peak_bytes=peak_bytes,
        shares_cores=shares_cores(run),
        device_kind=device_kind(run),
    )


def _between(each: Measured) -> tuple[float, float]:
    if not len(each.duration_ns):
        return math.nan, math.nan
    low, high = np.percentile(each.duration_ns / NS_PER_S, (5, 95))
    return float(low), float(high)


def _split(run: Run) -> Breakdown:
    found = [per_rank_step(combine([busy(window)])) for window in working(run)]
    known = [one for one in found if one is not None]
    return mean(known) if known else Breakdown()


def _classes(windows: Iterable[Window]) -> tuple[dict[tuple[str, str], float], dict[str, float]]:
    """Seconds by (phase, class) and calls by phase, of the mean step of a rank."""
    windows = tuple(windows)
    pairs = rank_steps(windows)
    seconds: dict[tuple[str, str], float] = defaultdict(float)
    calls: dict[str, float] = defaultdict(float)
    for window in windows if pairs else ():
        rows, own_ns = _own(window)
        phase = _phases(window)[rows]
        keep = begun_in_steps(window, window.spans.start_ns[rows])
        kinds = [bound_by(name) for name in window.spans.names]
        for row, number, ns in zip(rows[keep].tolist(), phase[keep].tolist(), own_ns[keep].tolist(), strict=True):
            name = phase_names.PHASES[number]
            seconds[name, kinds[window.spans.name[row]]] += ns / NS_PER_S / pairs
            calls[name] += 1 / pairs
    return dict(seconds), dict(calls)


def _own(window: Window) -> tuple[Ints, Ints]:
    """The rows of compute and how long each takes itself: operators of a torch CPU rank nest, kernels do not."""
    spans = window.spans
    rows = np.flatnonzero(spans.kind == Kind.COMPUTE)
    if window.framework == "torch" and window.device_kind == "cpu":
        return own_calls(spans, rows)
    return rows, spans.end_ns[rows] - spans.start_ns[rows]


def _phases(window: Window) -> Ints:
    """The number of its phase by row of the window's spans."""
    found = np.full(len(window.spans), phase_names.PHASES.index(phase_names.UNKNOWN), dtype=np.int64)
    told = phase_of(window)
    if told is not None:
        found[places(window).row] = told
    return found


def _transfers(run: Run) -> tuple[Transfer, ...]:
    pairs = rank_steps(working(run))
    totals = collectives(run) if pairs else ()
    return tuple(_transfer(total, pairs) for total in totals if _is_told(total))


def _is_told(total: CollectiveTotal) -> bool:
    return bool(total.size_bytes and total.matched and total.transfer_ns and total.group_size > 1)


def _transfer(total: CollectiveTotal, pairs: int) -> Transfer:
    return Transfer(
        kind=total.name,
        size_bytes=total.size_bytes or 0,
        ranks=total.group_size,
        times=total.count / pairs,
        transfer_s=(total.transfer_ns or 0) / total.matched / NS_PER_S,
        hidden_frac=total.hidden_ns / total.busy_ns if total.busy_ns else 0.0,
    )


def _memory(run: Run) -> tuple[dict[str, float], float]:
    """Categories and peak of the rank with the highest peak (of the one that holds most where none is known)."""
    ranks = memory(run)
    if not ranks:
        return {}, math.nan
    most = max(ranks, key=lambda one: (one.peak_bytes or 0, sum(each.size_bytes for each in one.categories)))
    held = {each.name: float(each.size_bytes) for each in most.categories}
    return held, math.nan if most.peak_bytes is None else float(most.peak_bytes)
