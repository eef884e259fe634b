"""Small buckets or collectives: many calls that each pay the latency of one.

What a call costs beside its bytes (α) and what a byte costs (1/β) are fitted to the run's own collectives of the same
kind and group, from when their last rank had come: t = α + s/β over their sizes, which have to differ fourfold. With n
calls a step, whose bytes would fit m of 25 MB (DDP's usual bucket), (n − m) α would be saved, as far as it is exposed;
calls that run side by side (on two of gloo's threads) share their time. XLA's CPU compiler combines all-reduces only:
many small calls of another kind are no mistake there. Where sizes are not told (XLA without its programs) only
all-reduces are looked at: then their bytes are at most those of the gradients, and α is what the quickest tenth of the
calls take. Fires from eight calls a step on, with a mean of less than a megabyte, where that is a thirtieth of the
step. A clean step of the bundled DDP or pmap has one to six, of more.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from meshscope.analysis.collectives import CollectiveTotal, collectives
from meshscope.analysis.findings.rule import Finding, Rule, part
from meshscope.analysis.findings.whole import traced_step
from meshscope.analysis.waiting import waiting
from meshscope.analysis.xla_checks import MANY, SMALL_BYTES, is_combined
from meshscope.intervals import union
from meshscope.run import Run
from meshscope.spans import Kind
from meshscope.units import counted, duration, percent, ratio, size

LARGE_BYTES = 25 << 20
LEAST_FRAC = 1 / 30
LEAST_RANGE = 4
_GRADIENT_BYTES = 4
"""Gradients are reduced in fp32 by the bundled workloads; in bf16 they would be smaller still."""

_FIX_DDP = "DistributedDataParallel(model, bucket_cap_mb=25)"
_FIX_FSDP = """# one all-gather for several layers instead of each small module:
for group in groups_of_blocks:
    torch.distributed.fsdp.fully_shard(group)"""
_FIX_ELSE = """# several small calls in one launch:
with torch.distributed._coalescing_manager(device=device): ..."""
_FIX_JAX = """export XLA_FLAGS="\\
--xla_gpu_all_reduce_combine_threshold_bytes=134217728 \\
--xla_gpu_all_gather_combine_threshold_bytes=134217728 \\
--xla_gpu_reduce_scatter_combine_threshold_bytes=134217728\""""


@dataclass(frozen=True)
class Fit:
    """A call takes ``latency_ns + size_bytes × ns_per_byte``."""

    latency_ns: float
    ns_per_byte: float


@dataclass(frozen=True)
class _Calls:
    """One kind of collective in one group: calls a step, their bytes, and what one costs beside them."""

    name: str
    calls: float
    moved_bytes: float
    exposed_frac: float
    latency_ns: float
    how: str


def small_collectives(run: Run) -> tuple[Finding, ...]:
    periods = _periods(run)
    by_kind: dict[tuple[str, str], list[CollectiveTotal]] = defaultdict(list)
    for one in collectives(run) if periods else ():
        if is_combined(run, one.name):
            by_kind[one.name, one.group].append(one)
    found = (_sized(some, periods) or _unsized(some, periods, run) for some in by_kind.values())
    return tuple(finding for one in found if one is not None for finding in _finding(one, run))


def _finding(found: _Calls, run: Run) -> tuple[Finding, ...]:
    needed = max(math.ceil(found.moved_bytes / LARGE_BYTES), 1)
    each_ns = found.latency_ns * found.exposed_frac * _alone_frac(found.name, run)
    cost = part((found.calls - needed) * each_ns, traced_step(run))
    if found.calls < MANY or found.moved_bytes >= found.calls * SMALL_BYTES or not cost.cost_frac >= LEAST_FRAC:
        return ()
    name = found.name.replace("_", "-")
    return (
        Finding(
            code=FINDING.code,
            title=f"many small {name} calls",
            **vars(cost),
            evidence=(
                f"{found.calls:.0f} {name} calls a {'step' if _has_steps(run) else 'window'} move "
                f"{size(found.moved_bytes)}, {size(found.moved_bytes / found.calls)} each in the mean",
                found.how,
                f"{counted(needed, 'call')} could carry the same: {found.calls - needed:.0f} fewer, "
                f"{percent(found.exposed_frac)} of whose time is exposed",
            ),
            advice="Put them together: the latency of a call is paid once for each, however few bytes it moves.",
            fix=_fix(run),
        ),
    )


def _sized(some: Sequence[CollectiveTotal], periods: int) -> _Calls | None:
    """By the sizes of the calls; None where one is not told, or no line fits them."""
    if any(not one.size_bytes for one in some):
        return None
    fit = fitted(some)
    if fit is None:
        return None
    speed = f" and {duration(fit.ns_per_byte * 1e6)} for a megabyte" if fit.ns_per_byte > 0 else ""
    return _Calls(
        name=some[0].name,
        calls=sum(one.count for one in some) / periods,
        moved_bytes=sum(one.count * (one.size_bytes or 0) for one in some) / periods,
        exposed_frac=_exposed(some),
        latency_ns=fit.latency_ns,
        how=f"fitted to them, a call takes {duration(fit.latency_ns)}{speed}",
    )


def _unsized(some: Sequence[CollectiveTotal], periods: int, run: Run) -> _Calls | None:
    """By the number of gradients' bytes, which all-reduces of unknown sizes do not exceed in a step."""
    gradient_bytes = _GRADIENT_BYTES * run.experiment.parameters
    if some[0].name != "all_reduce" or not gradient_bytes or any(one.size_bytes for one in some):
        return None
    calls = sum(one.count for one in some) / periods
    latency_ns = _quickest_ns(some[0].name, run)
    if latency_ns is None:
        return None
    return _Calls(
        name=some[0].name,
        calls=calls,
        moved_bytes=gradient_bytes,
        exposed_frac=_exposed(some),
        latency_ns=latency_ns,
        how=f"sizes are not told, gradients have {size(gradient_bytes)}; the quickest tenth of calls take at most "
        f"{duration(latency_ns)}",
    )


