"""Simple answers in place of the analysis, for screens over made folders."""

from __future__ import annotations

import math
from types import ModuleType

import made
import numpy as np

from meshscope.analysis.breakdown import Breakdown, RankBreakdown
from meshscope.analysis.comparison import Comparison, Row
from meshscope.analysis.devices import DeviceField, Devices
from meshscope.analysis.memory import Category, RankMemory
from meshscope.analysis.overlap import CollectiveOverlap
from meshscope.analysis.progress import Progress
from meshscope.analysis.steps import Steps
from meshscope.run import Run


def progress(run: Run) -> Progress:
    step = int(run.steps.step.max()) + 1 if len(run.steps) else 0
    asked = [w for w in run.windows_asked if w.first_step > step]
    state, why, rank = run.phases[-1].phase if run.phases else "launching", "", -1
    if run.ended is not None:
        state, why, rank = run.ended.outcome, run.ended.why, run.ended.rank
    return Progress(
        state, step, run.experiment.planned_steps, why=why, rank=rank,
        next_window_steps=asked[0].first_step - step if asked else None,
    )  # fmt: skip


def breakdown(run: Run) -> tuple[RankBreakdown, ...]:
    shape = made.SHAPES[run.experiment.strategy]
    newest = {window.rank: window for window in run.windows}
    return tuple(_rank(shape, rank, window.steps) for rank, window in sorted(newest.items()))


def _rank(shape: made.Shape, rank: int, steps: tuple[int, ...]) -> RankBreakdown:
    late = 4.0 if rank == 2 else 0.0
    compute, exposed = shape.compute + late, max(shape.exposed - late, 0.0)
    if not shape.exposed:
        compute = shape.compute
    parts = [int(ms * made.MS) for ms in (compute + shape.hidden, shape.hidden, exposed, shape.idle)]
    span = int(shape.step_ms * made.MS)
    part = Breakdown(
        span_ns=span, compute_ns=parts[0], collective_ns=parts[1] + parts[2], hidden_ns=parts[1], exposed_ns=parts[2],
        busy_ns=parts[0] + parts[2], idle_ns=span - parts[0] - parts[2],
    )  # fmt: skip
    return RankBreakdown(rank, rank, "journal", "cpu", part, part, part, steps, steps, 1000, 900, {}, {})


def overlap(run: Run) -> tuple[CollectiveOverlap, ...]:
    shape = made.SHAPES[run.experiment.strategy]
    if not run.windows or not shape.exposed:
        return ()
    names = (("all_gather", 0.7), ("reduce_scatter", 0.3)) if shape.lines > 8 else (("all_reduce", 1.0),)
    ranks = tuple(sorted({window.rank for window in run.windows}))
    return tuple(
        CollectiveOverlap(
            name, 40, ranks, 4, (shape.hidden + shape.exposed) * share * made.MS, shape.hidden * share * made.MS,
            shape.exposed * share * made.MS, None, 4_200_000,
        )
        for name, share in names
    )  # fmt: skip


def steps(run: Run) -> Steps:
    table = run.steps
    if not len(table):
        return Steps(planned=run.experiment.planned_steps)
    number = np.unique(table.step)
    start = np.array([table.start_ns[table.step == n].min() for n in number])
    end = np.array([table.end_ns[table.step == n].max() for n in number])
    profiled = np.array([table.is_profiled[table.step == n].any() for n in number])
    took = end - start
    measured = took[(number >= 2) & ~profiled]
    compile_ns = sum(entry.duration_ns for entry in run.compiles) or math.nan
    nothing = not len(measured)
    median = math.nan if nothing else float(np.median(measured))
    spread = math.nan if nothing else float(np.subtract(*np.quantile(measured, (0.75, 0.25)))) / 2
    rate = made.BATCH / median * 1e9
    return Steps(
        count=len(number), planned=run.experiment.planned_steps, measured=len(measured), median_ns=median,
        p95_ns=math.nan if nothing else float(np.quantile(measured, 0.95)), spread_ns=spread,
        first_ns=float(took[0]), compile_ns=compile_ns, samples_per_s=rate, samples_per_s_spread=rate * spread / median,
        tokens_per_s=rate * 128, loss_last=float(table.loss[-1]), profiled=int(profiled.sum()),
        profiled_slowdown_frac=0.35 if profiled.any() else math.nan,
        profiler_cost_frac=0.031 if profiled.any() else math.nan, number=number, duration_ns=took,
        is_profiled=profiled, data_wait_frac=0.004,
    )  # fmt: skip


