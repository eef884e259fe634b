"""The transformer as a mixture of experts in flax, for one device: it knows nothing of meshes."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import optax
from flax import linen as nn
from jax import Array

from models.flax_transformer import WEIGHTS, Attention, compute_dtype, dense, embed, norm
from options import Options

BALANCE = 0.01
"""What uneven use of the experts weighs in the loss (Fedus et al. 2021)."""


class Experts(nn.Module):
    """Two-layer MLPs side by side, each for the rows that were sent to it."""

    options: Options

    def __call__(self, rows: Array, counts: Array) -> Array:
        """``[rows, width]`` in the order of their experts, and ``[experts]`` how many each has → as many rows."""
        return self.compute(rows, counts, self.options.experts)

    @nn.compact
    def compute(self, rows: Array, counts: Array, experts: int) -> Array:
        """The same of as many experts as this device holds. Rows beyond the counts belong to none."""
        options, dtype, width = self.options, compute_dtype(self.options), self.options.width
        residual = nn.initializers.normal(0.02 / (2 * options.layers) ** 0.5)
        up = self.param("up", WEIGHTS, (experts, width, 4 * width)).astype(dtype)
        down = self.param("down", residual, (experts, 4 * width, width)).astype(dtype)
        hidden = nn.gelu(jax.lax.ragged_dot(rows.astype(dtype), up, counts), approximate=True)
        return jax.lax.ragged_dot(hidden, down, counts)


class Mixture(nn.Module):
    """A router, and the experts that it picks for each token."""

    options: Options
    make_experts: Callable[..., nn.Module] = Experts

    @nn.compact
    def __call__(self, x: Array) -> tuple[Array, Array]:
        """``[samples, tokens, width]`` → the same of the experts' outputs, and how unevenly they were used."""
        experts, top_k = self.options.experts, self.options.top_k
        scores = jax.nn.softmax(dense(self.options, experts, name="router")(x).astype(jnp.float32))
        weights, chosen = jax.lax.top_k(scores, top_k)
        # Rows go to the experts in the order of these, and come back into the order of their tokens.
        expert = chosen.ravel()
        order = jnp.argsort(expert)
        counts = jax.nn.one_hot(expert, experts, dtype=jnp.int32).sum(0)
        rows = x.reshape(-1, x.shape[-1])[order // top_k]
        made = self.make_experts(self.options, name="experts")(rows, counts)[jnp.argsort(order)]
        weights = weights / weights.sum(-1, keepdims=True)
        mixed = (made.reshape(*chosen.shape, -1) * weights[..., None]).sum(2)
        return mixed.astype(x.dtype), unevenness(scores, chosen)


def unevenness(scores: Array, chosen: Array) -> Array:
    """1 where all experts are used alike, up to their number; of each sequence by itself, so that slices add up.

    ``scores`` are ``[samples, tokens, experts]``, of which ``chosen``, ``[samples, tokens, top_k]``, were picked.
    DeepSeek-V3, equations 17 to 20.
    """
    experts, top_k = scores.shape[-1], chosen.shape[-1]
    picked = jax.nn.one_hot(chosen, experts).sum(2).mean(1) * experts / top_k
    return (picked * scores.mean(1)).sum(-1).mean()


class MoeBlock(nn.Module):
    """Attention, then a mixture of experts, each added to the residual stream."""

    options: Options
    make_experts: Callable[..., nn.Module] = Experts

    @nn.compact
    def __call__(self, x: Array) -> tuple[Array, Array]:
        dropout = nn.Dropout(self.options.dropout, deterministic=not self.options.dropout)
        x = x + dropout(Attention(self.options, name="attention")(norm(self.options, "attention_norm")(x)))
        mixed, uneven = Mixture(self.options, self.make_experts, name="mixture")(norm(self.options, "mlp_norm")(x))
        return x + dropout(mixed), uneven


class MoeTransformer(nn.Module):
    """Tokens in, mean loss out. ``make_experts`` makes what takes the rows of a block's experts."""

    options: Options
    make_experts: Callable[..., nn.Module] = Experts

    @nn.compact
    def __call__(self, tokens: Array) -> Array:
        """``[samples, seq + 1]`` tokens → the mean cross-entropy of each token given those before it, and balance."""
        options = self.options
        inputs, targets = tokens[:, :-1], tokens[:, 1:]
        embedding = embed(options, options.vocab, "embedding")
        x = embedding(inputs) + embed(options, options.seq, "positions")(jnp.arange(inputs.shape[1]))
        block, uneven = nn.remat(MoeBlock) if options.checkpoint_activations else MoeBlock, jnp.zeros(())
        for number in range(options.layers):
            x, more = block(options, self.make_experts, name=f"blocks_{number}")(x)
            uneven = uneven + more
        logits = embedding.attend(norm(options, "norm")(x))
        losses = optax.softmax_cross_entropy_with_integer_labels(logits.astype(jnp.float32), targets)
        return losses.mean() + BALANCE * uneven / options.layers
