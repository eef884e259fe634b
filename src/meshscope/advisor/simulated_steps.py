"""The step of a candidate, piece by piece as it would run: what a forecast of time adds up, kept.

The same programs are played as for the forecast, with nothing skipped, and each piece of compute is shared out between
the operations that it is made of. What is drawn then speaks for itself: compute, hidden and exposed communication are
unions of its spans, as of any trace, while a forecast adds up what each stream does and what compute waits for. Both
agree but for collectives that run side by side, and for those that run while the host is behind.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from meshscope.advisor.architecture import Architecture
from meshscope.advisor.candidate import Candidate
from meshscope.advisor.cluster import Cluster
from meshscope.advisor.coverage import NotCovered
from meshscope.advisor.forecast import PredictedSpan, TimeForecast
from meshscope.advisor.multipliers import NEUTRAL, Multipliers
from meshscope.advisor.operations import groups, stage_counts
from meshscope.advisor.pipelines import Durations, Event, Schedule, schedule
from meshscope.advisor.prices import Prices
from meshscope.advisor.question import Question
from meshscope.advisor.ranking import Ranked
from meshscope.advisor.replay import COMPUTE, HOST, Clocks, Piece, Played, Repeat, play
from meshscope.advisor.simulated import Simulated
from meshscope.advisor.steps import Step
from meshscope.advisor.timing import by_stage, classes, contention, left_to_reduce, program, timing, usual_speed
from meshscope.intervals import Intervals, union
from meshscope.kinds import Kind
from meshscope.units import NS_PER_S

_MOST_PIECES = 40_000
"""Of one rank: a trace of more takes longer to draw and to read than anybody wants to wait."""


def simulated(question: Question, ranked: Ranked) -> Simulated:
    """A ranked candidate with its step drawn. Raises NotCovered where it has no predicted step."""
    time = drawn_step(question.architecture, ranked.candidate, question.cluster, question.multipliers)
    forecast = replace(ranked.forecast, time=time)
    return Simulated(question.architecture, ranked.candidate, question.cluster, forecast)


def drawn_step(
    architecture: Architecture, candidate: Candidate, cluster: Cluster, multipliers: Multipliers = NEUTRAL
) -> TimeForecast:
    """The forecast of time with its spans, and with the parts of the step as those spans have them."""
    told = timing(architecture, candidate, cluster, multipliers)
    steps = classes(architecture, candidate, cluster, multipliers, usual_speed(candidate, cluster), is_whole=False)
    spans = _alone(steps[0]) if candidate.pipeline == 1 else _staged(steps, candidate, steps[0].prices)
    return measured(replace(told, spans=tuple(spans)))


def measured(time: TimeForecast) -> TimeForecast:
    """With compute, hidden, exposed and idle as its spans have them, of the class that computes longest."""
    of_class: dict[int, list[PredictedSpan]] = {}
    for span in time.spans:
        of_class.setdefault(span.rank_class, []).append(span)
    mine = max(of_class.values(), key=lambda some: _busy(some, Kind.COMPUTE).total_ns)
    compute, met = _busy(mine, Kind.COMPUTE), _busy(mine, Kind.COLLECTIVE)
    whole_ns = max([round(time.step_s.value * NS_PER_S), *(span.end_ns for span in time.spans)])
    exposed_ns = (met - compute).total_ns
    rest_s = (whole_ns - compute.total_ns - exposed_ns) / NS_PER_S
    bubble_s = min(time.bubble_s, rest_s)
    return replace(
        time,
        compute_s=compute.total_ns / NS_PER_S,
        hidden_s=(met & compute).total_ns / NS_PER_S,
        exposed_s=exposed_ns / NS_PER_S,
        bubble_s=bubble_s,
        idle_s=rest_s - bubble_s,
    )


def _busy(spans: Sequence[PredictedSpan], kind: Kind) -> Intervals:
    mine = [span for span in spans if span.kind == kind]
    return union(
        np.array([span.start_ns for span in mine], dtype=np.int64),
        np.array([span.end_ns for span in mine], dtype=np.int64),
    )


def _sized(played: Repeat, times: int = 1) -> Repeat:
    """A program, played so many times; raises NotCovered where that is too long to be drawn."""
    count = _pieces(played) * times
    if count > _MOST_PIECES:
        raise NotCovered(
            f"the step of a rank has {count:,} pieces: too many to draw", hint="Ask for fewer micro-batches."
        )
    return played


def _pieces(node: Piece | Repeat) -> int:
    return max(len(node.parts), 1) if isinstance(node, Piece) else node.times * sum(map(_pieces, node.body))


# One stage


def _alone(step: Step) -> list[PredictedSpan]:
    clocks = play(_sized(program(step)), contention=contention(step.prices), is_kept=True)
    return [span for piece in _kept(clocks) for span in _span(piece, 0)]


def _kept(clocks: Clocks) -> Sequence[Played]:
    return clocks.played or ()


def _span(
    played: Played, rank_class: int, *, by_s: float = 0.0, within: tuple[float, float] = (0.0, math.inf)
) -> Iterator[PredictedSpan]:
    """What took time on a device, as far as it was played ``within`` two times; ``by_s`` later than that."""
    piece = played.piece
    if piece.lane == HOST:
        return
    is_met = piece.lane != COMPUTE
    for name, start_s, end_s in _parts(played):
        kept = max(start_s, within[0]), min(end_s, within[1])
        start_ns, end_ns = (round((at_s + by_s) * NS_PER_S) for at_s in kept)
        if end_ns > start_ns:
            yield PredictedSpan(
                rank_class,
                piece.lane,
                name,
                Kind.COLLECTIVE if is_met else Kind.COMPUTE,
                start_ns,
                end_ns,
                size_bytes=round(piece.size_bytes),
                group=piece.group if is_met else "",
                phase="" if is_met else piece.phase,
            )


def _parts(played: Played) -> Iterator[tuple[str, float, float]]:
    """The operations of a piece, one after the other; what it was slowed down by is shared out among them."""
    piece, at_s = played.piece, played.start_s
    whole_s = sum(took_s for _, took_s in piece.parts)
    if whole_s <= 0:
        yield piece.name or piece.kind or "compute", played.start_s, played.end_s
        return
    stretched = (played.end_s - played.start_s) / whole_s
    for name, took_s in piece.parts:
        yield name, at_s, at_s + took_s * stretched
        at_s += took_s * stretched


# A pipeline


@dataclass(frozen=True)
class _Stage:
    """One class of stages: its micro-batch there and back, and the stage whose turns are drawn."""

    rank_class: int
    there: Clocks
    back: Clocks
    stage: int


def _staged(steps: list[Step], candidate: Candidate, prices: Prices) -> list[PredictedSpan]:
    """Every class's micro-batches in their turns, then what happens once a step."""
    counts = stage_counts(candidate)
    firsts = [sum(counts[:number]) for number in range(len(counts))]
    found = [
        _Stage(
            number,
            play(_sized(Repeat(step.forward()), 2 * candidate.accumulate), is_kept=True),
            play(Repeat(step.backward(reduces=step.gathers)), is_kept=True),
            firsts[number],
        )
        for number, step in enumerate(steps)
    ]
    virtual = candidate.virtual if candidate.accumulate % candidate.pipeline == 0 else 1
    handover_s = prices.collective_s("send", steps[0].stage.handover_bytes, 2, groups(candidate).pipeline)
    blocking_s = handover_s if candidate.virtual == 1 else 0.0
    durations = Durations(
        by_stage([one.there.now_s / virtual + blocking_s for one in found], counts),
        by_stage([one.back.now_s / virtual + blocking_s for one in found], counts),
        handover_s - blocking_s,
    )
    played = schedule(durations, candidate.accumulate, virtual, is_folded=False)
    turns = _Turns(durations, played, blocking_s, virtual)
    spans = [span for one in found for span in _turned(one, turns, steps[0])]
    return spans + [span for one, step in zip(found, steps, strict=True) for span in _ending(one, step, played)]


