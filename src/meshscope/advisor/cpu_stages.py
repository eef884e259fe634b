"""A pipeline of CPU ranks: which blocks a stage has, in which order it takes micro-batches, and when it is done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from meshscope.advisor.architecture import Architecture

Turn = tuple[str, int]
"""``F`` or ``B``, and the number of the micro-batch."""


def blocks_of_stages(model: Architecture, stages: int) -> tuple[int, ...]:
    """As the bundled pipelines cut a model: the last stage has the output layer too, which multiplies as much as some
    blocks do, so it gets as few as make the slowest stage quickest; the others share the rest evenly."""
    others, head = stages - 1, model.vocab / (12 * model.d_model)
    if not others:
        return (model.layers,)
    slowest = {own: max(-(-(model.layers - own) // others), own + head) for own in range(model.layers - others + 1)}
    last = max(own for own, longest in slowest.items() if longest == min(slowest.values()))
    few, more = divmod(model.layers - last, others)
    return (*(few + (place < more) for place in range(others)), last)


def turns(schedule: str, stage: int, stages: int, micro_batches: int) -> tuple[Turn, ...]:
    """GPipe (Huang et al. 2019): all forward, then all backward. 1F1B (Narayanan et al. 2019, PipeDream): after as many
    forward as there are stages behind it, one backward for each forward."""
    ahead = micro_batches if schedule == "gpipe" else min(stages - stage - 1, micro_batches)
    order: list[Turn] = [("F", number) for number in range(ahead)]
    for number in range(micro_batches - ahead):
        order += [("F", ahead + number), ("B", number)]
    order += [("B", number) for number in range(micro_batches - ahead, micro_batches)]
    return tuple(order)


@dataclass(frozen=True)
class Course:
    """Per stage: when it is done, and for how long it worked; seconds."""

    end_s: tuple[float, ...]
    busy_s: tuple[float, ...]


def course(schedule: str, micro_batches: int, forward_s: Sequence[float], backward_s: Sequence[float],
           pass_s: float) -> Course:  # fmt: skip
    """Each stage works through its turns; a turn waits for the stage before it (behind it, going back), ``pass_s``."""
    stages = len(forward_s)
    orders = [turns(schedule, stage, stages, micro_batches) for stage in range(stages)]
    done: dict[tuple[int, str, int], float] = {}
    free, at = [0.0] * stages, [0] * stages
    while any(at[stage] < len(orders[stage]) for stage in range(stages)):
        for stage in range(stages):
            while at[stage] < len(orders[stage]):
                what, number = orders[stage][at[stage]]
                ready = _ready_s(done, stage, stages, what, number, pass_s)
                if ready is None:
                    break
                took = forward_s[stage] if what == "F" else backward_s[stage]
                free[stage] = max(free[stage], ready) + took
                done[stage, what, number] = free[stage]
                at[stage] += 1
    busy = [micro_batches * (forward + backward) for forward, backward in zip(forward_s, backward_s, strict=True)]
    return Course(tuple(free), tuple(busy))


def _ready_s(
    done: dict[tuple[int, str, int], float], stage: int, stages: int, what: str, number: int, pass_s: float
) -> float | None:
    """When what the turn needs has come; None while it has not."""
    if what == "F":
        before = done.get((stage - 1, "F", number)) if stage else -pass_s
    elif stage == stages - 1:
        before, pass_s = done.get((stage, "F", number)), 0.0
    else:
        before = done.get((stage + 1, "B", number))
    return None if before is None else before + pass_s
