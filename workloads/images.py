"""Where images and their classes come from: drawn at random, or scikit-learn's hand-written digits."""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from options import Options
from refusals import OptionError
from sizes import CHANNELS

Images = NDArray[np.float32]
Classes = NDArray[np.int32]


def samples(options: Options, step: int, places: range) -> tuple[Images, Classes]:
    """``[samples, side, side, 3]`` and ``[samples]``: images around zero, and what each shows."""
    of = _digit if options.data == "digits" else _drawn
    pairs = [of(options, step, place) for place in places]
    return np.stack([image for image, _ in pairs]), np.array([shown for _, shown in pairs], dtype=np.int32)


def _drawn(options: Options, step: int, place: int) -> tuple[Images, int]:
    """Noise, brighter for higher classes, which are rarer: both can be learned, so the loss falls."""
    rng = np.random.default_rng((options.seed, step, place))
    shown = int((options.classes + 1) ** rng.random()) - 1
    noise = rng.standard_normal((options.image, options.image, CHANNELS), dtype=np.float32)
    return noise + np.float32(shown / options.classes), shown


def _digit(options: Options, step: int, place: int) -> tuple[Images, int]:
    """One of the digits, each of its 8 × 8 pixels drawn as a square."""
    pixels, shown = _digits()
    number = int(np.random.default_rng((options.seed, step, place)).integers(len(shown)))
    times = options.image // pixels.shape[1]
    image = pixels[number].repeat(times, axis=0).repeat(times, axis=1)
    return np.repeat(image[..., None], CHANNELS, axis=-1), int(shown[number])


@functools.cache
def _digits() -> tuple[Images, Classes]:
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise OptionError(
            f"--data digits needs scikit-learn, which cannot be imported here: {error}.",
            "Install it: pip install 'meshscope[data]'",
        ) from error
    found = load_digits()
    # Their brightness is 0 to 16.
    return (found.images / 8 - 1).astype(np.float32), found.target.astype(np.int32)
