"""Explains step time, throughput and what profiling cost: from the steps that the ranks reported."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from meshscope.analysis.explaining.figure import (
    DIFFERENCE,
    LARGEST,
    MEAN,
    MEAN_IN_ORDER,
    MEDIAN,
    P95,
    QUOTIENT,
    RATE,
    ROUNDED,
    SPREAD,
    SUM,
    Figure,
    made,
)
from meshscope.analysis.explaining.number import Asked, Case, Group, Number
from meshscope.analysis.explaining.step_alone import STEPPED, one_step
from meshscope.analysis.steps import (
    NO_TOKENS,
    Measured,
    Steps,
    finished_steps,
    measured_steps,
    profiled_steps,
    steps,
    tells_loss,
)
from meshscope.run import Run
from meshscope.units import counted, ranges

_UNMEASURED = "steps that were being profiled, the first two, and steps that compiled"
_NO_MEASURED = "no unprofiled step past warm-up"
_NO_RANK = "a step ends when its last rank does, for all of them"
_SERIES = "it is of many steps together"
_NO_STEP = {
    "first_ns": "it is of the first step; step_time can",
    "compile_ns": "it is what was compiled by the end of the first step; compilation.again has the others",
    "profiler_cost_frac": "it is a share of the whole training",
}


def numbers(run: Run) -> tuple[Number, ...]:
    del run
    return (
        _number("step_time", "median_ns", "ns", "The median time of a measured step, from the end of the step before "
                "on the last rank to its own end there.", _UNMEASURED, _median, "ms/step", "median", "step"),
        _number("step_time.p95", "p95_ns", "ns", "The time that 95 % of the measured steps do not exceed.", _UNMEASURED,
                partial(_series, how=P95), "p95"),
        _number("step_time.spread", "spread_ns", "ns", "Half the distance between the quartiles of the measured steps.",
                _UNMEASURED, partial(_series, how=SPREAD), "spread"),
        _number("step_time.first", "first_ns", "ns", "The time of the first step, from its earliest rank to its last.",
                "what came before it: starting processes, building the model", _first, "first"),
        _number("compile", "compile_ns", "ns", "Tracing, lowering and compiling by the end of the first step, on the "
                "rank that took longest.", "compilations of later steps, and of what was compiled again", _compile),
        _number("throughput", "samples_per_s", "samples/s", "The median over measured steps of the samples of all "
                "ranks over the time of the step.", _UNMEASURED, partial(_rate, of="samples", how=MEDIAN), "samples/s"),
        _number("throughput.spread", "samples_per_s_spread", "samples/s", "Half the distance between the quartiles of "
                "the throughput of measured steps.", _UNMEASURED, partial(_rate, of="samples", how=SPREAD), "±"),
        _number("tokens_per_s", "tokens_per_s", "tokens/s", "The median over measured steps of the tokens of all ranks "
                "over the time of the step.", _UNMEASURED, partial(_rate, of="tokens", how=MEDIAN), "tokens/s"),
        _number("data_wait", "data_wait_frac", "frac", "The share of a measured step that ranks wait for their batch, "
                "a mean over steps and ranks.", _UNMEASURED, _data_wait, "waits for data"),
        _number("loss", "loss_last", "", "The loss of the newest step that all ranks finished, a mean over ranks.",
                "steps before it", _loss),
        _number("profiled_step_time", "profiled_median_ns", "ns", "The median time of warm steps that a profiler "
                "touched.", "steps without a profiler, and warm-up", _profiled),
        _number("profiled_slowdown", "profiled_slowdown_frac", "frac", "How much longer the median profiled step is "
                "than the median measured one, as a share of the latter.", "starting and stopping the profiler",
                _slowdown),
        _number("profiler_cost", "profiler_cost_frac", "frac", "The time that profiling added, as a share of the time "
                "from the first step's start to the last one's end.", "what it costs a rank between windows", _cost,
                "profiler"),
    )  # fmt: skip


def _number(
    name: str,
    field: str,
    unit: str,
    definition: str,
    excludes: str,
    figure: Callable[[Asked, Steps], Figure | str],
    *also: str,
) -> Number:
    names = (f"steps.{field}", field, *also)
    return Number(
        name, unit, definition, excludes, partial(_cases, field=field, figure=figure), names,
        ("step",) if field in STEPPED else (), _NO_RANK, _NO_STEP.get(field, _SERIES), known_steps=_reported,
    )  # fmt: skip


def _reported(run: Run) -> set[int]:
    """The steps of the journal."""
    return set(run.steps.step.tolist())


def _cases(asked: Asked, *, field: str, figure: Callable[[Asked, Steps], Figure | str]) -> tuple[Case, ...]:
    found = steps(asked.run)
    if asked.step is not None:
        return one_step(asked, asked.step, field)
    if not found.count:
        why = "no step has finished" if asked.run.experiment.strategy else "a trace alone shows only profiled steps"
        return (Case("all ranks", None, why=why),)
    told = figure(asked, found) if math.isfinite(getattr(found, field)) else _untold(field, found)
    if isinstance(told, str):
        return (Case("all ranks", None, why=told),)
    return (Case("all ranks", told, f"steps.{field}", notes=_notes(asked.run, found, field)),)


def _untold(field: str, found: Steps) -> str:
    if field == "compile_ns":
        return "no compilation was recorded"
    if field == "first_ns":
        return "nothing tells when the first step began"
    if field.startswith("profiled") and not found.profiled:
        return "no step was profiled"
    if field == "tokens_per_s" and found.measured:
        return NO_TOKENS
    return "not recorded" if found.measured else _NO_MEASURED


def _notes(run: Run, found: Steps, field: str) -> tuple[str, ...]:
    measured = measured_steps(run).number.tolist()
    notes = []
    if field not in ("first_ns", "compile_ns", "loss_last"):
        profiled = int(found.is_profiled.sum())
        rest = found.count - len(measured) - profiled
        notes.append(
            f"{counted(len(measured), 'measured step')} of {found.count} ({ranges(measured)}); left out: {profiled} "
            f"that profiling touched, {rest} of warm-up or compiling"
        )
    if run.skipped_lines:
        notes.append(f"{counted(run.skipped_lines, 'line')} of the journal could not be read")
    return tuple(notes)


def _durations(of: Measured) -> list[Figure]:
    pairs = zip(of.number.tolist(), of.duration_ns.tolist(), strict=True)
    return [Figure(f"step {number}", duration) for number, duration in pairs]


def _median(asked: Asked, found: Steps) -> Figure:
    return _series(asked, found, how=MEDIAN)


def _series(asked: Asked, found: Steps, *, how: str) -> Figure:
    del found
    exact = made(f"{how} of measured steps", how, *_durations(measured_steps(asked.run)))
    return made(f"{how} step time", ROUNDED, exact)


def _first(asked: Asked, found: Steps) -> Figure:
    del found
    of = finished_steps(asked.run)
    number = int(of.number[0])
    end, begin = Figure(f"end of step {number}", int(of.end_ns[0])), Figure("its start", int(of.start_ns[0]))
    return made("first step", DIFFERENCE, end, begin)


def _compile(asked: Asked, found: Steps) -> Figure:
    compiles, first = asked.run.compiles, int(found.number[0])
    by_rank = []
    for rank in sorted({entry.rank for entry in compiles}):
        mine = [
            entry for entry in compiles if entry.rank == rank and entry.step <= first and not entry.is_recompilation
        ]
        of = [Figure(f"{entry.stage} in step {entry.step}", entry.duration_ns) for entry in mine]
        by_rank.append(made(f"rank {rank}", SUM, *of) if of else Figure(f"rank {rank}", 0))
    return made("compile", LARGEST, *by_rank)


def _rate(asked: Asked, found: Steps, *, of: str, how: str) -> Figure:
    del found
    measured = measured_steps(asked.run)
    amounts = getattr(measured, of).tolist()
    rates = [
        made(one.name, RATE, Figure(f"{of} of {one.name}", amount, of), one, unit=f"{of}/s")
        for one, amount in zip(_durations(measured), amounts, strict=True)
    ]
    return made(f"{how} of measured steps", how, *rates, unit=f"{of}/s")


def _data_wait(asked: Asked, found: Steps) -> Figure:
    del found
    of = measured_steps(asked.run)
    shares = zip(of.number.tolist(), of.data_wait_frac.tolist(), strict=True)
    return made("waiting for data", MEAN, *(Figure(f"step {n}", share, "frac") for n, share in shares), unit="frac")


def _loss(asked: Asked, found: Steps) -> Figure:
    table, last = asked.run.steps, int(found.number[-1])
    rows = ((table.step == last) & tells_loss(table)).nonzero()[0]
    of = [Figure(f"rank {table.rank[row]}", float(table.loss[row]), "") for row in rows]
    return made(f"loss of step {last}", MEAN_IN_ORDER, *of, unit="")


def _profiled(asked: Asked, found: Steps) -> Figure:
    del found
    exact = made("median of profiled steps", MEDIAN, *_durations(profiled_steps(asked.run)))
    return made("median profiled step time", ROUNDED, exact)


def _slowdown(asked: Asked, found: Steps) -> Figure:
    del found
    profiled = made("median of profiled steps", MEDIAN, *_durations(profiled_steps(asked.run)))
    measured = made("median of measured steps", MEDIAN, *_durations(measured_steps(asked.run)))
    ratio = made("profiled over measured", QUOTIENT, profiled, measured, unit="frac")
    return made("slowdown", DIFFERENCE, ratio, Figure("the measured one", 1, "frac"), unit="frac")


def _cost(asked: Asked, found: Steps) -> Figure:
    run, everything = asked.run, finished_steps(asked.run)
    median = made("median of measured steps", MEDIAN, *_durations(measured_steps(run)))
    longer = [made(f"{one.name} beyond the median", DIFFERENCE, one, median) for one in _durations(profiled_steps(run))]
    beyond = made("profiled steps beyond the median", SUM, *longer) if longer else Figure("no profiled step", 0.0)
    added = made("longer steps", LARGEST, Figure("nothing", 0.0), beyond)
    held = _held(run)
    all_added = made("added by profiling", SUM, added, held)
    starts_ns = int(run.steps.start_ns[_of_finished(run, found)].min())
    training = made("training time", DIFFERENCE, Figure("end of the last step", int(everything.end_ns.max())),
                    Figure("start of the first", starts_ns))  # fmt: skip
    return made("profiler cost", QUOTIENT, all_added, training, unit="frac")


def _of_finished(run: Run, found: Steps) -> list[int]:
    finished = set(found.number.tolist())
    return [row for row, step in enumerate(run.steps.step.tolist()) if step in finished]


def _held(run: Run) -> Figure:
    """Starting and stopping a window holds every rank for as long as the slowest takes."""
    by_step: dict[int, list[Figure]] = {}
    for entry in run.traces:
        by_step.setdefault(entry.first_step, []).append(
            Figure(f"rank {entry.rank}", entry.start_cost_ns + entry.stop_ns)
        )
    slowest = [made(f"window from step {step}", LARGEST, *of) for step, of in by_step.items()]
    return made("starting and stopping", SUM, *slowest) if slowest else Figure("no window", 0)


GROUP = Group("steps and throughput", 0, numbers)
