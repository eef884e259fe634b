"""How long a step takes that nobody has run: operations, their costs, and a replay of one rank of each class."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from meshscope.advisor.architecture import Architecture
from meshscope.advisor.arithmetic import step_terms
from meshscope.advisor.candidate import Candidate
from meshscope.advisor.cluster import Cluster
from meshscope.advisor.constants import Speed, speed, spread_frac
from meshscope.advisor.coverage import NotCovered
from meshscope.advisor.cpu_ranks import cpu_timing, is_cpu
from meshscope.advisor.figures import Figure
from meshscope.advisor.forecast import TimeForecast
from meshscope.advisor.multipliers import NEUTRAL, Multipliers
from meshscope.advisor.operations import groups, stage_counts, stages
from meshscope.advisor.pipelines import Durations, Schedule, schedule
from meshscope.advisor.prices import NARROW, Prices
from meshscope.advisor.replay import COMPUTE, HOST, Clocks, Piece, Repeat, play
from meshscope.advisor.stacks import of
from meshscope.advisor.steps import Step


def timing(
    architecture: Architecture, candidate: Candidate, cluster: Cluster, multipliers: Multipliers = NEUTRAL
) -> TimeForecast:
    """The time of one step, and what it is made of. Raises NotCovered with the reason."""
    if is_cpu(cluster):
        return cpu_timing(architecture, candidate, cluster, multipliers)
    known = usual_speed(candidate, cluster)
    found = forecast_of(architecture, candidate, cluster, multipliers, known)
    late_s, tail_s = beside(found.step_s.value, candidate, known, multipliers)
    slowest = max(classes(architecture, candidate, cluster, multipliers, known), key=lambda step: step.stage.parameters)
    return replace(found, terms=step_terms(slowest, late_s=late_s, tail_s=tail_s, bubble_s=found.bubble_s))


def usual_speed(candidate: Candidate, cluster: Cluster) -> Speed:
    """The frozen constants for this software on these devices."""
    return speed(of(candidate.stack).family, cluster.device.family)


def forecast_of(
    architecture: Architecture, candidate: Candidate, cluster: Cluster, multipliers: Multipliers, known: Speed
) -> TimeForecast:
    """As `timing`, by constants of one's own (a fit tries many)."""
    _check(architecture, candidate, cluster)
    steps = classes(architecture, candidate, cluster, multipliers, known)
    prices = steps[0].prices
    parts = _single(steps[0]) if candidate.pipeline == 1 else _pipelined(steps, candidate, prices)
    return _forecast(architecture, candidate, cluster, prices, parts)


def classes(
    architecture: Architecture,
    candidate: Candidate,
    cluster: Cluster,
    multipliers: Multipliers,
    known: Speed,
    *,
    is_whole: bool = True,
) -> list[Step]:
    """One of each class of stages; compute is one piece, which without ``is_whole`` tells the operations in it."""
    numerics = candidate.numerics
    ran = of(candidate.stack)
    prices = Prices(cluster, numerics.compute, known, multipliers, "row" in numerics.name, ran.attention_kernel)
    return [Step(stage, candidate, ran, prices, is_whole) for stage in stages(architecture, candidate)]


def beside(step_s: float, candidate: Candidate, known: Speed, multipliers: Multipliers) -> tuple[float, float]:
    """Of a whole step: how late the slowest rank is, and what happens once beside the model."""
    tail_s = known.tail_s * multipliers.step_tail
    late = known.jitter_frac * math.sqrt(2 * math.log(max(candidate.devices, 1)))
    return (step_s - tail_s) * late / (1 + late), tail_s


_MOST_LAYERS, _MOST_MICRO_BATCHES, _MOST_STAGES = 10_000, 1_000_000, 1024
"""Beyond them nobody has trained, and playing the step would take for ever."""


def _check(architecture: Architecture, candidate: Candidate, cluster: Cluster) -> None:
    chunks = candidate.pipeline * candidate.virtual
    if not 0 < architecture.layers <= _MOST_LAYERS or candidate.accumulate > _MOST_MICRO_BATCHES:
        raise NotCovered("a model of so many layers, or a step of so many micro-batches, is unheard of")
    # The embedding and the head may stand for a layer each (Llama 3: 126 layers in 128 chunks).
    if chunks > 1 and chunks > min(architecture.layers + 2, _MOST_STAGES):
        raise NotCovered(f"{architecture.layers} layers do not fill {chunks} stages of a pipeline")
    compute = candidate.numerics.compute
    if not cluster.device.peak_flops_per_s.get(compute):
        raise NotCovered(f"what {cluster.device.name} multiplies in {compute} is not known")
    if candidate.tokens_per_step <= 0:
        raise NotCovered("a step of no tokens has no time")


@dataclass(frozen=True)
class _Parts:
    """In seconds, of the class that ends last."""

    step_s: float
    compute_s: float
    bubble_s: float
    host_s: float
    exposed_by: dict[str, float]
    hidden_s: float


def _single(step: Step) -> _Parts:
    return _parts(play(program(step), contention=contention(step.prices)), 1.0)


def program(step: Step) -> Repeat:
    """Of a rank whose model is in one stage."""
    plain = Repeat((*step.forward(), *step.backward(reduces=step.gathers)), step.candidate.accumulate - 1)
    last = (*step.forward(), *step.backward(reduces=True))
    late = () if step.overlaps else left_to_reduce(step, 0.0)
    return Repeat((plain, *last, *late, *step.ending()))


def contention(prices: Prices) -> float:
    """How much longer compute takes beside a collective."""
    return 1.0 + (prices.speed.contention - 1.0) * prices.multipliers.contention


