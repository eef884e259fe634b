"""When a pipeline's stages do what: 1F1B and its interleaved form, event by event.

Schedules as Megatron-LM runs them (arXiv 2104.04473, §2.2): a stage first runs forward as many micro-batches as keep
the later ones fed, then one forward and one backward in turn, then the backwards that are left. Micro-batches beyond
what fills the pipeline repeat the same pattern and are counted, not played.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class Event:
    """One micro-batch's forward or backward of one of a stage's chunks. ``needs`` is the place in the list of what it
    waits for (-1: nothing), ``is_handed`` whether that comes from another stage."""

    stage: int
    chunk: int
    micro_batch: int
    is_forward: bool
    needs: int
    is_handed: bool


@dataclass(frozen=True)
class Schedule:
    """``end_s`` of the last stage to end; ``bubble_s`` how long each stage stands still. ``events`` and when each ended
    are those that were played."""

    end_s: float
    bubble_s: tuple[float, ...]
    events: tuple[Event, ...] = ()
    ended_s: tuple[float, ...] = ()


@dataclass(frozen=True)
class Durations:
    """Per stage and chunk in seconds, and of handing a micro-batch on, which is beside compute."""

    forward_s: tuple[float, ...]
    backward_s: tuple[float, ...]
    handover_s: float = 0.0

    @property
    def period_s(self) -> float:
        """Of the slowest stage, one micro-batch of one chunk."""
        return max(there + back for there, back in zip(self.forward_s, self.backward_s, strict=True))


def schedule(durations: Durations, micro_batches: int, virtual: int = 1, *, is_folded: bool = True) -> Schedule:
    """Of ``len(forward_s)`` stages with ``virtual`` chunks each. Interleaving wants micro-batches in whole rounds of
    the stages; what is left over is played as plain 1F1B would."""
    stages = len(durations.forward_s)
    virtual = virtual if micro_batches % stages == 0 else 1
    full = micro_batches
    if is_folded:
        few = 2 * stages
        full = min(micro_batches, few + (micro_batches - few) % stages if micro_batches > few else micro_batches)
    played = _played(durations, full, virtual)
    more = (micro_batches - full) * virtual
    if not more:
        return played
    longer = more * durations.period_s
    own = [more * (there + back) for there, back in zip(durations.forward_s, durations.backward_s, strict=True)]
    bubbles = tuple(idle + longer - does for idle, does in zip(played.bubble_s, own, strict=True))
    return Schedule(played.end_s + longer, bubbles)


@lru_cache(maxsize=512)
def _order(stages: int, stage: int, micro_batches: int, virtual: int) -> tuple[tuple[int, int, bool], ...]:
    """(chunk, micro-batch, whether forward) in the order in which a stage does them."""
    total = micro_batches * virtual
    if virtual == 1:
        ahead = min(stages - stage - 1, total)
    else:
        ahead = min((stages - stage - 1) * 2 + (virtual - 1) * stages, total)
    forwards = [_place(number, stages, virtual, is_forward=True) for number in range(total)]
    backwards = [_place(number, stages, virtual, is_forward=False) for number in range(total)]
    order = list(forwards[:ahead])
    for number in range(total - ahead):
        order += [forwards[ahead + number], backwards[number]]
    return (*order, *backwards[total - ahead :])


def _place(number: int, stages: int, virtual: int, *, is_forward: bool) -> tuple[int, int, bool]:
    """Which chunk and micro-batch come ``number``-th: rounds of as many micro-batches as there are stages."""
    if virtual == 1:
        return 0, number, is_forward
    round_, within = divmod(number, stages * virtual)
    chunk, micro = divmod(within, stages)
    return (chunk if is_forward else virtual - 1 - chunk), round_ * stages + micro, is_forward


def _played(durations: Durations, micro_batches: int, virtual: int) -> Schedule:
    stages = len(durations.forward_s)
    events = _events(stages, micro_batches, virtual)
    took = (durations.backward_s, durations.forward_s)
    handover_s = durations.handover_s
    clock, idle = [0.0] * stages, [0.0] * stages
    ends: list[float] = []
    for event in events:
        stage, needs = event.stage, event.needs
        start = clock[stage]
        if needs >= 0:
            ready = ends[needs] + (handover_s if event.is_handed else 0.0)
            if ready > start:
                idle[stage] += ready - start
                start = ready
        end = start + took[event.is_forward][stage]
        ends.append(end)
        clock[stage] = end
    end_s = max(clock)
    bubbles = tuple(end_s - at + waited for at, waited in zip(clock, idle, strict=True))
    return Schedule(end_s, bubbles, tuple(events), tuple(ends))


@lru_cache(maxsize=128)
def _events(stages: int, micro_batches: int, virtual: int) -> tuple[Event, ...]:
    """All of a schedule, each after what it needs and in its stage's own order."""
    orders = [_order(stages, stage, micro_batches, virtual) for stage in range(stages)]
    done: dict[tuple[int, int, bool], int] = {}
    at = [0] * stages
    events: list[Event] = []
    left = stages * micro_batches * virtual * 2
    while len(events) < left:
        before = len(events)
        for stage in range(stages):
            order = orders[stage]
            while at[stage] < len(order):
                chunk, micro, is_forward = order[at[stage]]
                needs, is_handed = _need(stage, chunk, stages, virtual, is_forward=is_forward)
                index = -1 if needs is None else done.get((needs[0], micro, needs[1]), -2)
                if index == -2:
                    break
                done[chunk * stages + stage, micro, is_forward] = len(events)
                events.append(Event(stage, chunk, micro, is_forward, index, is_handed))
                at[stage] += 1
        if len(events) == before:
            raise AssertionError("a pipeline's schedule waits for itself")
    return tuple(events)


def _need(
    stage: int, chunk: int, stages: int, virtual: int, *, is_forward: bool
) -> tuple[tuple[int, bool] | None, bool]:
    """Which place's forward or backward must be over, and whether its result comes from another stage."""
    place = chunk * stages + stage
    if is_forward:
        return (None, False) if place == 0 else ((place - 1, True), stages > 1)
    if place == stages * virtual - 1:
        return (place, True), False
    return (place + 1, False), stages > 1