@dataclass(frozen=True)
class _Turns:
    """When each stage does what; of that handing on holds it up for ``blocking_s``. A stage has ``virtual`` chunks: of
    what the stage does to a micro-batch each does one stretch."""

    durations: Durations
    played: Schedule
    blocking_s: float
    virtual: int

    def of(self, stage: int) -> Iterator[tuple[Event, float, float]]:
        """What one stage does, from when to when."""
        for event, ended_s in zip(self.played.events, self.played.ended_s, strict=True):
            if event.stage == stage:
                took = self.durations.forward_s if event.is_forward else self.durations.backward_s
                yield event, ended_s - took[stage], ended_s

    def within(self, event: Event, whole_s: float) -> tuple[float, float]:
        """Which stretch of a stage's micro-batch a turn is; backward begins with the last chunk."""
        each_s = whole_s / self.virtual
        at = event.chunk if event.is_forward else self.virtual - 1 - event.chunk
        return at * each_s, (at + 1) * each_s


def _turned(one: _Stage, turns: _Turns, step: Step) -> Iterator[PredictedSpan]:
    for event, start_s, end_s in turns.of(one.stage):
        clocks = one.there if event.is_forward else one.back
        first_s, last_s = turns.within(event, clocks.now_s)
        for piece in _kept(clocks):
            if piece.start_s < last_s and piece.end_s > first_s:
                yield from _span(piece, one.rank_class, by_s=start_s - first_s, within=(first_s, last_s))
        if turns.blocking_s and not _is_end(event, step.candidate):
            yield from _handed_on(one, event, step, end_s - turns.blocking_s, end_s)


def _is_end(event: Event, candidate: Candidate) -> bool:
    """Whether the turn's result goes to nobody: the loss, and what comes back to the first stage."""
    last = candidate.pipeline - 1
    return event.stage == (last if event.is_forward else 0)


def _handed_on(one: _Stage, event: Event, step: Step, start_s: float, end_s: float) -> Iterator[PredictedSpan]:
    phase = "forward" if event.is_forward else "backward"
    size_bytes = step.stage.handover_bytes
    piece = Piece("pipeline", end_s - start_s, "send", phase, "collective", size_bytes=size_bytes, group="pipeline")
    yield from _span(Played(piece, start_s, end_s), one.rank_class)


def _ending(one: _Stage, step: Step, played: Schedule) -> Iterator[PredictedSpan]:
    """Gradients that are left to reduce, their norm, the optimizer: once all stages are through."""
    once = play(Repeat((*left_to_reduce(step, one.back.now_s), *step.ending())), is_kept=True)
    for piece in _kept(once):
        yield from _span(piece, one.rank_class, by_s=played.end_s)
