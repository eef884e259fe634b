"""Small buckets or collectives: many calls that each pay the latency of one.

What a call costs beside its bytes (α) and what a byte costs (1/β) are fitted to the run's own collectives of the same
kind and group: t = α + s/β over their sizes, which have to differ fourfold. Their time t is that on the wall, from when
their last rank had come: of calls that run side by side (on two streams, or two of gloo's threads) each counts for its
part of the moment, so that all of them together take the time in which any of them transfers, and no more. Waiting for
a late rank is no latency of a call.

With n calls a step, whose bytes would fit m of 25 MB (DDP's usual bucket), (n − m) α of the time on the wall would be
saved, as far as the calls are exposed: (n − m) α × E/U, where they transfer for U of a step, and for E of that beside
no compute. Since n α is at most U, no more than E can be saved, and nothing of calls that are all under compute. Forty
calls of 1 ms one after the other cost 39 ms, in pairs 19.5 ms, where their time does not grow with their size.

Calls whose result is needed at once (tensor parallelism, by its calls in torch and by the run's options in JAX) are
left out, and so is what one rank passes on to another and what ranks exchange in all-to-alls: a stage of a pipeline, or
a layer of experts, sends what it computed from what came by the one before. One waits for the other, and none can be
put together. XLA's CPU compiler combines all-reduces only: many small calls of another kind are no mistake there. Where
sizes are not told (XLA without its programs) only all-reduces are looked at: then their bytes are at most those of the
gradients, and α is what the quickest tenth of the calls take, at most their mean. Fires from eight calls a step on,
with a mean of less than a megabyte, where that is a thirtieth of the step. A clean step of the bundled DDP or pmap has
one to six, of more.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from meshscope.analysis.findings.rule import Finding, Rule, part
from meshscope.analysis.findings.whole import traced_step
from meshscope.analysis.in_steps import steps_of
from meshscope.analysis.needed_at_once import needed_at_once
from meshscope.analysis.parts import per_window
from meshscope.analysis.waiting import waiting
from meshscope.analysis.wall_time import Moved, moved
from meshscope.analysis.xla_checks import MANY, SMALL_BYTES, is_combined
from meshscope.run import Run
from meshscope.spans import Kind, Window
from meshscope.units import counted, duration, percent, ratio, size

Ints = npt.NDArray[np.int64]

LARGE_BYTES = 25 << 20
LEAST_FRAC = 1 / 30
LEAST_RANGE = 4
_PASSED_ON = frozenset({"send", "recv", "send_recv", "permute", "all_to_all"})
_QUICKEST_PERCENT = 10
_GRADIENT_BYTES = 4
"""Gradients are reduced in fp32 by the bundled workloads; in bf16 they would be smaller still."""

_FIX_DDP = "DistributedDataParallel(model, bucket_cap_mb=25)"
_FIX_FSDP = """# one all-gather for several layers instead of each small module:
for group in groups_of_blocks:
    torch.distributed.fsdp.fully_shard(group)"""
_FIX_FSDP1 = """# larger pieces of the model in one all-gather:
policy = functools.partial(
    size_based_auto_wrap_policy, min_num_params=10**8)
