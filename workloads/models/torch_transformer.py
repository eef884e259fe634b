"""The transformer in torch, for one device: it knows nothing of ranks."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from options import Options

EPSILON = 1e-5


def causal_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Each token looks at itself and those before it; all are ``[samples, heads, tokens, features]``."""
    return functional.scaled_dot_product_attention(q, k, v, is_causal=True)


class Attention(nn.Module):
    """Causal self-attention. ``attend`` is what mixes values: where a rank has some of the tokens, another function."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.head_width = width // heads
        self.attend: Callable[[Tensor, Tensor, Tensor], Tensor] = causal_attention
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        # A head's q, k and v stand side by side, so that a contiguous part of the projection is that of whole heads.
        q, k, v = self.qkv(x).unflatten(-1, (-1, 3, self.head_width)).permute(3, 0, 2, 1, 4)
        return self.out(self.attend(q, k, v).transpose(1, 2).flatten(2))


class Block(nn.Module):
    """Attention, then a two-layer MLP, each added to the residual stream."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(width, EPSILON, bias=False)
        self.attention = Attention(width, heads)
        self.mlp_norm = nn.LayerNorm(width, EPSILON, bias=False)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)
        self.dropout = nn.Dropout(dropout) if dropout else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.dropout(self.attention(self.attention_norm(x)))
        return x + self.dropout(self.down(functional.gelu(self.up(self.mlp_norm(x)), approximate="tanh")))


class Transformer(nn.Module):
    """Tokens in, mean loss out."""

    def __init__(self, options: Options) -> None:
        super().__init__()
        self.checkpoint_activations = options.checkpoint_activations
        self.embedding = nn.Embedding(options.vocab, options.width)
        self.positions = nn.Embedding(options.seq, options.width)
        self.blocks = nn.ModuleList(Block(options.width, options.heads, options.dropout) for _ in range(options.layers))
        self.norm = nn.LayerNorm(options.width, EPSILON, bias=False)
        self._draw_weights(residual_std=0.02 / (2 * options.layers) ** 0.5)

    def forward(self, tokens: Tensor, places: Tensor | None = None) -> Tensor:
        """``[samples, seq + 1]`` tokens → the mean cross-entropy of each token given those before it.

        With ``places``, of the tokens that stand there alone: for a rank that has a part of each sample.
        """
        inputs, targets = tokens[:, :-1], tokens[:, 1:]
        if places is None:
            places = torch.arange(inputs.shape[1], device=inputs.device)
        else:
            inputs, targets = inputs[:, places], targets[:, places]
        x = self.embedding(inputs) + self.positions(places)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpoint_activations else block(x)
        logits = functional.linear(self.norm(x), self.embedding.weight)
        return functional.cross_entropy(logits.float().flatten(0, 1), targets.flatten())

    def _draw_weights(self, residual_std: float) -> None:
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                adds_to_residual = name.endswith(("attention.out.weight", "down.weight"))
                nn.init.normal_(parameter, std=residual_std if adds_to_residual else 0.02)
