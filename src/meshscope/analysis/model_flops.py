"""The arithmetic that a training step of a transformer has to do: 6 N per token, and attention.

Forward and backward multiply every parameter by every token three times, two FLOPs each: 6 N. Attention adds
``12 · layers · width · seq`` per token, its two products of queries, keys and values there and back (Chowdhery et al.
2022, PaLM, appendix B), of which a causal mask leaves half: ``6 · layers · width · seq``. Language models are causal,
and kernels skip what is masked, so the half is what is counted here; who counts the whole has higher shares, the more
so the longer the sequence. What is computed again to save memory does not count.

N is stated with the number: *all* parameters, or those that are *multiplied*, which are the non-embedding ones and the
output layer; tables that are only looked up (positions, and the token table where it is not the output layer too)
multiply nothing.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    """A transformer. Of its ``parameters``, ``embedding`` are in tables of tokens and positions, and ``uncounted``
    multiply nothing (or, of a rounded number, may not be there). Without ``layers`` attention cannot be counted.
    """

    parameters: float
    uncounted: float = 0.0
    embedding: float = 0.0
    layers: int = 0
    width: int = 0

    @property
    def multiplied(self) -> float:
        return self.parameters - self.uncounted

    @property
    def non_embedding(self) -> float:
        return self.parameters - self.embedding


@dataclass(frozen=True)
class Flops:
    """Per token, in FLOP: ``matrices`` is 6 N, ``attention`` what comes on top, by its factors in words."""

    parameters: float
    matrices: float
    attention: float
    attention_factors: str = ""

    @property
    def per_token(self) -> float:
        return self.matrices + self.attention


def flops(shape: Shape, seq: int) -> Flops:
    """By the usual convention: all parameters, and attention under a causal mask."""
    return _flops(shape.parameters, shape, seq)


def least_flops(shape: Shape, seq: int) -> Flops:
    """What cannot be left out: parameters that are multiplied, and attention under a causal mask."""
    return _flops(shape.multiplied, shape, seq)


def _flops(parameters: float, shape: Shape, seq: int) -> Flops:
    attention = float(6 * shape.layers * shape.width * seq)
    return Flops(parameters, 6 * parameters, attention, f"6 × {shape.layers} × {shape.width} × {seq}")


def tied_shape(*, layers: int, width: int, vocab: int, seq: int) -> Shape:
    """Of a transformer as the bundled workloads train it: blocks of 12·width², norms without bias, one token table that
    is the output layer too, and learned positions."""
    blocks = layers * (12 * width**2 + 2 * width)
    tokens, positions = vocab * width, seq * width
    return Shape(blocks + tokens + positions + width, positions, tokens + positions, layers, width)
