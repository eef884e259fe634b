"""A step's time spelled out: every operation of the slowest stage, how often it happens, and what it costs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from meshscope.advisor.figures import Figure
from meshscope.advisor.forecast import Term
from meshscope.advisor.operations import Layer, Operation, Stage, groups
from meshscope.advisor.prices import Prices
from meshscope.advisor.replay import Piece
from meshscope.advisor.steps import Step

MEBI = 2**20


@dataclass
class _Sum:
    figure: Figure
    times: float
    arithmetic: str


def step_terms(step: Step, *, late_s: float, tail_s: float, bubble_s: float) -> tuple[Term, ...]:
    """In the order of the step: forward, backward, communication of data parallelism, the optimizer, what comes on top.
    Work beside other work is listed too, so the terms add up to more than the step."""
    many = step.candidate.accumulate
    found: dict[str, _Sum] = {}
    for layer, times in _layers(step.stage):
        for each in (*layer.forward, *layer.backward):
            _add(found, step.prices, each, times * many)
    for piece, times in _data_pieces(step):
        _count(found, piece.name, piece, times)
    if step.candidate.pipeline > 1:
        _hand_over(found, step)
    for piece in step.ending():
        _count(found, piece.name, piece, 1.0)
    own = [Term(name, each.figure, each.times, each.arithmetic) for name, each in found.items()]
    return (*own, *_added(late_s=late_s, tail_s=tail_s, bubble_s=bubble_s))


def _layers(stage: Stage) -> Iterator[tuple[Layer, float]]:
    if stage.first is not None:
        yield stage.first, 1.0
    yield from stage.layers
    if stage.last is not None:
        yield stage.last, 1.0


def _add(found: dict[str, _Sum], prices: Prices, each: Operation, times: float) -> None:
    backward = " back" if each.is_backward else ""
    name = each.kind if each.kind not in ("matmul", "attention", "memory") else f"{each.name}{backward}"
    figure = prices.figure(each)
    if name in found:
        found[name] = _joined(found[name], figure, times)
        return
    found[name] = _Sum(figure, times, _words(each, prices))


def _joined(had: _Sum, figure: Figure, times: float) -> _Sum:
    """The mean of both, as often as both happen."""
    all_times = had.times + times
    old, new = had.times / all_times, times / all_times
    mean = Figure(
        old * had.figure.value + new * figure.value,
        old * had.figure.low + new * figure.low,
        old * had.figure.high + new * figure.high,
        had.figure.source,
        had.figure.where,
    )
    return _Sum(mean, all_times, had.arithmetic)


def _words(each: Operation, prices: Prices) -> str:
    if each.kind == "matmul":
        many = f"{each.times} × " if each.times > 1 else ""
        return f"{many}2 × {each.m:,} × {each.n:,} × {each.k:,} FLOP in {prices.compute_of(each)}"
    if each.kind == "attention":
        return f"{each.batch:g} × {each.m} heads of {each.k}, {each.n:,} tokens"
    if each.kind == "memory":
        return f"{each.size_bytes / MEBI:,.0f} MiB read and written"
    return f"{each.size_bytes / MEBI:,.0f} MiB over {each.ranks} ranks, {each.stride} apart"


def _hand_over(found: dict[str, _Sum], step: Step) -> None:
    """Activations to the next stage and gradients to the one before, of every chunk and micro-batch."""
    laid = step.candidate
    sent = Operation("send", "send", size_bytes=step.stage.handover_bytes, ranks=2, stride=groups(laid).pipeline)
    _add(found, step.prices, sent, 2.0 * laid.accumulate * laid.virtual)


def _data_pieces(step: Step) -> Iterable[tuple[Piece, float]]:
    candidate = step.candidate
    every = candidate.accumulate if step.gathers else 1
    gathers = (2.0 if candidate.zero_stage == 3 else 1.0) * every
    for layer, times in step.stage.layers:
        yield from ((piece, times * gathers) for piece in step.gather(layer))
        yield from ((piece, float(times * every)) for piece in step.reduce(layer))


def _count(found: dict[str, _Sum], name: str, piece: Piece, times: float) -> None:
    figure = Figure(piece.seconds, piece.seconds, piece.seconds, "interpolated", "the cost tables")
    if name in found:
        found[name] = _joined(found[name], figure, times)
        return
    size = f"{piece.size_bytes / MEBI:,.0f} MiB per layer, {piece.group} group" if piece.size_bytes else "of this rank"
    found[name] = _Sum(figure, times, size)


def _added(*, late_s: float, tail_s: float, bubble_s: float) -> tuple[Term, ...]:
    rows = (
        ("bubble", bubble_s, "stages wait for one another"),
        ("slowest rank", late_s, "jitter × √(2 ln ranks)"),
        ("once per step", tail_s, "the loop, data, the optimizer's launches"),
    )
    return tuple(
        Term(name, Figure(seconds, seconds / 2, seconds * 2, "interpolated", "fitted"), 1.0, words)
        for name, seconds, words in rows
        if seconds
    )
