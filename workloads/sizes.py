"""How large a model is and what training on a sample computes, worked out from the options.

Standard library only, as ``options`` is: a launcher says both before anything is built.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from families import MLP, MOE, OWN, RESNET, family

if TYPE_CHECKING:
    from options import Options

CHANNELS = 3
STAGES = ((3, 1), (4, 2), (6, 2), (3, 2))
"""ResNet-50's stages: blocks, and the stride of the first. A stage is twice as wide as the one before it."""
WIDENING = 4
"""A bottleneck block's output against its middle."""
_THERE_AND_BACK = 3
_FLOP_PER_MULTIPLY_ADD = 2
_BY_FORMULA = "three times the multiply-adds of the forward pass, two FLOP each"


@dataclass(frozen=True)
class Conv:
    """A convolution without bias: channels in and out, the kernel's side, and that of the image it makes."""

    inputs: int
    outputs: int
    kernel: int
    side: int

    @property
    def weights(self) -> int:
        return self.inputs * self.outputs * self.kernel**2

    @property
    def multiply_adds(self) -> int:
        return self.weights * self.side**2


def convolutions(options: Options) -> Iterator[Conv]:
    """Those of ResNet-50 in its usual form (stride in the 3 × 3), stem first; each is followed by a norm."""
    side, inputs = _halved(options.image), options.width
    yield Conv(CHANNELS, inputs, 7, side)
    side = _halved(side)
    for number, (blocks, first_stride) in enumerate(STAGES):
        middle = options.width * 2**number
        for block in range(blocks):
            stride = first_stride if block == 0 else 1
            yield Conv(inputs, middle, 1, side)
            side = -(-side // stride)
            yield Conv(middle, middle, 3, side)
            yield Conv(middle, middle * WIDENING, 1, side)
            if block == 0:
                yield Conv(inputs, middle * WIDENING, 1, side)
            inputs = middle * WIDENING


def linears(options: Options) -> list[tuple[int, int]]:
    """The MLP's layers, from and to: ``--layers`` hidden ones, and the classes."""
    pixels, width = CHANNELS * options.image**2, options.width
    return [(pixels, width), *[(width, width)] * (options.layers - 1), (width, options.classes)]


def parameters(options: Options) -> int:
    """Trainable numbers in the model; 0 where only the model itself can tell. A tied embedding counts once."""
    kind = family(options)
    if kind == OWN:
        return 0
    if kind == MLP:
        return sum(inputs * outputs + outputs for inputs, outputs in linears(options))
    if kind == RESNET:
        features = _features(options)
        convs = sum(conv.weights + 2 * conv.outputs for conv in convolutions(options))
        return convs + (features + 1) * options.classes
    tables = (options.vocab + options.seq + 1) * options.width
    return int(options.layers * _block(options, experts=options.experts) + tables)


def active_parameters(options: Options) -> int:
    """Those that a token of a mixture of experts is multiplied by, tables included."""
    return parameters(options) - options.layers * (options.experts - options.top_k) * 8 * options.width**2


def flop_per_sample(options: Options) -> tuple[int, str]:
    """What training on a sample computes in matrix products and convolutions, and how that was counted.

    (0, "") for the transformer, whose FLOPs meshscope counts per token, and for a user's own model.
    """
    kind = family(options)
    if kind == MLP:
        return _trained(sum(inputs * outputs for inputs, outputs in linears(options))), _BY_FORMULA
    if kind == RESNET:
        last = _features(options) * options.classes
        return _trained(sum(conv.multiply_adds for conv in convolutions(options)) + last), _BY_FORMULA
    if kind == MOE:
        attention = 6 * options.layers * options.width * options.seq
        how = (
            f"6 × the {active_parameters(options):,} parameters that a token meets ({options.top_k} of "
            f"{options.experts} experts), and attention under a causal mask"
        )
        return (6 * active_parameters(options) + attention) * options.seq, how
    return 0, ""


def _features(options: Options) -> int:
    """What ResNet-50 knows of an image in the end."""
    return options.width * WIDENING * int(2 ** (len(STAGES) - 1))


def _trained(multiply_adds: int) -> int:
    return _THERE_AND_BACK * _FLOP_PER_MULTIPLY_ADD * multiply_adds


def _block(options: Options, experts: int) -> int:
    attention_and_norms, mlp = 4 * options.width**2 + 2 * options.width, 8 * options.width**2
    router = options.width * experts if experts > 1 else 0
    return attention_and_norms + experts * mlp + router


def _halved(side: int) -> int:
    return -(-side // 2)
