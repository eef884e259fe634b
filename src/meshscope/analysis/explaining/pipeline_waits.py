"""Explains the bubble of a pipeline: what each stage waits, and what equal stages would."""

from __future__ import annotations

from collections.abc import Callable

from meshscope.analysis.explaining.evidence import Pick, events, evidence, place
from meshscope.analysis.explaining.figure import DIFFERENCE, MEAN, QUOTIENT, ROUNDED_QUOTIENT, SUM, Figure, made
from meshscope.analysis.explaining.number import Asked, Case, Group, Number
from meshscope.analysis.pipeline import Pipeline, Stage, pipeline, waiting_rows, waits_of
from meshscope.run import Run
from meshscope.spans import Window

_EXCLUDES = "sends on a CPU rank, whose spans go on until their caller looks; what it waits under compute"
_NO_STEP = "no profiled step lies wholly in a window of this rank"
_SHARES = "it is over all complete steps that were traced; exposed and wait can be told of one"


def numbers(run: Run) -> tuple[Number, ...]:
    if pipeline(run) is None:
        return ()
    return (
        _number(
            "wait", "ns", "Time in which a stage computes nothing, and receives or is in a collective, a step.",
            _EXCLUDES, _waits, ("pipeline.wait_ns", "bubble"), no_step=_SHARES,
        ),
        _number(
            "wait_share", "frac", "That as a share of the stage's mean step, of each stage and in their mean.",
            _EXCLUDES, _shares, ("pipeline.wait_frac", "waits", "receives"), no_step=_SHARES,
        ),
        _number(
            "ideal", "frac", "The share of a step in which equal stages that pass on at once would compute nothing.",
            "the time of transfers, of the optimizer and of batches, and stages of unequal work",
            _ideal, ("pipeline.ideal_wait_frac",), no_step="it follows from the schedule alone",
        ),
    )  # fmt: skip


def _number(
    name: str,
    unit: str,
    definition: str,
    excludes: str,
    cases: Callable[[Asked], tuple[Case, ...]],
    also: tuple[str, ...],
    *,
    no_step: str,
) -> Number:
    by = () if name == "ideal" else ("rank",)
    return Number(f"pipeline.{name}", unit, definition, excludes, cases, also=also, by=by, no_step=no_step)


def _stages(asked: Asked) -> tuple[Stage, ...]:
    found = pipeline(asked.run)
    return () if found is None else tuple(one for one in found.ranks if asked.has(one.rank))


def _none(asked: Asked) -> tuple[Case, ...]:
    return (Case("all ranks" if asked.rank is None else f"rank {asked.rank}", None, why=_NO_STEP, rank=asked.rank),)


def _windows(asked: Asked, rank: int) -> list[Window]:
    return [one for one in asked.run.windows if one.rank == rank and one.steps and one.device_kind != "none"]


def _waits(asked: Asked) -> tuple[Case, ...]:
    return tuple(_wait_case(asked, one) for one in _stages(asked)) or _none(asked)


def _wait_case(asked: Asked, one: Stage) -> Case:
    windows = _windows(asked, one.rank)
    return Case(
        f"rank {one.rank}",
        _wait(asked, one),
        f"pipeline.ranks[rank={one.rank}].wait_ns",
        rank=one.rank,
        places=tuple(place(window, window.steps) for window in windows),
        evidence=evidence(
            [Pick.within(window, waiting_rows(window), waits_of(window)) for window in windows],
            "spans in which it receives or is in a collective",
        ),
        events=events(windows),
    )


def _wait(asked: Asked, one: Stage) -> Figure:
    each = [
        Figure(f"window from step {window.steps[0]}", waits_of(window).total_ns) for window in _windows(asked, one.rank)
    ]
    total = made("in all complete steps", SUM, *each)
    return made("in the mean step", ROUNDED_QUOTIENT, total, Figure("complete steps", one.steps, "steps"))


def _shares(asked: Asked) -> tuple[Case, ...]:
    stages = _stages(asked)
    cases = [
        Case(f"rank {one.rank}", _share(asked, one), f"pipeline.ranks[rank={one.rank}].wait_frac", rank=one.rank)
        for one in stages
    ]
    if not cases:
        return _none(asked)
    if asked.rank is None:
        mean = made("mean over stages", MEAN, *(_share(asked, one) for one in stages), unit="frac")
        cases.append(Case("all ranks", mean, "pipeline.wait_frac"))
    return tuple(cases)


def _share(asked: Asked, one: Stage) -> Figure:
    return made(f"rank {one.rank}", QUOTIENT, _wait(asked, one), Figure("its mean step", one.step_ns), unit="frac")


def _ideal(asked: Asked) -> tuple[Case, ...]:
    found = pipeline(asked.run)
    return () if found is None else (Case("all ranks", _formula(found), "pipeline.ideal_wait_frac"),)


def _formula(found: Pipeline) -> Figure:
    stages, one = Figure("stages", found.stages, "stages"), Figure("the first", 1, "stages")
    further = made("further stages", DIFFERENCE, stages, one, unit="stages")
    own = Figure("turns of a stage's own work", found.chunks * found.micro_batches, "turns")
    turns = made("turns of a step", SUM, own, further, unit="turns")
    return made("ideal bubble", QUOTIENT, further, turns, unit="frac")


GROUP = Group("the bubble of a pipeline", 31, numbers, heads=("pipeline", "bubble", "waits"))
