"""Models of images in torch, for one device: they know nothing of ranks."""

from __future__ import annotations

from math import gcd

from torch import Tensor, nn
from torch.nn import functional

from options import Options
from sizes import CHANNELS, STAGES, WIDENING, linears

_GROUPS = 32


class Bottleneck(nn.Module):
    """1 × 1, 3 × 3 and 1 × 1 convolutions around a shortcut."""

    def __init__(self, inputs: int, middle: int, stride: int) -> None:
        super().__init__()
        outputs = middle * WIDENING
        self.reduce, self.reduce_norm = _conv(inputs, middle, 1), _norm(middle)
        self.spread, self.spread_norm = _conv(middle, middle, 3, stride), _norm(middle)
        self.widen, self.widen_norm = _conv(middle, outputs, 1), _norm(outputs)
        # A block begins as its shortcut (Goyal et al. 2017).
        nn.init.zeros_(self.widen_norm.weight)
        self.shortcut = nn.Identity()
        if inputs != outputs:
            self.shortcut = nn.Sequential(_conv(inputs, outputs, 1, stride), _norm(outputs))

    def forward(self, x: Tensor) -> Tensor:
        made = functional.relu(self.reduce_norm(self.reduce(x)))
        made = functional.relu(self.spread_norm(self.spread(made)))
        return functional.relu(self.shortcut(x) + self.widen_norm(self.widen(made)))


class ResNet50(nn.Module):
    """Images and their classes in, mean loss out."""

    def __init__(self, options: Options) -> None:
        super().__init__()
        inputs = options.width
        self.stem = nn.Sequential(_conv(CHANNELS, inputs, 7, 2), _norm(inputs), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        self.blocks = nn.ModuleList()
        for number, (count, first_stride) in enumerate(STAGES):
            middle = options.width * 2**number
            for block in range(count):
                self.blocks.append(Bottleneck(inputs, middle, first_stride if block == 0 else 1))
                inputs = middle * WIDENING
        self.dropout = nn.Dropout(options.dropout) if options.dropout else nn.Identity()
        self.classes = nn.Linear(inputs, options.classes)

    def forward(self, images: Tensor, classes: Tensor) -> Tensor:
        """``[samples, side, side, 3]`` and ``[samples]`` → the mean cross-entropy."""
        x = self.stem(images.permute(0, 3, 1, 2))
        for block in self.blocks:
            x = block(x)
        return functional.cross_entropy(self.classes(self.dropout(x.mean((2, 3)))).float(), classes)


class Hidden(nn.Module):
    """A linear layer and what makes it none."""

    def __init__(self, inputs: int, outputs: int, dropout: float) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.dropout = nn.Dropout(dropout) if dropout else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(functional.gelu(self.linear(x), approximate="tanh"))


class Mlp(nn.Module):
    """Images and their classes in, mean loss out."""

    def __init__(self, options: Options) -> None:
        super().__init__()
        *hidden, (width, classes) = linears(options)
        self.blocks = nn.ModuleList(Hidden(inputs, outputs, options.dropout) for inputs, outputs in hidden)
        self.classes = nn.Linear(width, classes)

    def forward(self, images: Tensor, classes: Tensor) -> Tensor:
        """``[samples, side, side, 3]`` and ``[samples]`` → the mean cross-entropy."""
        x = images.flatten(1)
        for block in self.blocks:
            x = block(x)
        return functional.cross_entropy(self.classes(x).float(), classes)


def _conv(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Conv2d:
    conv = nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)
    nn.init.kaiming_normal_(conv.weight, mode="fan_out", nonlinearity="relu")
    return conv


def _norm(channels: int) -> nn.GroupNorm:
    return nn.GroupNorm(gcd(_GROUPS, channels), channels)