FullyShardedDataParallel(model, auto_wrap_policy=policy)"""
_FIX_ELSE = """# several small calls in one launch:
with torch.distributed._coalescing_manager(device=device): ..."""
_FIXES = (
    dict.fromkeys(("ddp", "zero1", "cp"), _FIX_DDP)
    | dict.fromkeys(("fsdp", "hsdp", "fsdp-tp"), _FIX_FSDP)
    | {"fsdp1": _FIX_FSDP1}
)
_FIX_JAX = """export XLA_FLAGS="\\
--xla_gpu_all_reduce_combine_threshold_bytes=134217728 \\
--xla_gpu_all_gather_combine_threshold_bytes=134217728 \\
--xla_gpu_reduce_scatter_combine_threshold_bytes=134217728\""""
_FIX_JAX_CPU = """# one array instead of many, inside the mapped step:
flat, restore = jax.flatten_util.ravel_pytree(grads)
grads = restore(jax.lax.pmean(flat, axis_name="data"))"""


@dataclass(frozen=True)
class Fit:
    """A call takes ``latency_ns + size_bytes × ns_per_byte`` of the time on the wall."""

    latency_ns: float
    ns_per_byte: float


@dataclass(frozen=True, eq=False)
class _Calls:
    """One kind of collective in one group, in all complete steps (in all windows where there is none).

    ``count`` is of all calls and ``size_bytes`` has the size of each, −1 where untold; ``moved`` has those whose
    waiting is known. ``periods`` are the steps of ranks.
    """

    name: str
    periods: int
    size_bytes: Ints
    moved: tuple[Moved, ...]

    @property
    def count(self) -> float:
        """A step."""
        return len(self.size_bytes) / self.periods

    def joined(self, column: str) -> npt.NDArray[np.float64]:
        """A column of :class:`Moved` over all windows."""
        return np.concatenate([getattr(one, column) for one in self.moved])


@dataclass(frozen=True)
class _Cost:
    """What the calls of a step move, and what each costs beside that."""

    moved_bytes: float
    latency_ns: float
    how: str


def small_collectives(run: Run) -> tuple[Finding, ...]:
    if shares_matrices(run):
        return ()
    found = ((some, _sized(some) or _unsized(some, run)) for some in _calls(run))
    return tuple(finding for some, cost in found if cost is not None for finding in _finding(some, cost, run))


def shares_matrices(run: Run) -> bool:
    """Whether devices of JAX split matrices among them (tensor parallelism), by the options of a workload."""
    degree = run.experiment.options.get("tensor")
    return run.experiment.framework == "jax" and isinstance(degree, int) and degree > 1


def _finding(found: _Calls, of: _Cost, run: Run) -> tuple[Finding, ...]:
    needed = max(math.ceil(of.moved_bytes / LARGE_BYTES), 1)
    wall_ns, exposed_ns = found.joined("wall_ns"), float(found.joined("exposed_ns").sum())
    exposed_frac = ratio(exposed_ns, float(wall_ns.sum()))
    fewer = len(wall_ns) / found.periods - needed
    cost = part(fewer * of.latency_ns * exposed_frac, traced_step(run))
    if of.moved_bytes >= found.count * SMALL_BYTES or not cost.cost_frac >= LEAST_FRAC:
        return ()
    name = found.name.replace("_", "-")
    return (
        Finding(
            code=FINDING.code,
            title=f"many small {name} calls",
            **vars(cost),
            evidence=(
                f"{found.count:.0f} {name} calls a {'step' if _has_steps(run) else 'window'} move "
                f"{size(of.moved_bytes)}, {size(of.moved_bytes / found.count)} each in the mean",
                of.how,
                f"{counted(needed, 'call')} could carry the same: {found.count - needed:.0f} fewer, "
                f"{percent(exposed_frac)} of whose time is exposed",
            ),
            advice="Put them together: the latency of a call is paid once for each, however few bytes it moves.",
            fix=_fix(run),
        ),
    )


def _calls(run: Run) -> Iterator[_Calls]:
    """By kind and group; those of which there are many small ones alone."""
    has_steps, periods, waits = _has_steps(run), _periods(run), waiting(run).windows
    found: dict[tuple[str, str], list[tuple[Window, Ints]]] = defaultdict(list)
    for window in run.windows:
        for key, rows in _rows(window).items() if window.steps or not has_steps else ():
            found[key].append((window, rows))
    for (name, _), some in found.items():
        if name in _PASSED_ON:
            continue
        size_bytes = np.concatenate([window.spans.size_bytes[rows] for window, rows in some])
        if len(size_bytes) < MANY * periods or size_bytes.mean() >= SMALL_BYTES or not is_combined(run, name):
            continue
        parts = tuple(moved(window, rows, waits.get(window)) for window, rows in some)
        if any(len(one.row) for one in parts):
            yield _Calls(name, periods, size_bytes, parts)


@per_window
def _rows(window: Window) -> dict[tuple[str, str], Ints]:
    """The collectives that begin in complete steps, by kind and group; all of them where the window has no step."""
    spans = window.spans
    is_mine = (spans.kind == Kind.COLLECTIVE) & (spans.collective >= 0)
    is_mine[needed_at_once(window)] = False
    if window.steps:
        inside = steps_of(window)
        begun = np.searchsorted(inside.start_ns, spans.start_ns, side="right")
        is_mine &= begun > np.searchsorted(inside.end_ns, spans.start_ns, side="right")
    rows = np.flatnonzero(is_mine)
    pairs, number = np.unique(np.stack((spans.collective[rows], spans.group[rows])), axis=1, return_inverse=True)
    return {
        (spans.collectives[kind], spans.groups[group] if group >= 0 else ""): rows[number.reshape(-1) == at]
        for at, (kind, group) in enumerate(pairs.T.tolist())
    }


def _sized(found: _Calls) -> _Cost | None:
    """By the sizes of the calls; None where one is not told, or no line fits them."""
    if (found.size_bytes <= 0).any():
        return None
    fit = fitted(found.joined("size_bytes"), found.joined("wall_ns"))
    if fit is None:
        return None
    speed = f" and {duration(fit.ns_per_byte * 1e6)} for a megabyte" if fit.ns_per_byte > 0 else ""
    return _Cost(
        moved_bytes=float(found.size_bytes.sum()) / found.periods,
        latency_ns=fit.latency_ns,
        how=f"fitted to them, a call takes {duration(fit.latency_ns)}{speed}",
    )


def _unsized(found: _Calls, run: Run) -> _Cost | None:
    """By the number of gradients' bytes, which all-reduces of unknown sizes do not exceed in a step."""
    gradient_bytes = _GRADIENT_BYTES * run.experiment.parameters
    if found.name != "all_reduce" or not gradient_bytes or (found.size_bytes > 0).any():
        return None
    wall_ns = found.joined("wall_ns")
    latency_ns = min(float(np.percentile(wall_ns, _QUICKEST_PERCENT)), float(wall_ns.mean()))
    return _Cost(
        moved_bytes=gradient_bytes,
        latency_ns=latency_ns,
        how=f"sizes are not told, gradients have {size(gradient_bytes)}; the quickest tenth of calls take at most "
        f"{duration(latency_ns)}",
    )


