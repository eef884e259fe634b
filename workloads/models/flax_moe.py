"""The transformer as a mixture of experts in flax, for one device: it knows nothing of meshes.

XLA's arrays have fixed sizes, so an expert has room for so many tokens of a sequence, and those that come when it is
full are passed by: they keep what they were (GShard, Lepikhin et al. 2020). Room is of each sequence by itself, so that
it does not matter which others are on the same device.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import optax
from flax import linen as nn
from jax import Array

from models.flax_transformer import WEIGHTS, Attention, compute_dtype, dense, embed, norm
from options import Options

ROOM = 2.0
"""An expert's room for the tokens of a sequence, as a multiple of its even share of them."""
BALANCE = 0.01
"""What uneven use of the experts weighs in the loss (Fedus et al. 2021)."""


class Experts(nn.Module):
    """Two-layer MLPs side by side, each for the rows that were sent to it."""

    options: Options

    def __call__(self, rows: Array) -> Array:
        """``[experts, rows, width]`` → what each made of its own."""
        return self.compute(rows)

    @nn.compact
    def compute(self, rows: Array) -> Array:
        """By as many experts as there are parts of the rows."""
        experts, _, width = rows.shape
        dtype, residual = compute_dtype(self.options), nn.initializers.normal(0.02 / (2 * self.options.layers) ** 0.5)
        up = self.param("up", WEIGHTS, (experts, width, 4 * width)).astype(dtype)
        down = self.param("down", residual, (experts, 4 * width, width)).astype(dtype)
        hidden = nn.gelu(jnp.einsum("erw,ewh->erh", rows.astype(dtype), up), approximate=True)
        return jnp.einsum("erh,ehw->erw", hidden, down)


class Mixture(nn.Module):
    """A router, and the experts that it picks for each token."""

    options: Options
    make_experts: Callable[..., nn.Module] = Experts

    @nn.compact
    def __call__(self, x: Array) -> tuple[Array, Array]:
        """``[samples, tokens, width]`` → the same of the experts' outputs, and how unevenly they were used."""
        experts, top_k = self.options.experts, self.options.top_k
        samples, tokens, width = x.shape
        scores = jax.nn.softmax(dense(self.options, experts, name="router")(x).astype(jnp.float32))
        weights, chosen = jax.lax.top_k(scores, top_k)
        room = min(tokens, math.ceil(ROOM * tokens * top_k / experts))
        slot = slots(chosen.reshape(samples, -1), experts, room)
        sent = jax.vmap(partial(_placed, size=experts * room))(jnp.repeat(x, top_k, axis=1), slot)
        rows = sent.reshape(samples, experts, room, width).swapaxes(0, 1).reshape(experts, -1, width)
        made = self.make_experts(self.options, name="experts")(rows)
        back = made.reshape(experts, samples, room, width).swapaxes(0, 1).reshape(samples, -1, width)
        back = jax.vmap(lambda held, at: held.at[at].get(mode="fill", fill_value=0))(back, slot)
        weights = weights / weights.sum(-1, keepdims=True)
        mixed = (back.reshape(samples, tokens, top_k, width) * weights[..., None]).sum(2)
        return mixed.astype(x.dtype), unevenness(scores, chosen)


def slots(expert: Array, experts: int, room: int) -> Array:
    """Where each of a sample's picks lies: ``[samples, picks]`` experts → places among ``experts × room``, expert after
    expert. A pick that comes when its expert's room is full gets one beyond the last."""
    picked = jax.nn.one_hot(expert, experts, dtype=jnp.int32)
    place = ((picked.cumsum(1) - 1) * picked).sum(-1)
    return jnp.where(place < room, expert * room + place, experts * room)


def _placed(rows: Array, slot: Array, size: int) -> Array:
    return jnp.zeros((size, rows.shape[-1]), rows.dtype).at[slot].set(rows, mode="drop")


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
