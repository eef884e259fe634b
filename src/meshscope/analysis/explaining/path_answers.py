"""Explains the answers of a replay: what the steps would take if one thing were different, and by what path."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from meshscope.analysis.bucket_size import tails
from meshscope.analysis.critical_path import critical_paths
from meshscope.analysis.explaining.evidence import events, place
from meshscope.analysis.explaining.figure import (
    DIFFERENCE,
    LARGEST,
    MIDDLE,
    QUOTIENT,
    ROUNDED,
    SUM,
    Figure,
    counted_of,
    made,
)
from meshscope.analysis.explaining.number import Asked, Case, Group, Number
from meshscope.analysis.explaining.path_parts import NO_PATH, NO_STEP, Round, rounds_of
from meshscope.analysis.graph import Graph
from meshscope.analysis.path_pieces import chained
from meshscope.analysis.replay import chain, replay
from meshscope.analysis.what_if import BUCKET, EVEN, FREE, HOST, TWICE, WhatIf, alone, changed
from meshscope.run import Run
from meshscope.units import duration, size

_QUESTIONS = {
    TWICE: ("communication took half its time", "a collective has half of its transfer; ranks still wait"),
    FREE: ("communication took no time", "collectives have no transfer; ranks still wait for each other"),
    EVEN: ("no rank were late", "none waits for another: each rank by itself, with the transfer of a collective once "
           "it is there; of all ranks the median one"),
    HOST: ("the host were never late", "hosts and launches take no time; devices still wait for each other"),
    BUCKET: ("DDP's buckets had another size", "all-reduces follow one another, each α + size/β fitted to the recorded "
             "ones; what is left of them behind the backward pass adds to the step"),
}  # fmt: skip
_REPLAY = (
    "the replay's rule: a moment comes after the last of those it depends on by its measured time; kernels keep their "
    "measured length, also where they would compete for the device"
)
_EXCLUDES = "every other effect of the change: kernels that compete, other launches, another schedule"
_SAID = {
    "": ("step_ns", "ns", "What a step would take if QUESTION"),
    ".total": ("total_ns", "ns", "What all shared steps would take if QUESTION"),
    ".saved": ("saved_frac", "frac", "The share of the critical path that would go if QUESTION"),
}

Figured = Callable[[Round, Graph, WhatIf], Figure]


def numbers(run: Run) -> tuple[Number, ...]:
    asked = dict.fromkeys(
        name
        for path in critical_paths(run)
        for name in (*(one.name for one in path.what_ifs), *(name for name, _ in path.untold))
    )
    return tuple(_number(name, suffix) for name in asked for suffix in _SAID)


def _number(name: str, suffix: str) -> Number:
    field, unit, said = _SAID[suffix]
    return Number(
        name=f"what_if.{name}{suffix}",
        unit=unit,
        definition=f"{said.replace('QUESTION', _QUESTIONS[name][0])}.",
        excludes=_EXCLUDES,
        cases=partial(_cases, name=name, suffix=suffix),
        also=(f"what_if.{name}.{field}",),
        by=(),
        no_step=NO_STEP,
        is_listed=not suffix,
    )


def _cases(asked: Asked, *, name: str, suffix: str) -> tuple[Case, ...]:
    cases: list[Case] = []
    for one in rounds_of(asked.run):
        answers = [(at, answer) for at, answer in enumerate(one.path.what_ifs) if answer.name == name]
        cases += [_case(one, at, answer, suffix) for at, answer in answers]
        cases += [Case(one.label, None, why=why) for what, why in one.path.untold if what == name]
    return tuple(cases) or (Case("the steps", None, why=NO_PATH),)


def _case(one: Round, at: int, answer: WhatIf, suffix: str) -> Case:
    graph = one.found.graph
    assert graph is not None
    total = _TOTALS.get(answer.name, _by_parts)(one, graph, answer)
    windows = [here.window for here in one.found.ranges]
    of = one.label if answer.bucket_bytes is None else f"buckets of {size(answer.bucket_bytes)}, {one.label}"
    return Case(
        of=of,
        figure=_figure(total, one, suffix),
        json=f"critical_path[{one.at}].what_ifs[{at}].{_SAID[suffix][0]}",
        places=tuple(place(window, one.path.steps) for window in windows),
        events=events(windows),
        notes=(f"changed: {_QUESTIONS[answer.name][1]}", _REPLAY, *_notes(one, answer)),
    )


def _figure(total: Figure, one: Round, suffix: str) -> Figure:
    if suffix == ".total":
        return total
    if suffix == ".saved":
        now = Figure("now", one.path.of_ns)
        return made("saved", QUOTIENT, made("shorter by", DIFFERENCE, now, total), now, unit="frac")
    return made("a step then", QUOTIENT, total, counted_of(max(1, len(one.path.steps)), "steps"))


def _notes(one: Round, answer: WhatIf) -> tuple[str, ...]:
    notes = [f"a replay with nothing changed is {duration(one.path.error_ns)} off"]
    notes += [answer.caveat] if answer.caveat else []
    told = tails(one.found) if answer.name == BUCKET else ""
    if not isinstance(told, str):
        cost = told.cost
        notes.append(f"α is {duration(cost.latency_ns)}, 1/β is {cost.ns_per_byte:.4g} ns for each byte")
    return tuple(notes)


def _by_parts(one: Round, graph: Graph, answer: WhatIf) -> Figure:
    """The path of the replay, by the same parts as the measured one (operators of CPU ranks are within host)."""
    del one
    pieces = chained(graph, chain(graph, replay(graph, changed(graph, answer.name))))
    parts = [Figure(part, ns) for part, ns in pieces.total_ns().items()]
    return made("all steps then, along the new path", SUM, *parts) if parts else Figure("nothing is left", 0)


def _even(one: Round, graph: Graph, answer: WhatIf) -> Figure:
    del answer
    ranges = one.found.ranges
    each = zip(ranges, alone(graph, one.found, graph.weight_ns), strict=True)
    return made("all steps then", MIDDLE, *(Figure(f"rank {here.rank} by itself", ns) for here, ns in each))


def _bucket(one: Round, graph: Graph, answer: WhatIf) -> Figure:
    told = tails(one.found)
    least = _by_parts(one, graph, WhatIf(FREE, 0, 0.0, 0.0))
    assert not isinstance(told, str)
    assert answer.bucket_bytes is not None
    now = made("steps and tails", SUM, Figure("all steps now", one.path.of_ns),
               Figure("modelled tails then", told.then_ns[answer.bucket_bytes]))  # fmt: skip
    exact = made("with the other tails", DIFFERENCE, now, Figure("modelled tails now", told.now_ns))
    least = Figure("all steps with communication hidden", least.value)
    return made("all steps then", LARGEST, made("with the other tails", ROUNDED, exact), least)


_TOTALS: dict[str, Figured] = {EVEN: _even, BUCKET: _bucket}

GROUP = Group("what the steps would take if", 22, numbers, heads=("what_if.",))
