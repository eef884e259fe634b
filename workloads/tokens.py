"""Where tokens come from: drawn at random, or the bytes of Python's own manual."""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from faults import faults
from options import Options


def samples(options: Options, step: int, places: range) -> NDArray[np.int32]:
    """``[samples, seq + 1]`` tokens. The last one of a sample is only a target.

    Only the fault ``new-lengths`` makes samples shorter.
    """
    of = _of_text if options.data == "text" else _drawn
    return np.stack([of(options, step, place) for place in places])[..., : _length(options, step) + 1]


def _length(options: Options, step: int) -> int:
    """Inputs of a sample. With new lengths every so many steps one fewer than ever before, down to one."""
    every = int(faults(options.inject).get("new-lengths", 0))
    return options.seq if not every or step % every else max(1, options.seq - step // every)


def _drawn(options: Options, step: int, place: int) -> NDArray[np.int32]:
    # Low tokens are common and high ones rare, as words are, so there is something to learn and the loss falls.
    rng = np.random.default_rng((options.seed, step, place))
    return np.asarray(options.vocab ** rng.random(options.seq + 1) - 1, dtype=np.int32)


def _of_text(options: Options, step: int, place: int) -> NDArray[np.int32]:
    """Some line of text, a byte a token, from wherever the seed, the step and the place point at."""
    text = _text()
    rng = np.random.default_rng((options.seed, step, place))
    first = int(rng.integers(max(1, len(text) - options.seq)))
    return np.resize(text[first : first + options.seq + 1], options.seq + 1).astype(np.int32)


@functools.cache
def _text() -> NDArray[np.uint8]:
    """The topics of ``help()``, which every CPython brings along: about 700 kB of English."""
    from pydoc_data.topics import topics

    return np.frombuffer("\n".join(topics[name] for name in sorted(topics)).encode(), dtype=np.uint8)
