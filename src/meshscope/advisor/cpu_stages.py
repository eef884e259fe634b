"""A pipeline of CPU ranks: which blocks a stage has, in which order it takes micro-batches, and when it is done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from meshscope.advisor.architecture import Architecture

Turn = tuple[str, int, int]
"""``F`` or ``B``, which of the rank's stretches of blocks, and the number of the micro-batch."""


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


def turns(schedule: str, rank: int, ranks: int, micro_batches: int, stretches: int = 1) -> tuple[Turn, ...]:
    """GPipe (Huang et al. 2019): all forward, then all backward. 1F1B (Narayanan et al. 2019, PipeDream): after as many
    forward as there are ranks behind it, one backward for each forward. Interleaved (Narayanan et al. 2021, section
    2.2): the same in rounds of as many micro-batches as there are ranks, each round through every stretch.
    """
    total = micro_batches * stretches
    ahead = total if schedule == "gpipe" else ranks - rank - 1
    if schedule == "interleaved":
        ahead = 2 * (ranks - rank - 1) + (stretches - 1) * ranks
    ahead = min(ahead, total)
    forward = [_turn("F", number, ranks, stretches) for number in range(total)]
    backward = [_turn("B", number, ranks, stretches) for number in range(total)]
    order = forward[:ahead]
    for number in range(total - ahead):
        order += [forward[ahead + number], backward[number]]
    return (*order, *backward[total - ahead :])


def in_flight(order: Sequence[Turn]) -> int:
    """The most that has gone forward and not yet back."""
    held = most = 0
    for what, _, _ in order:
        held += 1 if what == "F" else -1
        most = max(most, held)
    return most


def _turn(what: str, number: int, ranks: int, stretches: int) -> Turn:
    if stretches == 1:
        return what, 0, number
    round_, within = divmod(number, ranks * stretches)
    stretch, micro = divmod(within, ranks)
    return what, stretch if what == "F" else stretches - 1 - stretch, round_ * ranks + micro


@dataclass(frozen=True)
class Course:
    """Per rank: when it is done, and for how long it worked; seconds."""

    end_s: tuple[float, ...]
    busy_s: tuple[float, ...]


def course(
    schedule: str, micro_batches: int, forward_s: Sequence[float], backward_s: Sequence[float], pass_s: float,
    ranks: int = 0,
) -> Course:  # fmt: skip
    """``forward_s`` and ``backward_s`` are of one micro-batch, by place: the stretches in their order, of which rank r
    has every ``ranks``-th from r on (0: each has one). Each rank works through its turns; a turn waits for the place
    before it (behind it, going back) and for ``pass_s``.
    """
    places = len(forward_s)
    ranks = ranks or places
    orders = [turns(schedule, rank, ranks, micro_batches, places // ranks) for rank in range(ranks)]
    done: dict[tuple[int, str, int], float] = {}
    free, at = [0.0] * ranks, [0] * ranks
    while any(at[rank] < len(orders[rank]) for rank in range(ranks)):
        before = sum(at)
        for rank in range(ranks):
            while at[rank] < len(orders[rank]):
                what, stretch, number = orders[rank][at[rank]]
                place = stretch * ranks + rank
                ready = _ready_s(done, place, places, what, number, pass_s)
                if ready is None:
                    break
                free[rank] = max(free[rank], ready) + (forward_s if what == "F" else backward_s)[place]
                done[place, what, number] = free[rank]
                at[rank] += 1
        if sum(at) == before:
            raise AssertionError("a pipeline's turns wait for one another")
    each = [forward + backward for forward, backward in zip(forward_s, backward_s, strict=True)]
    return Course(tuple(free), tuple(micro_batches * sum(each[rank::ranks]) for rank in range(ranks)))


def _ready_s(
    done: dict[tuple[int, str, int], float], place: int, places: int, what: str, number: int, pass_s: float
) -> float | None:
    """When what the turn needs has come; None while it has not."""
    if what == "F":
        before = done.get((place - 1, "F", number)) if place else -pass_s
    elif place == places - 1:
        before, pass_s = done.get((place, "F", number)), 0.0
    else:
        before = done.get((place + 1, "B", number))
    return None if before is None else before + pass_s
