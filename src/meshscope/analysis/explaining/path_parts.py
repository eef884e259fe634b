"""Explains the critical path: what it is made of, by kind, by rank and by name, and the spans on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property, partial

import numpy as np

from meshscope.analysis.critical_path import CriticalPath, critical_paths, of_round
from meshscope.analysis.explaining.evidence import events, place
from meshscope.analysis.explaining.figure import DIFFERENCE, QUOTIENT, SUM, Figure, counted_of, made
from meshscope.analysis.explaining.number import Asked, Case, Group, Number
from meshscope.analysis.explaining.path_spans import is_backward, is_named, on_path
from meshscope.analysis.graph import Part
from meshscope.analysis.graph_run import RoundGraph, measure
from meshscope.analysis.parts import per_run
from meshscope.analysis.path_pieces import NAMES, Pieces, measured
from meshscope.analysis.replay import chain, replay
from meshscope.analysis.rounds import rounds
from meshscope.analysis.waiting import world
from meshscope.analysis.what_if_caveats import cautioned
from meshscope.run import Run
from meshscope.units import UNKNOWN, ranges

NO_STEP = "the path runs through all steps of a window: where one ends differs from rank to rank"
NO_PATH = "no round of windows has a critical path"
_PART = {name: part for part, name in NAMES.items()}
_WORDS = {
    "late_start": "before a rank that began its first step after the first one",
    "compute": "in kernels (on CPU ranks in operators, each without those it calls)",
    "communication": "in collectives after their last rank had come",
    "communication_and_waiting": "in collectives of which waiting for peers is not told apart",
    "copy": "in copies",
    "launch": "from a launch to the start of its work",
    "host": "of a host between its launches",
    "delay": "that no recorded dependency explains",
}
_OF_WORK = {
    "total": ("total_ns", "ns", "The time of the critical path in NAME"),
    "count": ("count", "spans", "How many spans of NAME the critical path goes through"),
    "backward": ("backward_ns", "ns", "The time of the critical path in NAME that was asked for in a backward pass"),
}
_EXCLUDES = "whatever ran beside the path: making it faster would not make the steps shorter"
_RULE = (
    "the path goes back from the end: each moment to the last of those it depends on (the work before on its stream, "
    "its launch, the host's order, the last rank of its collective)"
)
MOST_TOLD = 20
"""So many of the named spans stand in the reports."""


class Round:
    """One round that has a path: ``at`` is its place in the answer, ``found`` its graph, ``pieces`` the path."""

    def __init__(self, at: int, path: CriticalPath, found: RoundGraph) -> None:
        self.at, self.path, self.found = at, path, found

    @cached_property
    def pieces(self) -> Pieces:
        graph = self.found.graph
        assert graph is not None
        return measured(self.found, graph, chain(graph, graph.time_ns))

    @property
    def label(self) -> str:
        steps, ranks = self.path.steps, self.path.ranks
        of = f"{'step' if len(steps) == 1 else 'steps'} {ranges(steps)}" if steps else "whole windows"
        return f"{of} of {'rank' if len(ranks) == 1 else 'ranks'} {ranges(ranks)}"


@per_run
def rounds_of(run: Run) -> list[Round]:
    """In the order of ``critical_paths``."""
    here, found = world(run), list[Round]()
    for members in rounds(run):
        path = of_round(members, here)
        if path is not None:
            path = replace(path, what_ifs=cautioned(path.what_ifs, run))
            found.append(Round(len(found), path, measure(members, here)))
    return found


def numbers(run: Run) -> tuple[Number, ...]:
    paths = critical_paths(run)
    if not paths:
        return ()
    parts = [name for name in NAMES.values() if any(name in path.parts for path in paths)]
    works = dict.fromkeys(work.name for path in paths for work in path.works)
    named = [_of_work(name, what, at) for at, name in enumerate(works) for what in _OF_WORK]
    return (
        _number("critical_path.total", "ns", "How long the shared steps took, from the first rank's coming to the last "
                "one's end: its parts add up to it.", partial(_cases, what="total"), ("critical_path.of_ns",)),
        *(_of_part(name, suffix) for name in ("total", *parts) for suffix in ("", ".share", ".per_step")
          if name != "total" or suffix == ".per_step"),
        _number("critical_path.by_rank", "ns", "The time of the path that runs through a rank.",
                partial(_cases, what="by_rank"), ()),
        _number("critical_path.error", "ns", "How far a replay of the steps with nothing changed is from what was "
                "measured.", partial(_cases, what="error"), ("critical_path.error_ns",), by=()),
        *named,
    )  # fmt: skip


def _number(
    name: str,
    unit: str,
    said: str,
    cases: Callable[[Asked], tuple[Case, ...]],
    also: tuple[str, ...],
    *,
    by: tuple[str, ...] = ("rank",),
    is_listed: bool = True,
) -> Number:
    return Number(name, unit, said, _EXCLUDES, cases, also, by, no_step=NO_STEP, is_listed=is_listed)


def _of_part(name: str, suffix: str) -> Number:
    said = f"time of the critical path {_WORDS.get(name, '')}".strip()
    if suffix == ".per_step":
        return _number(f"critical_path.{name}.per_step", "ns", f"The {said}, for each of the shared steps.",
                       partial(_cases, what=name, is_mean=True), (), is_listed=False)  # fmt: skip
    if suffix:
        return _number(f"critical_path.{name}.share", "frac", f"The share of the {said}.",
                       partial(_cases, what=name, is_share=True), (), is_listed=False)  # fmt: skip
    also = (f"critical_path.parts.{name}", f"path:{name}", f"path.{name}")
    return _number(f"critical_path.{name}", "ns", f"The {said}.", partial(_cases, what=name), also)


def _of_work(name: str, what: str, at: int) -> Number:
    called, (field, unit, said) = f"critical_path.works.{name or UNKNOWN}", _OF_WORK[what]
    is_total = what == "total"
    return _number(
        called if is_total else f"{called}.{what}", unit, f"{said.replace('NAME', name or UNKNOWN)}.",
        partial(_work_cases, name=name, what=what), (f"{called}.{field}",) if field != what else (), by=(),
        is_listed=is_total and at < MOST_TOLD,
    )  # fmt: skip


def _cases(asked: Asked, *, what: str, is_share: bool = False, is_mean: bool = False) -> tuple[Case, ...]:
    found = rounds_of(asked.run)
    if not found:
        return (Case("the path", None, why=NO_PATH, rank=asked.rank),)
    told = tuple(case for one in found for case in _of_round(asked, one, what, is_share=is_share))
    return tuple(map(_per_step, told, found)) if is_mean else told


def _per_step(case: Case, one: Round) -> Case:
    if case.figure is None:
        return case
    steps = counted_of(max(len(one.path.steps), 1), "steps")
    return replace(case, figure=made("in a step", QUOTIENT, case.figure, steps), json="")


def _of_round(asked: Asked, one: Round, what: str, *, is_share: bool) -> Iterable[Case]:
    pieces, json = one.pieces, f"critical_path[{one.at}]"
    if what == "error":
        return (_case(asked, one, one.label, _error(one), f"{json}.error_ns", None),)
    if what == "by_rank":
        ranks = [rank for rank in one.path.by_rank if asked.has(rank)]
        if not ranks:
            return (Case(one.label, None, why="the path does not run through it", rank=asked.rank),)
        return tuple(_rank_case(asked, one, rank, pieces) for rank in ranks)
    mine = pieces if asked.rank is None else pieces.where(pieces.rank == asked.rank)
    chosen = mine if what == "total" else mine.where(mine.part == _PART[what])
    if not len(chosen.part):
        return (Case(one.label, None, why="nothing of the path is of that kind there", rank=asked.rank),)
    figure = _by(chosen, "part" if what == "total" else "rank", what)
    if is_share:
        figure = made(f"{what}'s share of the path", QUOTIENT, figure, _by(pieces, "part", "path"), unit="frac")
    field = f"{json}.{'of_ns' if what == 'total' else f'parts.{what}'}"
    return (_case(asked, one, one.label, figure, "" if is_share or asked.rank is not None else field, chosen),)


def _by(pieces: Pieces, column: str, name: str) -> Figure:
    """The length of some pieces as a sum over ranks, or over parts."""
    values, length_ns = getattr(pieces, column), pieces.length_ns
    total_ns = {int(one): int(length_ns[values == one].sum()) for one in np.unique(values).tolist()}
    parts = [Figure(NAMES[Part(one)] if column == "part" else f"rank {one}", ns) for one, ns in total_ns.items() if ns]
    return made(name, SUM, *parts) if parts else Figure(name, 0)


def _rank_case(asked: Asked, one: Round, rank: int, pieces: Pieces) -> Case:
    chosen = pieces.where(pieces.rank == rank)
    figure = _by(chosen, "part", f"rank {rank}")
    return _case(asked, one, f"rank {rank}, {one.label}", figure, f"critical_path[{one.at}].by_rank.{rank}", chosen)


def _error(one: Round) -> Figure:
    graph = one.found.graph
    assert graph is not None
    replayed_ns = int(replay(graph)[-1]) - graph.start_ns
    told = [Figure("measured", one.path.of_ns), Figure("replayed with nothing changed", replayed_ns)]
    return made("error of the replay", DIFFERENCE, *sorted(told, key=lambda figure: -figure.value))


def _case(asked: Asked, one: Round, of: str, figure: Figure, json: str, chosen: Pieces | None) -> Case:
    windows = [here.window for here in one.found.ranges]
    unchecked = ("no wait of a host for its device is recorded, so nothing on the path can hold a host up",)
    return Case(
        of=of if asked.rank is None or of.startswith("rank") else f"{of}, through rank {asked.rank}",
        figure=figure,
        json=json,
        rank=asked.rank,
        places=tuple(place(window, one.path.steps) for window in windows),
        evidence=None if chosen is None else on_path(one.found, chosen),
        events=events(windows),
        notes=(_RULE, *(unchecked if one.path.is_unchecked else ())),
    )


def _work_cases(asked: Asked, *, name: str, what: str) -> tuple[Case, ...]:
    cases = []
    for one in rounds_of(asked.run):
        for at, work in enumerate(one.path.works):
            if work.name == name:
                cases.append(_work_case(asked, one, at, what))
    return tuple(cases) or (Case(name, None, why="it is not on the path"),)


def _work_case(asked: Asked, one: Round, at: int, what: str) -> Case:
    work, pieces = one.path.works[at], one.pieces
    of_part = pieces.where(pieces.part == _PART[work.part])
    chosen = of_part.where(is_named(one.found, of_part, work.name))
    of, field = f"{work.part} on the path of {one.label}", _OF_WORK[what][0]
    if what == "backward":
        if work.backward_ns is None:
            return Case(of, None, why="the trace does not tell the phase of all of it")
        chosen = chosen.where(is_backward(one.found, chosen))
    if what == "count":
        spans = np.unique(np.stack((chosen.rank, chosen.window, chosen.row))[:, chosen.row >= 0], axis=1)
        ranks = Counter(spans[0].tolist())
        figure = made(work.name, SUM, *(Figure(f"rank {rank}", ranks[rank], "spans") for rank in sorted(ranks)),
                      unit="spans")  # fmt: skip
    else:
        figure = _by(chosen, "rank", work.name or "unnamed")
    json = f"critical_path[{one.at}].works[{at}].{field}" if at < MOST_TOLD else ""
    return _case(asked, one, of, figure, json, chosen)


GROUP = Group("the critical path", 21, numbers, heads=("critical_path", "path"))
