"""Models of images in flax, for one device: they know nothing of meshes."""

from __future__ import annotations

from math import gcd

import jax.numpy as jnp
import optax
from flax import linen as nn
from jax import Array

from models.flax_transformer import compute_dtype
from options import Options
from sizes import STAGES, WIDENING, linears

_GROUPS = 32
_WEIGHTS = nn.initializers.variance_scaling(2.0, "fan_out", "normal")


class Bottleneck(nn.Module):
    """1 × 1, 3 × 3 and 1 × 1 convolutions around a shortcut."""

    options: Options
    middle: int
    stride: int

    @nn.compact
    def __call__(self, x: Array) -> Array:
        outputs = self.middle * WIDENING
        made = nn.relu(conv_and_norm(self.options, x, self.middle, 1, name="reduce"))
        made = nn.relu(conv_and_norm(self.options, made, self.middle, 3, self.stride, name="spread"))
        # A block begins as its shortcut (Goyal et al. 2017).
        made = conv_and_norm(self.options, made, outputs, 1, name="widen", scale=0.0)
        if x.shape[-1] != outputs:
            x = conv_and_norm(self.options, x, outputs, 1, self.stride, name="shortcut")
        return nn.relu(x + made)


class ResNet50(nn.Module):
    """Images and their classes in, mean loss out."""

    options: Options

    @nn.compact
    def __call__(self, images: Array, classes: Array) -> Array:
        """``[samples, side, side, 3]`` and ``[samples]`` → the mean cross-entropy."""
        options = self.options
        x = nn.relu(conv_and_norm(options, images, options.width, 7, 2, name="stem"))
        x = nn.max_pool(x, (3, 3), (2, 2), [(1, 1), (1, 1)])
        bottleneck = nn.remat(Bottleneck) if options.checkpoint_activations else Bottleneck
        number = 0
        for stage, (count, first_stride) in enumerate(STAGES):
            for block in range(count):
                stride = first_stride if block == 0 else 1
                x = bottleneck(options, options.width * 2**stage, stride, name=f"blocks_{number}")(x)
                number += 1
        features = nn.Dropout(options.dropout, deterministic=not options.dropout)(x.mean((1, 2)))
        return classified(options, features, classes)


class Hidden(nn.Module):
    """A linear layer and what makes it none."""

    options: Options

    @nn.compact
    def __call__(self, x: Array) -> Array:
        options = self.options
        made = nn.gelu(nn.Dense(options.width, dtype=compute_dtype(options), name="linear")(x), approximate=True)
        return nn.Dropout(options.dropout, deterministic=not options.dropout)(made)


class Mlp(nn.Module):
    """Images and their classes in, mean loss out."""

    options: Options

    @nn.compact
    def __call__(self, images: Array, classes: Array) -> Array:
        """``[samples, side, side, 3]`` and ``[samples]`` → the mean cross-entropy."""
        x = images.reshape(len(images), -1)
        hidden = nn.remat(Hidden) if self.options.checkpoint_activations else Hidden
        for number in range(len(linears(self.options)) - 1):
            x = hidden(self.options, name=f"blocks_{number}")(x)
        return classified(self.options, x, classes)


def classified(options: Options, features: Array, classes: Array) -> Array:
    """The last layer and the loss."""
    logits = nn.Dense(options.classes, dtype=compute_dtype(options), name="classes")(features)
    return optax.softmax_cross_entropy_with_integer_labels(logits.astype(jnp.float32), classes).mean()


def conv_and_norm(
    options: Options, x: Array, channels: int, kernel: int, stride: int = 1, *, name: str, scale: float = 1.0
) -> Array:
    """A convolution without bias, and its group norm."""
    dtype, padding = compute_dtype(options), [(kernel // 2, kernel // 2)] * 2
    conv = nn.Conv(
        channels, (kernel, kernel), stride, padding, use_bias=False, dtype=dtype, kernel_init=_WEIGHTS, name=name
    )
    groups, scales = gcd(_GROUPS, channels), nn.initializers.constant(scale)
    return nn.GroupNorm(groups, epsilon=1e-5, dtype=dtype, scale_init=scales, name=f"{name}_norm")(conv(x))
