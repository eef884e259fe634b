"""Small buckets or collectives: many calls that each pay the latency of one.

What a call costs beside its bytes (α) and what a byte costs (1/β) are fitted to the run's own collectives of the same
kind and group, from when their last rank had come: t = α + s/β over their sizes, which have to differ fourfold. With n
calls a step, whose bytes would fit m of 25 MB (DDP's usual bucket), (n − m) α would be saved, as far as it is exposed.
Fires from eight calls a step on, most of them under a megabyte, where that is a thirtieth of the step. On XLA's CPU
devices nothing combines collectives, so nothing is said there.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from meshscope.analysis.collectives import CollectiveTotal, collectives
from meshscope.analysis.findings.rule import Finding, Rule, part
from meshscope.analysis.findings.whole import traced_step
from meshscope.analysis.standing import device_kind
from meshscope.analysis.xla_checks import MANY, SMALL_BYTES
from meshscope.run import Run
from meshscope.units import counted, duration, ratio, size

LARGE_BYTES = 25 << 20
LEAST_FRAC = 1 / 30
LEAST_RANGE = 4

_FIX_DDP = "DistributedDataParallel(model, bucket_cap_mb=25)"
_FIX_FSDP = """# one all-gather for several layers: shard groups of blocks instead of every small module
for group in groups_of_blocks: torch.distributed.fsdp.fully_shard(group)"""
_FIX_ELSE = "with torch.distributed._coalescing_manager(device=device): ...   # one launch for several small calls"
_FIX_JAX = """XLA_FLAGS="--xla_gpu_all_reduce_combine_threshold_bytes=134217728 \
--xla_gpu_all_gather_combine_threshold_bytes=134217728 --xla_gpu_reduce_scatter_combine_threshold_bytes=134217728\""""


@dataclass(frozen=True)
class Fit:
    """A call takes ``latency_ns + size_bytes × ns_per_byte``."""

    latency_ns: float
    ns_per_byte: float


def small_collectives(run: Run) -> tuple[Finding, ...]:
    if run.experiment.framework == "jax" and device_kind(run) == "cpu":
        return ()
    by_kind: dict[tuple[str, str], list[CollectiveTotal]] = defaultdict(list)
    for one in collectives(run):
        if one.size_bytes is not None and one.size_bytes > 0:
            by_kind[one.name, one.group].append(one)
    return tuple(found for some in by_kind.values() for found in _found(some, run))


def _found(some: Sequence[CollectiveTotal], run: Run) -> tuple[Finding, ...]:
    periods = _periods(run)
    calls = sum(one.count for one in some) / periods if periods else 0.0
    small = sum(one.count for one in some if (one.size_bytes or 0) < SMALL_BYTES) / periods if periods else 0.0
    fit = fitted(some)
    if calls < MANY or small <= calls / 2 or fit is None:
        return ()
    moved_bytes = sum(one.count * (one.size_bytes or 0) for one in some) / periods
    needed = math.ceil(moved_bytes / LARGE_BYTES)
    exposed = ratio(sum(one.exposed_ns for one in some), sum(one.busy_ns for one in some))
    cost = part((calls - needed) * fit.latency_ns * exposed, traced_step(run))
    if not cost.cost_frac >= LEAST_FRAC:
        return ()
    name = some[0].name.replace("_", "-")
    speed = f" and {duration(fit.ns_per_byte * 1e6)} for a megabyte" if fit.ns_per_byte > 0 else ""
    return (
        Finding(
            code=FINDING.code,
            title=f"many small {name} calls",
            **vars(cost),
            evidence=(
                f"{calls:.0f} {name} calls a {'step' if _has_steps(run) else 'window'}, {small:.0f} of them under "
                f"{size(SMALL_BYTES)}, move {size(moved_bytes)}",
                f"fitted to them, a call takes {duration(fit.latency_ns)}{speed}",
                f"{counted(needed, 'call')} could carry the same: {calls - needed:.0f} fewer, "
                f"{exposed * 100:.0f} % of whose time is exposed",
            ),
            advice="Put them together: the latency of a call is paid once for each, however few bytes it moves.",
            fix=_fix(run),
        ),
    )


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
