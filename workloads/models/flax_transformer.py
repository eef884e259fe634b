"""The transformer in flax, for one device: it knows nothing of meshes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax
from flax import linen as nn
from jax import Array

from options import Options

EPSILON = 1e-5
WEIGHTS = nn.initializers.normal(0.02)


class Attention(nn.Module):
    """Causal self-attention."""

    options: Options

    @nn.compact
    def __call__(self, x: Array) -> Array:
        samples, tokens, width = x.shape
        qkv = dense(self.options, 3 * width, name="qkv")(x)
        # A head's q, k and v stand side by side, so that a contiguous part of the projection is that of whole heads.
        q, k, v = jnp.moveaxis(qkv.reshape(samples, tokens, self.options.heads, 3, -1), 3, 0)
        mixed = jax.nn.dot_product_attention(q, k, v, is_causal=True)
        return residual_dense(self.options, name="out")(mixed.reshape(samples, tokens, width))


class Block(nn.Module):
    """Attention, then a two-layer MLP, each added to the residual stream."""

    options: Options

    @nn.compact
    def __call__(self, x: Array) -> Array:
        dropout = nn.Dropout(self.options.dropout, deterministic=not self.options.dropout)
        x = x + dropout(Attention(self.options, name="attention")(norm(self.options, "attention_norm")(x)))
        hidden = dense(self.options, 4 * self.options.width, name="up")(norm(self.options, "mlp_norm")(x))
        return x + dropout(residual_dense(self.options, name="down")(nn.gelu(hidden, approximate=True)))


class Transformer(nn.Module):
    """Tokens in, mean loss out."""

    options: Options

    @nn.compact
    def __call__(self, tokens: Array) -> Array:
        """``[samples, seq + 1]`` tokens → the mean cross-entropy of each token given those before it."""
        options = self.options
        inputs, targets = tokens[:, :-1], tokens[:, 1:]
        embedding = embed(options, options.vocab, "embedding")
        x = embedding(inputs) + embed(options, options.seq, "positions")(jnp.arange(inputs.shape[1]))
        block = nn.remat(Block) if options.checkpoint_activations else Block
        for number in range(options.layers):
            x = block(options, name=f"blocks_{number}")(x)
        logits = embedding.attend(norm(options, "norm")(x))
        losses = optax.softmax_cross_entropy_with_integer_labels(logits.astype(jnp.float32), targets)
        return losses.mean()


def dense(options: Options, width: int, name: str, weights: nn.initializers.Initializer = WEIGHTS) -> nn.Dense:
    """A linear layer without bias."""
    return nn.Dense(width, use_bias=False, dtype=compute_dtype(options), kernel_init=weights, name=name)


def residual_dense(options: Options, name: str) -> nn.Dense:
    """The linear layer whose output is added to the residual stream."""
    return dense(options, options.width, name, nn.initializers.normal(0.02 / (2 * options.layers) ** 0.5))


def norm(options: Options, name: str) -> nn.LayerNorm:
    """Layer norm without bias."""
    return nn.LayerNorm(EPSILON, use_bias=False, dtype=compute_dtype(options), name=name)


def embed(options: Options, rows: int, name: str) -> nn.Embed:
    """A table of ``rows`` vectors."""
    return nn.Embed(rows, options.width, dtype=compute_dtype(options), embedding_init=WEIGHTS, name=name)


def compute_dtype(options: Options) -> jnp.dtype:
    """What matrices are multiplied in; the parameters themselves are fp32."""
    return jnp.dtype(jnp.bfloat16 if options.precision == "bf16" else jnp.float32)
