"""Explains compilation: what it took before and in the first step, and each function that was compiled again."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from meshscope.analysis.compilation import Compilation, Recompilation, compilation
from meshscope.analysis.explaining.figure import DIFFERENCE, LARGEST, QUOTIENT, ROUNDED, SUM, Figure, made
from meshscope.analysis.explaining.number import Asked, Case, Group, Number
from meshscope.run import Run
from meshscope.units import ranges

_NO_TIME = "what was read from a cache instead of compiled, apart from reading it"
_RANKS = "the others wait for the rank that takes longest, which it is of"


def numbers(run: Run) -> tuple[Number, ...]:
    found = compilation(run)
    if not found.is_known:
        return ()
    whole = (
        _number("before", "before_first_step_ns", "What the slowest rank compiled for before its first step.",
                partial(_early, is_before=True)),
        _number("first_step", "first_step_ns", "What the slowest rank compiled for within its first step.",
                partial(_early, is_before=False)),
        _number("cost", "cost_ns", "What the rank with most of it spent on compiling again past warm-up.", _cost),
        _number("cost_share", "cost_frac", "That as a share of the training, from the first step to the end.",
                _cost_share, unit="frac"),
        _number("training", "training_ns", "From the first step's beginning to the last one's end.", _training),
    )  # fmt: skip
    again = tuple(_again(at, one) for at, one in enumerate(found.again))
    every = Number(
        "compilation.again", "ns", "How long each function took that was compiled again, by step.", _NO_TIME,
        _all_again, ("compilation.recompilations",), ("step",), _RANKS, known_steps=_recompiling,
    )  # fmt: skip
    return (*whole, *((every, *again) if again else ()))


def _recompiling(run: Run) -> set[int]:
    return {one.step for one in compilation(run).again}


def _number(
    name: str, field: str, said: str, figure: Callable[[Run, Compilation], Figure | str], *, unit: str = "ns"
) -> Number:
    return Number(
        f"compilation.{name}", unit, said, _NO_TIME, partial(_cases, field=field, figure=figure),
        (f"compilation.{field}",), (), _RANKS, "compilation.again can",
    )  # fmt: skip


def _again(at: int, one: Recompilation) -> Number:
    """By its place in the list, since one function may be compiled again many times."""
    return Number(
        f"compilation.again.{at}", "ns", f"How long {one.function} took to compile again in step {one.step}.", _NO_TIME,
        partial(_again_cases, at=at), (f"compilation.recompilations.{at}",), (), _RANKS, f"it is of step {one.step}",
        is_listed=False,
    )  # fmt: skip


def _cases(asked: Asked, *, field: str, figure: Callable[[Run, Compilation], Figure | str]) -> tuple[Case, ...]:
    found = compilation(asked.run)
    told = figure(asked.run, found)
    if isinstance(told, str):
        return (Case("all ranks", None, why=told),)
    of = f"rank {found.rank}" if field.startswith("cost") and found.rank >= 0 else "the slowest rank"
    return (Case(of, told, f"compilation.{field}"),)


def _early(run: Run, found: Compilation, *, is_before: bool) -> Figure:
    del found
    first = int(run.steps.step.min()) if len(run.steps) else 0
    by_rank = []
    for rank in sorted({entry.rank for entry in run.compiles}):
        mine = [
            entry
            for entry in run.compiles
            if entry.rank == rank and not entry.is_recompilation
            and (entry.step < first if is_before else entry.step == first)
        ]  # fmt: skip
        parts = [Figure(f"{entry.stage} {entry.function}", entry.duration_ns) for entry in mine]
        by_rank.append(made(f"rank {rank}", SUM, *parts) if parts else Figure(f"rank {rank}", 0))
    return made("compiling", ROUNDED, made("slowest rank", LARGEST, *by_rank))


def _cost(run: Run, found: Compilation) -> Figure:
    """By the entries of the rank: a trace or lowering counts with the compilation that it led to."""
    del run
    parts = [
        Figure(f"{one.function} in step {one.step}", one.duration_ns)
        for one in found.storm
        if one.ranks == (found.rank,)
    ]  # fmt: skip
    if sum(part.value for part in parts) == found.cost_ns and parts:
        return made("compiling again past warm-up", SUM, *parts)
    return Figure("compiling again past warm-up", found.cost_ns)


def _cost_share(run: Run, found: Compilation) -> Figure | str:
    if math.isnan(found.cost_frac):
        return "no step has finished"
    return made("share of the training", QUOTIENT, _cost(run, found), _training(run, found), unit="frac")


def _training(run: Run, found: Compilation) -> Figure:
    if not len(run.steps):
        return Figure("training", found.training_ns)
    end, start = int(run.steps.end_ns.max()), int(run.steps.start_ns.min())
    return made("training", DIFFERENCE, Figure("end of the last step", end), Figure("start of the first", start))


def _all_again(asked: Asked) -> tuple[Case, ...]:
    found = compilation(asked.run).again
    return tuple(_case(at, one) for at, one in enumerate(found) if asked.step in (None, one.step))


def _again_cases(asked: Asked, *, at: int) -> tuple[Case, ...]:
    return (_case(at, compilation(asked.run).again[at]),)


def _case(at: int, one: Recompilation) -> Case:
    stages = [Figure(stage, ns) for stage, ns in one.stage_ns.items()]
    is_whole = sum(stage.value for stage in stages) == one.duration_ns
    figure = made("compiled again", SUM, *stages) if is_whole and stages else Figure("compiled again", one.duration_ns)
    notes = [f"on {'rank' if len(one.ranks) == 1 else 'ranks'} {ranges(one.ranks)}; told of the one that took longest"]
    notes += [f"changed: {', '.join(one.changed)}"] if one.changed else []
    notes += [f"reason: {one.reason}"] if one.reason else []
    json = f"compilation.recompilations[{at}].duration_ns"
    return Case(f"{one.function}, step {one.step}", figure, json, notes=tuple(notes))


GROUP = Group("compilation", 30, numbers, heads=("compilation",))
