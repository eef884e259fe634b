"""The transformer as a mixture of experts in torch, for one device: it knows nothing of ranks."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from models.torch_transformer import EPSILON, Attention
from options import Options

BALANCE = 0.01
"""What uneven use of the experts weighs in the loss (Fedus et al. 2021)."""


class Experts(nn.Module):
    """Two-layer MLPs side by side, each for the rows that were sent to it."""

    def __init__(self, experts: int, width: int, residual_std: float) -> None:
        super().__init__()
        self.up = nn.Parameter(torch.empty(experts, width, 4 * width).normal_(std=0.02))
        self.down = nn.Parameter(torch.empty(experts, 4 * width, width).normal_(std=residual_std))

    def forward(self, rows: Tensor, counts: Tensor) -> Tensor:
        """``[rows, width]`` in the order of their experts, and ``[experts]`` how many each has → as many rows."""
        parts = rows.split(counts.tolist())
        trios = zip(parts, self.up, self.down, strict=True)
        return torch.cat([functional.gelu(part @ up, approximate="tanh") @ down for part, up, down in trios])


class Mixture(nn.Module):
    """A router, and the experts that it picks for each token."""

    def __init__(self, options: Options, residual_std: float) -> None:
        super().__init__()
        self.top_k = options.top_k
        self.router = nn.Linear(options.width, options.experts, bias=False)
        self.experts = Experts(options.experts, options.width, residual_std)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """``[samples, tokens, width]`` → the same of the experts' outputs, and how unevenly they were used."""
        scores = self.router(x).float().softmax(-1)
        weights, chosen = scores.topk(self.top_k)
        # Rows go to the experts in the order of these, and come back into the order of their tokens.
        expert = chosen.flatten()
        order = expert.argsort(stable=True)
        counts = torch.bincount(expert, minlength=scores.shape[-1])
        made = self.experts(x.flatten(0, 1)[order // self.top_k], counts)[order.argsort()]
        weights = weights / weights.sum(-1, keepdim=True)
        mixed = (made.view(*chosen.shape, -1) * weights.unsqueeze(-1)).sum(2)
        return mixed.to(x.dtype), unevenness(scores, chosen)


def unevenness(scores: Tensor, chosen: Tensor) -> Tensor:
    """1 where all experts are used alike, up to their number; of each sequence by itself, so that slices add up.

    ``scores`` are ``[samples, tokens, experts]``, of which ``chosen``, ``[samples, tokens, top_k]``, were picked.
    DeepSeek-V3, equations 17 to 20.
    """
    experts, top_k = scores.shape[-1], chosen.shape[-1]
    picked = functional.one_hot(chosen, experts).sum(2).float().mean(1) * experts / top_k
    return (picked * scores.mean(1)).sum(-1).mean()


class MoeBlock(nn.Module):
    """Attention, then a mixture of experts, each added to the residual stream."""

    def __init__(self, options: Options, residual_std: float) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(options.width, EPSILON, bias=False)
        self.attention = Attention(options.width, options.heads)
        self.mlp_norm = nn.LayerNorm(options.width, EPSILON, bias=False)
        self.mixture = Mixture(options, residual_std)
        self.dropout = nn.Dropout(options.dropout) if options.dropout else nn.Identity()

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = x + self.dropout(self.attention(self.attention_norm(x)))
        mixed, uneven = self.mixture(self.mlp_norm(x))
        return x + self.dropout(mixed), uneven


class MoeTransformer(nn.Module):
    """Tokens in, mean loss out."""

    def __init__(self, options: Options) -> None:
        super().__init__()
        self.checkpoint_activations = options.checkpoint_activations
        residual_std = 0.02 / (2 * options.layers) ** 0.5
        self.embedding = nn.Embedding(options.vocab, options.width)
        self.positions = nn.Embedding(options.seq, options.width)
        self.blocks = nn.ModuleList(MoeBlock(options, residual_std) for _ in range(options.layers))
        self.norm = nn.LayerNorm(options.width, EPSILON, bias=False)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=residual_std if name.endswith("attention.out.weight") else 0.02)

    def forward(self, tokens: Tensor) -> Tensor:
        """``[samples, seq + 1]`` tokens → the mean cross-entropy of each token given those before it, and balance."""
        inputs, targets = tokens[:, :-1], tokens[:, 1:]
        x = self.embedding(inputs) + self.positions(torch.arange(inputs.shape[1], device=inputs.device))
        uneven = x.new_zeros(())
        for block in self.blocks:
            x, more = checkpoint(block, x, use_reentrant=False) if self.checkpoint_activations else block(x)
            uneven = uneven + more
        logits = functional.linear(self.norm(x), self.embedding.weight)
        loss = functional.cross_entropy(logits.float().flatten(0, 1), targets.flatten())
        return loss + BALANCE * uneven / len(self.blocks)
