"""Synchronous collectives: XLA runs them in place of computation, not beside it.

Every collective of a GPU or TPU program could be a start and a done with work between. XLA leaves it synchronous where
its scheduler found nothing to put there, or was not asked to look. Fires where synchronous collectives, told by the
compiled program, by names or by streams, are exposed for a tenth of the traced step, there are at least four of them,
and computing takes a tenth as well: with less there is nothing to win, or nothing to hide behind. Waiting for a late
rank, where it is known, is left out: to begin earlier does not win it back. Not in a pipeline, whose stages wait for
what the one before them still computes.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt

from meshscope.analysis.exposure import waited
from meshscope.analysis.findings.rule import Finding, Rule, per_step
from meshscope.analysis.findings.whole import computing_frac
from meshscope.analysis.pipeline import is_pipeline
from meshscope.analysis.waiting import waiting
from meshscope.analysis.xla_modes import ASYNC, SYNC, modes
from meshscope.intervals import EMPTY, Intervals, union
from meshscope.run import Run
from meshscope.spans import Kind, Window
from meshscope.units import counted, duration, percent

Ints = npt.NDArray[np.int64]

LEAST_FRAC = 0.1
FEWEST_CALLS = 4

_FIX_GPU = """XLA_FLAGS="--xla_gpu_enable_latency_hiding_scheduler=true" python …
# it schedules by estimates; by times that it has measured itself:
JAX_ENABLE_PGLE=true JAX_PGLE_PROFILING_RUNS=3 python …"""
_FIX_TPU = """LIBTPU_INIT_ARGS="--xla_tpu_enable_async_collective_fusion=true" \\
python …"""


def synchronous_collectives(run: Run) -> tuple[Finding, ...]:
    if is_pipeline(run):
        return ()
    found = {window: rows for window in run.windows if len(rows := modes(window).row[modes(window).mode == SYNC])}
    if sum(map(len, found.values())) < FEWEST_CALLS or not computing_frac(run) >= LEAST_FRAC:
        return ()
    waits = waiting(run).windows
    lost = {window: _exposed(window, rows) - waited(window, waits.get(window)) for window, rows in found.items()}
    # A device whose collectives are all asynchronous loses nothing, and counts in the mean.
    cost = per_step({window: lost.get(window, EMPTY) for window in run.windows if _is_device(window)}, run)
    if not cost.cost_frac >= LEAST_FRAC:
        return ()
    return (
        Finding(
            code=FINDING.code,
            title="XLA runs collectives synchronously",
            **vars(cost),
            evidence=(
                _counts(found),
                f"they are exposed for {duration(cost.cost_ns)}, {percent(cost.cost_frac)} of {cost.of}, without what "
                "is known to be waiting for a late rank",
            ),
            advice="A synchronous collective holds up the stream that computes. Let XLA's scheduler look for work to "
            "put beside it; where each layer needs the result at once there is none, and only fewer bytes help.",
            fix=_FIX_TPU if any(window.device_kind == "tpu" for window in found) else _FIX_GPU,
        ),
    )


def _is_device(window: Window) -> bool:
    return window.framework == "jax" and window.device_kind in ("gpu", "tpu")


def _exposed(window: Window, rows: Ints) -> Intervals:
    spans = window.spans
    return union(spans.start_ns[rows], spans.end_ns[rows]) - spans.busy(Kind.COMPUTE)


def _counts(found: dict[Window, Ints]) -> str:
    kinds: Counter[str] = Counter()
    for window, rows in found.items():
        spans = window.spans
        kinds.update(spans.collectives[number].replace("_", "-") for number in spans.collective[rows].tolist())
    beside = sum(int((modes(window).mode == ASYNC).sum()) for window in found)
    by = dict.fromkeys(ground for window in found for ground in modes(window).by)
    most = ", ".join(counted(count, name) for name, count in kinds.most_common(3))
    also = f"; {beside} others run beside computation" if beside else ""
    return f"by {' and '.join(by)}, {most} are synchronous on the devices here{also}"


FINDING = Rule("synchronous-collectives", synchronous_collectives)