def _parts(clocks: Clocks, times: float) -> _Parts:
    exposed = {name: waited * times for name, waited in clocks.waited.items() if name != HOST}
    busy = sum(seconds for lane, seconds in clocks.busy.items() if lane not in (COMPUTE, HOST)) * times
    end = clocks.now_s * times
    tail = max(0.0, clocks.now_s - clocks.lanes.get(COMPUTE, 0.0)) * times
    if tail:
        last = max((at, lane) for lane, at in clocks.lanes.items() if lane != HOST)[1]
        exposed[last] = exposed.get(last, 0.0) + tail
    compute_s = clocks.busy.get(COMPUTE, 0.0) * times
    shown = sum(exposed.values())
    return _Parts(end, compute_s, 0.0, max(0.0, end - compute_s - shown), exposed, max(0.0, busy - shown))


def _pipelined(steps: list[Step], candidate: Candidate, prices: Prices) -> _Parts:
    """Every class's micro-batch is replayed; the schedule puts them together; what happens once a step comes on top."""
    there = [play(Repeat(step.forward())) for step in steps]
    back = [play(Repeat(step.backward(reduces=step.gathers))) for step in steps]
    counts = stage_counts(candidate)
    virtual = candidate.virtual if candidate.accumulate % candidate.pipeline == 0 else 1
    handover_s = prices.collective_s("send", steps[0].stage.handover_bytes, 2, groups(candidate).pipeline)
    blocking_s = handover_s if candidate.virtual == 1 else 0.0
    durations = Durations(
        by_stage([(clocks.now_s / virtual) + blocking_s for clocks in there], counts),
        by_stage([(clocks.now_s / virtual) + blocking_s for clocks in back], counts),
        handover_s - blocking_s,
    )
    played = schedule(durations, candidate.accumulate, virtual)
    return _joined(steps, there, back, played, candidate)


def by_stage(values: list[float], counts: tuple[int, ...]) -> tuple[float, ...]:
    """What is known of each class of stages, for every stage."""
    return tuple(value for value, many in zip(values, counts, strict=True) for _ in range(many))


def _joined(
    steps: list[Step], there: list[Clocks], back: list[Clocks], played: Schedule, candidate: Candidate
) -> _Parts:
    many = candidate.accumulate
    slowest = max(range(len(steps)), key=lambda number: there[number].now_s + back[number].now_s)
    forward, backward = _parts(there[slowest], many), _parts(back[slowest], many)
    exposed = {
        name: forward.exposed_by.get(name, 0.0) + backward.exposed_by.get(name, 0.0)
        for name in (*forward.exposed_by, *backward.exposed_by)
    }
    compute_s, hidden_s = forward.compute_s + backward.compute_s, forward.hidden_s + backward.hidden_s
    once = play(Repeat((*left_to_reduce(steps[slowest], backward.step_s / many), *steps[slowest].ending())))
    ended = _parts(once, 1.0)
    for name, seconds in ended.exposed_by.items():
        exposed[name] = exposed.get(name, 0.0) + seconds
    whole = played.end_s + ended.step_s
    compute_s += ended.compute_s
    idle = forward.host_s + backward.host_s + ended.host_s
    bubble = max(0.0, whole - compute_s - sum(exposed.values()) - idle)
    return _Parts(whole, compute_s, bubble, idle, exposed, hidden_s + ended.hidden_s)


def left_to_reduce(step: Step, backward_s: float) -> tuple[Piece, ...]:
    """Gradients of the whole stage, of which the last micro-batch's backward hides what it can."""
    if step.gathers:
        return ()
    stage = step.stage
    layers = [
        *((layer, many) for layer, many in stage.layers),
        *((each, 1) for each in (stage.first, stage.last) if each),
    ]
    seconds: dict[str, float] = {}
    for layer, many in layers:
        for piece in step.reduce(layer):
            seconds[piece.lane] = seconds.get(piece.lane, 0.0) + many * piece.seconds
    beside = backward_s * 0.9 if step.overlaps else 0.0
    return tuple(
        Piece(lane, max(0.1 * took, took - beside), "reduce", "reduced", "collective", ((COMPUTE, 0),), "reduced")
        for lane, took in seconds.items()
    )


def _forecast(
    architecture: Architecture, candidate: Candidate, cluster: Cluster, prices: Prices, parts: _Parts
) -> TimeForecast:
    known = prices.speed
    late_s = parts.step_s * known.jitter_frac * math.sqrt(2 * math.log(max(candidate.devices, 1)))
    tail_s = known.tail_s * prices.multipliers.step_tail
    step_s = parts.step_s + late_s + tail_s
    numerics, shown_s = candidate.numerics, sum(parts.exposed_by.values())
    cold_frac = spread_frac(
        known,
        is_mixture=architecture.is_mixture,
        is_narrow=numerics.compute in NARROW,
        exposed_frac=min(1.0, shown_s / step_s),
    )
    # Of a machine that was calibrated on, what that left open is known better than what is off among all machines.
    wide = 1.0 + (prices.multipliers.provenance.residual_frac or cold_frac)
    tokens = candidate.tokens_per_step
    peak = cluster.device.peak_flops_per_s[numerics.compute]
    return TimeForecast(
        step_s=Figure(step_s, step_s / wide, step_s * wide, "interpolated", "replayed operations"),
        compute_s=parts.compute_s,
        exposed_s=shown_s,
        bubble_s=parts.bubble_s,
        idle_s=parts.host_s + late_s + tail_s,
        hidden_s=parts.hidden_s,
        exposed_by=parts.exposed_by,
        mfu_frac=architecture.flop_per_token(candidate.seq_len) * tokens / step_s / candidate.devices / peak,
        tokens_per_s=tokens / step_s,
    )
