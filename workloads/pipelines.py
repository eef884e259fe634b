"""How a pipeline cuts the model into stages, and what its schedules need. Standard library only, as ``options`` is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refusals import OptionError

if TYPE_CHECKING:
    from options import Options

SCHEDULES = ("gpipe", "1f1b", "interleaved")
CHUNKS = {"interleaved": 2}
"""Stretches of blocks that one rank holds, where they are several: it comes round to each of them in turn."""


def chunks(options: Options) -> int:
    """Stretches of blocks over all ranks."""
    return options.stages * CHUNKS.get(options.schedule, 1)


def stretches(options: Options) -> tuple[range, ...]:
    """The blocks of each chunk, in order, so that the slowest chunk takes as short as it can.

    The last chunk also has the output layer, which multiplies as much as ``vocab / (12 × width)`` blocks do: it gets
    fewer blocks, maybe none. The other chunks share the rest as evenly as whole blocks can be, the first ones more.
    """
    others, head = chunks(options) - 1, options.vocab / (12 * options.width)
    if not others:
        return (range(options.layers),)
    slowest = {own: max(-(-(options.layers - own) // others), own + head) for own in range(options.layers - others + 1)}
    last = max(own for own, longest in slowest.items() if longest == min(slowest.values()))
    few, more = divmod(options.layers - last, others)
    sizes = [few + (place < more) for place in range(others)] + [last]
    ends = [sum(sizes[: place + 1]) for place in range(len(sizes))]
    return tuple(range(end - size, end) for end, size in zip(ends, sizes, strict=True))


def check(options: Options, ranks: int) -> None:
    """OptionError where the stages cannot be filled, by ranks, by blocks or by micro-batches."""
    stages = options.stages
    if options.schedule == "none":
        if stages > 1:
            raise OptionError(f"{stages} stages are a pipeline, and this strategy is none.", "Leave --stages out.")
        return
    if stages < 2:
        raise OptionError("A pipeline of one stage passes nothing on.", "Ask for two ranks or more.")
    if stages != ranks:
        raise OptionError(
            f"A pipeline has a stage on each rank: {stages} stages do not take {ranks} ranks.",
            f"Leave --stages out, or ask for {stages} ranks.",
        )
    _check_filled(options)


def _check_filled(options: Options) -> None:
    stages, parts, micro_batches = options.stages, chunks(options), options.accumulate
    if options.devices > 1 and options.layers % stages:  # JAX: one program for all devices
        raise OptionError(
            f"All devices run one program, and {options.layers} blocks do not divide into {stages} stages.",
            f"Use --layers {-(-options.layers // stages) * stages}.",
        )
    if options.layers < parts - 1:
        raise OptionError(
            f"{parts} parts of a pipeline need {parts - 1} blocks or more; the model has {options.layers}.",
            f"Use --layers {parts}, or fewer ranks.",
        )
    if options.schedule != "gpipe" and micro_batches < stages:
        raise OptionError(
            f"{options.schedule} needs a micro-batch for each of {stages} stages; there are {micro_batches}.",
            f"Use --accumulate {stages} or more, or the schedule gpipe, which takes any number.",
        )
    rounds = max(1, micro_batches // stages)
    if options.schedule == "interleaved" and micro_batches % rounds:
        raise OptionError(
            f"Interleaved, {micro_batches} micro-batches do not divide into {rounds} rounds over {stages} stages.",
            f"Use --accumulate {rounds * stages}.",
        )