def _quickest_ns(name: str, run: Run) -> float | None:
    """What the quickest tenth of a collective's calls take once the last rank has come; None where none is matched."""
    taken = []
    for window, waits in waiting(run).windows.items():
        is_named = np.array([other == name for other in (*window.spans.collectives, "")], dtype=bool)
        mine = is_named[window.spans.collective[waits.row]]
        taken.append((waits.end_ns - waits.start_ns - waits.wait_ns)[mine])
    joined = np.concatenate(taken) if taken else np.empty(0)
    return float(np.percentile(joined, 10)) if len(joined) else None


def _alone_frac(name: str, run: Run) -> float:
    """The time in which a collective runs as a share of that of its calls added up: 1 where none run side by side."""
    covered_ns = total_ns = 0
    for window in run.windows:
        spans = window.spans
        is_named = np.array([other == name for other in (*spans.collectives, "")], dtype=bool)
        rows = (spans.kind == Kind.COLLECTIVE) & is_named[spans.collective]
        covered_ns += union(spans.start_ns[rows], spans.end_ns[rows]).total_ns
        total_ns += int((spans.end_ns[rows] - spans.start_ns[rows]).sum())
    return ratio(covered_ns, total_ns)


def _exposed(some: Sequence[CollectiveTotal]) -> float:
    return ratio(sum(one.exposed_ns for one in some), sum(one.busy_ns for one in some))


def _has_steps(run: Run) -> bool:
    return any(window.steps for window in run.windows)


def _periods(run: Run) -> int:
    """How many steps of a rank the totals are over, incomplete ones left out; windows where there is no step.

    Totals are over whole windows, so their time is counted in steps: what lies beside complete steps counts as part of
    one.
    """
    windows = [window for window in run.windows if window.device_kind != "none"]
    return sum(len(window.steps) for window in windows) or len(windows)


def fitted(some: Sequence[CollectiveTotal]) -> Fit | None:
    """Least squares over the mean transfer of each size, weighted by calls. None where sizes are alike or unmatched, or
    where the time does not grow with the size as a latency and a bandwidth would have it."""
    points = [(one.size_bytes or 0, (one.transfer_ns or 0) / one.matched, one.matched) for one in some if one.matched]
    sizes = [size_bytes for size_bytes, _, _ in points]
    if len(points) < 2 or max(sizes) < LEAST_RANGE * min(sizes):
        return None
    weight = sum(count for _, _, count in points)
    mean_bytes = sum(size_bytes * count for size_bytes, _, count in points) / weight
    mean_ns = sum(ns * count for _, ns, count in points) / weight
    spread = sum(count * (size_bytes - mean_bytes) ** 2 for size_bytes, _, count in points)
    slope = sum(count * (s - mean_bytes) * (ns - mean_ns) for s, ns, count in points) / spread
    slope = max(slope, 0.0)
    latency_ns = mean_ns - slope * mean_bytes
    return Fit(latency_ns, slope) if latency_ns > 0 else None


def _fix(run: Run) -> str:
    if run.experiment.framework == "jax":
        return _FIX_JAX
    return {"ddp": _FIX_DDP, "fsdp": _FIX_FSDP}.get(run.experiment.strategy, _FIX_ELSE)


FINDING = Rule("small-collectives", small_collectives)
