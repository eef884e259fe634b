"""One strategy as a row of the comparison."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace

from meshscope.analysis.breakdown import Breakdown, combine, measure, per_step
from meshscope.analysis.memory import memory
from meshscope.analysis.progress import Progress, progress
from meshscope.analysis.simulation import NOT_RANKED
from meshscope.analysis.steps import Steps, steps
from meshscope.run import Run
from meshscope.units import ratio

NO_STEP = "no unprofiled step past warm-up"
NO_STEP_YET = f"{NO_STEP} yet"
ATTACHED = "was attached to, so that only its profiled steps are known"
SHARES = ("compute", "hidden", "exposed", "copy", "idle")
CORES_PER_RANK = 2
"""A CPU rank computes on one core and communicates on another, or it does not do both at once."""

_SPEED = {"gpu": 2, "tpu": 1, "cpu": 0}


@dataclass(frozen=True)
class Row:
    """One strategy. Floats are NaN where not known; shares are of the mean complete step over all ranks.

    ``share`` maps compute, hidden, exposed, copy, idle to fractions of one step's span; compute here is compute
    that hides no collective, so that the five add up to 1. ``speedup`` is throughput over the
    framework's single-device run, ``efficiency_frac`` is that over the ranks; ``is_ranked`` is false for a run on
    another kind of device than the others (``not_ranked_why`` says so), for a baseline, for a run that failed or
    broke off, and without throughput. ``profiled_pairs`` counts the (rank, step) behind the shares: fewer than
    ``profiled_steps`` times ``profiled_ranks`` where a rank's file does not hold them all. ``shares_cores`` is as in
    :func:`shares_cores`. ``global_batch`` is 0 where it was not recorded. ``is_simulated``: it was predicted and never
    ran; it is not ranked beside what was measured.
    """

    strategy: str
    title: str
    framework: str
    device_kind: str
    is_baseline: bool
    progress: Progress
    samples_per_s: float
    samples_per_s_spread: float
    tokens_per_s: float
    median_ns: float
    spread_ns: float
    speedup: float
    efficiency_frac: float
    share: dict[str, float]
    per_step: Breakdown | None
    exposed_frac: float
    measured_steps: int
    profiled_steps: int
    profiled_ranks: int
    dropped_events: int
    peak_bytes: float
    peak_how: str
    compile_ns: float
    parallel_lines: int
    profiler_cost_frac: float
    is_ranked: bool = True
    not_ranked_why: str = ""
    profiled_pairs: int = 0
    shares_cores: bool = False
    ranks: int = 0
    global_batch: int = 0
    base_strategy: str = ""
    is_simulated: bool = False


def standing(runs: tuple[Run, ...]) -> tuple[Row, ...]:
    """A row per run, in the order of the runs."""
    found = {run.path: steps(run) for run in runs}
    kind = _common_kind(runs)
    clean = any(not run.experiment.faults for run in runs if not run.experiment.is_baseline)
    measured = any(not run.is_simulated for run in runs)
    rows = (_row(run, found[run.path], _single(run, runs, found), kind, has_clean=clean) for run in runs)
    return tuple(_apart(row) if row.is_simulated and measured else row for row in rows)


def _apart(row: Row) -> Row:
    """Of a simulated run beside measured ones: no figure of it is set against theirs."""
    why = row.not_ranked_why if row.is_baseline else NOT_RANKED
    return replace(row, is_ranked=False, not_ranked_why=why, speedup=math.nan, efficiency_frac=math.nan)


def _row(run: Run, found: Steps, single: float, kind: str, *, has_clean: bool) -> Row:
    here = run.experiment
    parts = [measure(window) for window in run.windows if window.device_kind != "none"]
    stepped = [window for window in run.windows if window.device_kind != "none" and measure(window).steps]
    whole = combine(parts) if parts else None
    mean = per_step(whole) if whole else None
    peaks = [(rank.peak_bytes, rank.peak_how) for rank in memory(run) if rank.peak_bytes is not None]
    peak_bytes, peak_how = max(peaks, default=(math.nan, ""))
    speedup = math.nan if here.is_baseline else ratio(found.samples_per_s, single)
    why = _not_ranked_why(run, found, kind, has_clean=has_clean)
    return Row(
        strategy=here.strategy,
        title=here.title,
        framework=here.framework,
        device_kind=device_kind(run),
        is_baseline=here.is_baseline,
        progress=progress(run),
        samples_per_s=found.samples_per_s,
        samples_per_s_spread=found.samples_per_s_spread,
        tokens_per_s=found.tokens_per_s,
        median_ns=found.median_ns,
        spread_ns=found.spread_ns,
        speedup=speedup,
        efficiency_frac=ratio(speedup, here.ranks),
        share=shares(mean) if mean else {},
        per_step=mean,
        exposed_frac=ratio(mean.exposed_ns, mean.span_ns) if mean else math.nan,
        measured_steps=found.measured,
        profiled_steps=len({step for window in stepped for step in window.steps}),
        profiled_ranks=len({window.rank for window in stepped}),
        profiled_pairs=len({(window.rank, step) for window in stepped for step in window.steps}),
        dropped_events=whole.dropped.total() if whole else 0,
        peak_bytes=peak_bytes,
        peak_how=peak_how,
        compile_ns=found.compile_ns,
        parallel_lines=here.parallel_lines,
        profiler_cost_frac=found.profiler_cost_frac,
        shares_cores=shares_cores(run),
        ranks=here.ranks,
        global_batch=here.global_batch,
        base_strategy=here.base_strategy,
        is_ranked=not why,
        not_ranked_why=why,
        is_simulated=run.is_simulated,
    )


def shares(mean: Breakdown) -> dict[str, float]:
    """One step's span in five parts that add up to 1: compute that hides nothing, and copies beside neither."""
    parts = {
        "compute": mean.compute_ns - mean.hidden_ns,
        "hidden": mean.hidden_ns,
        "exposed": mean.exposed_ns,
        "copy": mean.busy_ns - mean.compute_ns - mean.exposed_ns,
        "idle": mean.idle_ns,
    }
    return {name: part / mean.span_ns for name, part in parts.items()} if mean.span_ns else {}


