"""What every strategy of both frameworks trains on: tokens, images, or rows of a user's own batch."""

from __future__ import annotations

import time
from typing import Any

import images
import own
import tokens
from families import ON_IMAGES, OWN, family
from faults import faults
from options import Options, data_ranks, samples


def micro_batches(options: Options, step: int, rank: int = 0, ranks: int = 1) -> tuple[Any, ...]:
    """A rank's slice of the global batch of a step: arrays that a model takes side by side.

    Each is ``[accumulate, samples, …]``. Of tokens ``int32 [accumulate, samples, seq + 1]``; of images
    ``float32 [accumulate, samples, side, side, 3]`` and their classes, ``int32 [accumulate, samples]``; of a user's
    batch its arrays (torch's own tensors under torch). A sample depends on the seed, the step and its place in the
    global batch, and on nothing else: however many ranks share a step, together they see the same samples, and ranks
    that have a slice together see the same ones.
    """
    if rank == 0:  # One late rank is enough: the others wait for it. A JAX process draws the batches of all its ranks.
        time.sleep(faults(options.inject).get("slow-input", 0.0) / 1000)
    slices = data_ranks(options, ranks)
    first = rank * slices // ranks * (options.batch // slices)
    places = range(first, first + samples(options, rank, ranks))
    drawn = _drawn(options, step, places)
    return tuple(part.reshape(options.accumulate, -1, *part.shape[1:]) for part in drawn)


def _drawn(options: Options, step: int, places: range) -> tuple[Any, ...]:
    """The samples at some places of a step's batch: arrays of a row per sample."""
    kind = family(options)
    if kind == OWN:
        return own.rows(options, step, places)
    return images.samples(options, step, places) if kind in ON_IMAGES else (tokens.samples(options, step, places),)