def memory(run: Run) -> tuple[RankMemory, ...]:
    return tuple(
        RankMemory(
            m.rank, m.device, m.step, m.source, tuple(Category(n, b, m.how[n]) for n, b in m.categories.items()),
            m.peak_bytes, m.peak_how, None, None,
        )
        for m in run.memory
    )  # fmt: skip


def devices(run: Run) -> Devices:
    fields = []
    for device in run.samples.devices:
        for field in run.samples.fields:
            time_ns, value = run.samples.series(device, field)
            if len(value):
                last, mean, most = float(value[-1]), float(value.mean()), float(value.max())
                fields.append(DeviceField(device, field, len(value), last, mean, most, time_ns, value))
    return Devices(tuple(fields), tuple((f.device, f.field, f.why) for f in run.sensor_failures))


def comparison(runs: tuple[Run, ...]) -> Comparison:
    single = {run.experiment.framework: steps(run).samples_per_s for run in runs if run.experiment.is_baseline}
    rows = tuple(_row(run, single.get(run.experiment.framework, math.nan)) for run in runs)
    ranked = sorted((row for row in rows if row.is_ranked), key=lambda row: -row.samples_per_s)
    verdict, leader = "", ""
    if len(ranked) > 1:
        first, last = ranked[0], ranked[-1]
        leader = first.strategy
        times = first.samples_per_s / last.samples_per_s
        verdict = (
            f"{leader} leads: {times:.1f}× {last.strategy}, because {last.strategy} leaves {last.exposed_frac * 100:.0f} % "
            f"of a step exposed in all_gather ({leader} {first.exposed_frac * 100:.0f} %)."
        )
    notes = ("4 ranks share 2 cores: this compares code paths, not GPUs.",) if rows else ()
    return Comparison(rows, leader, verdict, notes)


def _row(run: Run, single: float) -> Row:
    shape, pace = made.SHAPES[run.experiment.strategy], steps(run)
    shares = {"compute": shape.compute, "hidden": shape.hidden, "exposed": shape.exposed, "copy": 0, "idle": shape.idle}
    known = bool(run.windows)
    peak = max((m.peak_bytes for m in run.memory), default=math.nan)
    baseline = run.experiment.is_baseline
    speedup = math.nan if baseline else pace.samples_per_s / single
    return Row(
        strategy=run.experiment.strategy, title=shape.title, framework=shape.framework, device_kind="cpu",
        is_baseline=baseline, progress=progress(run), samples_per_s=pace.samples_per_s,
        samples_per_s_spread=pace.samples_per_s_spread, tokens_per_s=pace.tokens_per_s, median_ns=pace.median_ns,
        spread_ns=pace.spread_ns, speedup=speedup, efficiency_frac=speedup / made.RANKS,
        share={name: value / shape.step_ms for name, value in shares.items()} if known else {}, per_step=None,
        exposed_frac=shape.exposed / shape.step_ms if known else math.nan, profiled_steps=4 if known else 0,
        profiled_ranks=made.RANKS, dropped_events=0, peak_bytes=float(peak), peak_how="", compile_ns=pace.compile_ns,
        parallel_lines=shape.lines, profiler_cost_frac=pace.profiler_cost_frac,
        is_ranked=not baseline and not math.isnan(pace.samples_per_s),
    )  # fmt: skip


def install(monkeypatch: object) -> None:
    """Let every panel ask these instead of the analysis."""
    for module in _panels():
        for name in ("progress", "breakdown", "overlap", "steps", "memory", "devices", "comparison"):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, globals()[name])  # type: ignore[attr-defined]


def _panels() -> tuple[ModuleType, ...]:
    from meshscope.ui.panels import comparison as one
    from meshscope.ui.panels import devices as two
    from meshscope.ui.panels import log as three
    from meshscope.ui.panels import memory as four
    from meshscope.ui.panels import overlap as five
    from meshscope.ui.panels import split as six
    from meshscope.ui.panels import steptime as seven

    return one, two, three, four, five, six, seven