def device_kind(run: Run) -> str:
    """What it ran on, by the ranks themselves; as planned while none has started."""
    seen = Counter(started.device_kind for started in run.ranks if started.rank >= 0)
    return seen.most_common(1)[0][0] if seen else run.experiment.device_kind


def shares_cores(run: Run) -> bool:
    """CPU ranks without a core for communication beside that for computing, as far as the recording tells.

    There the threads that transfer take turns with those that compute: what is hidden or exposed is the scheduler's
    choice, and hiding communication would win nothing. So nothing is said of overlap.
    """
    here = run.experiment
    return device_kind(run) == "cpu" and here.cores < CORES_PER_RANK * max(here.ranks, 1)


def _common_kind(runs: tuple[Run, ...]) -> str:
    """The kind of device that most strategies ran on; of two that tie, the faster one."""
    seen = Counter(device_kind(run) for run in runs if not run.experiment.is_baseline)
    return max(seen, key=lambda kind: (seen[kind], _SPEED.get(kind, -1)), default="")


def _single(run: Run, runs: tuple[Run, ...], found: dict[str, Steps]) -> float:
    """Throughput of the same framework's single-device run on the same kind of device; NaN without one.

    A single-device run that faults were put into stands for nothing but runs with the same ones.
    """
    baseline = baseline_of(run, runs)
    return math.nan if baseline is None else found[baseline.path].samples_per_s


def baseline_of(run: Run, runs: tuple[Run, ...]) -> Run | None:
    """The single-device run of the same global batch that a run is measured against; None where there is none."""
    for other in runs:
        is_same = other.experiment.framework == run.experiment.framework and device_kind(other) == device_kind(run)
        is_as_sound = other.experiment.faults in ([], run.experiment.faults)
        is_as_large = other.experiment.global_batch == run.experiment.global_batch
        is_as_real = other.is_simulated == run.is_simulated
        if other.experiment.is_baseline and is_same and is_as_sound and is_as_large and is_as_real:
            return other
    return None


def _not_ranked_why(run: Run, found: Steps, kind: str, *, has_clean: bool) -> str:
    """Reasons that stay come first. A run with faults put in is measured against its like alone."""
    faults = run.experiment.faults
    reasons = (
        (run.experiment.is_baseline, "one device: what the others are measured against"),
        (device_kind(run) != kind, f"ran on {device_kind(run).upper()}, the others on {kind.upper()}"),
        (bool(faults) and has_clean, f"ran with injected {' and '.join(faults)}, others did not"),
        (run.ended is not None and run.ended.outcome == "failed", "failed before its last step"),
        (run.is_lost, "broke off before its last step"),
        (run.experiment.is_attached, ATTACHED),
        (not found.measured, NO_STEP_YET if run.ended is None else NO_STEP),
        (not 0 < found.samples_per_s < math.inf, "its steps do not say how many samples they took"),
    )
    return next((why for applies, why in reasons if applies), "")
