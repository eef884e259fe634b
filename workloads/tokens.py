"""Where tokens come from. Every strategy of both frameworks trains on these."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from faults import faults
from options import Options, data_ranks, samples


def micro_batches(options: Options, step: int, rank: int = 0, ranks: int = 1) -> NDArray[np.int32]:
    """A rank's slice of the global batch of a step: ``[accumulate, samples, seq + 1]`` tokens.

    The last token of a sample is only a target. A sample depends on the seed, the step and its place in the global
    batch, and on nothing else: however many ranks share a step, together they see the same tokens, and ranks that have
    a slice together see the same ones. Only the fault ``new-lengths`` makes samples shorter.
    """
    if rank == 0:  # One late rank is enough: the others wait for it. A JAX process draws the batches of all its ranks.
        time.sleep(faults(options.inject).get("slow-input", 0.0) / 1000)
    slices = data_ranks(options, ranks)
    first = rank * slices // ranks * (options.batch // slices)
    drawn = [_sample(options, step, place) for place in range(first, first + samples(options, rank, ranks))]
    return np.stack(drawn).reshape(options.accumulate, -1, options.seq + 1)[..., : _length(options, step) + 1]


def _length(options: Options, step: int) -> int:
    """Inputs of a sample. With new lengths every so many steps one fewer than ever before, down to one."""
    every = int(faults(options.inject).get("new-lengths", 0))
    return options.seq if not every or step % every else max(1, options.seq - step // every)


def _sample(options: Options, step: int, place: int) -> NDArray[np.int32]:
    # Low tokens are common and high ones rare, as words are, so there is something to learn and the loss falls.
    rng = np.random.default_rng((options.seed, step, place))
    return np.asarray(options.vocab ** rng.random(options.seq + 1) - 1, dtype=np.int32)