def _has_steps(run: Run) -> bool:
    return any(window.steps for window in run.windows)


def _periods(run: Run) -> int:
    """How many complete steps of ranks there are; windows where there is no step."""
    windows = [window for window in run.windows if window.device_kind != "none"]
    return sum(len(window.steps) for window in windows) or len(windows)


def fitted(size_bytes: npt.NDArray[np.float64], wall_ns: npt.NDArray[np.float64]) -> Fit | None:
    """Least squares over calls, shape (k,) each. None where sizes are alike, or where the time does not grow with the
    size as a latency and a bandwidth would have it."""
    if size_bytes.max() < LEAST_RANGE * size_bytes.min():
        return None
    apart = size_bytes - size_bytes.mean()
    slope = max(float((apart * (wall_ns - wall_ns.mean())).sum() / (apart**2).sum()), 0.0)
    latency_ns = float(wall_ns.mean() - slope * size_bytes.mean())
    return Fit(latency_ns, slope) if latency_ns > 0 else None


def _fix(run: Run) -> str:
    if run.experiment.framework == "jax":
        return _FIX_JAX_CPU if any(window.device_kind == "cpu" for window in run.windows) else _FIX_JAX
    return _FIXES.get(run.experiment.approach, _FIX_ELSE)


FINDING = Rule("small-collectives", small_collectives)
