"""When a pipeline's stages do what: 1F1B and its interleaved form, event by event.

Schedules as Megatron-LM runs them (arXiv 2104.04473, §2.2): a stage first runs forward as many micro-batches as keep
the later ones fed, then one forward and one backward in turn, then the backwards that are left. Micro-batches beyond
what fills the pipeline repeat the same pattern and are counted, not played.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True)
class Slot:
    """One micro-batch's forward or backward of one of a stage's chunks."""

    stage: int
    chunk: int
    micro_batch: int
    is_forward: bool
    start_s: float
    end_s: float


@dataclass(frozen=True)
class Schedule:
    """``end_s`` of the last stage to end; ``bubble_s`` how long each stage stands still."""

    end_s: float
    bubble_s: tuple[float, ...]
    slots: tuple[Slot, ...] = ()


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
        few = 3 * stages
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
    orders = [_order(stages, stage, micro_batches, virtual) for stage in range(stages)]
    # When each forward and backward ended, by (global chunk, micro-batch).
    done: tuple[dict[tuple[int, int], float], dict[tuple[int, int], float]] = ({}, {})
    at, clock, idle = [0] * stages, [0.0] * stages, [0.0] * stages
    slots: list[Slot] = []
    left = stages * micro_batches * virtual * 2
    while left:
        before = left
        for stage in range(stages):
            order = orders[stage]
            while at[stage] < len(order):
                chunk, micro, is_forward = order[at[stage]]
                ready = _ready(done, stage, chunk, micro, stages, virtual, durations.handover_s, is_forward=is_forward)
                if ready is None:
                    break
                start = max(clock[stage], ready)
                idle[stage] += start - clock[stage]
                end = start + (durations.forward_s if is_forward else durations.backward_s)[stage]
                done[0 if is_forward else 1][chunk * stages + stage, micro] = end
                slots.append(Slot(stage, chunk, micro, is_forward, start, end))
                clock[stage], left, at[stage] = end, left - 1, at[stage] + 1
        if left == before:
            raise AssertionError("a pipeline's schedule waits for itself")
    end_s = max(clock)
    return Schedule(end_s, tuple(end_s - c + i for c, i in zip(clock, idle, strict=True)), tuple(slots))


def _ready(
    done: tuple[dict[tuple[int, int], float], dict[tuple[int, int], float]],
    stage: int,
    chunk: int,
    micro: int,
    stages: int,
    virtual: int,
    handover_s: float,
    *,
    is_forward: bool,
) -> float | None:
    """When what it needs is there; None where that has not been played yet."""
    place = chunk * stages + stage
    if is_forward:
        if place == 0:
            return 0.0
        ended = done[0].get((place - 1, micro))
    elif place == stages * virtual - 1:
        return done[0].get((place, micro))
    else:
        ended = done[1].get((place + 1, micro))
    return None if ended is None else ended + handover_s
