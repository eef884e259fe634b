"""The model that is trained, as far as memory and time depend on it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Architecture:
    """A transformer. ``kv_heads`` below ``heads`` is grouped-query attention; ``d_ff`` is the width of an MLP (of one
    expert where there are ``experts``, of which a token goes to ``top_k``; ``dense_layers`` of the ``layers`` have a
    plain MLP of ``dense_d_ff`` all the same). ``is_gated``: the MLP has three matrices (SwiGLU) instead of two.
    ``is_tied``: the output layer is the token table. ``is_causal``: attention looks back only. ``positions`` is the
    length of a learned table of positions, 0 for none. ``has_biases``: linear layers and norms have biases.

    ``stated_parameters`` is what whoever ran it says (0: not said); parameters are counted from the shape, in
    `parameters`.

    ``kv_rank`` above 0 is multi-head latent attention: keys and values pass a product of that width, queries one of
    ``query_rank`` (0: none), and a head has ``rope_dim`` dimensions for positions beside its ``head_dim``.
    """

    name: str
    layers: int
    d_model: int
    heads: int
    kv_heads: int
    d_ff: int
    vocab: int
    is_gated: bool = True
    is_tied: bool = False
    is_causal: bool = True
    positions: int = 0
    has_biases: bool = False
    experts: int = 0
    top_k: int = 0
    shared_experts: int = 0
    dense_layers: int = 0
    dense_d_ff: int = 0
    head_dim: int = 0
    stated_parameters: float = 0.0
    query_rank: int = 0
    kv_rank: int = 0
    rope_dim: int = 0

    @property
    def attention_width(self) -> int:
        """Of queries, all heads together."""
        return (self.head_dim or self.d_model // self.heads) * self.heads

    @property
    def kv_width(self) -> int:
        """Of keys, all their heads together; values have the same."""
        return (self.head_dim or self.d_model // self.heads) * self.kv_heads

    @property
    def attention_parameters(self) -> int:
        """Of one layer's projections to queries, keys, values and back."""
        if self.kv_rank:
            return self._latent_parameters
        matrices = 2 * self.d_model * self.attention_width + 2 * self.d_model * self.kv_width
        return matrices + (self.attention_width + 2 * self.kv_width + self.d_model if self.has_biases else 0)

    @property
    def _latent_parameters(self) -> int:
        """DeepSeek-V2, arXiv 2405.04434, section 2.1; the norms of the narrow products with them."""
        query_width = self.heads * (self.head_dim + self.rope_dim)
        narrow = self.d_model * self.query_rank + self.query_rank + self.query_rank * query_width
        queries = narrow if self.query_rank else self.d_model * query_width
        keys = self.d_model * (self.kv_rank + self.rope_dim) + self.kv_rank
        return queries + keys + 2 * self.kv_rank * self.attention_width + self.attention_width * self.d_model

    def mlp_parameters(self, d_ff: int) -> int:
        """Of one MLP (or one expert) of this width."""
        matrices = (3 if self.is_gated else 2) * self.d_model * d_ff
        return matrices + ((2 if self.is_gated else 1) * d_ff + self.d_model if self.has_biases else 0)

    @property
    def norm_parameters(self) -> int:
        """Of one layer's two norms."""
        return (4 if self.has_biases else 2) * self.d_model

    @property
    def is_mixture(self) -> bool:
        return self.experts > 1

    def layer_parameters(self, *, is_dense: bool, is_active_only: bool = False) -> int:
        """Of one layer. Of a mixture's layer (``is_dense`` false) all experts, or only those that a token goes to."""
        own = self.attention_parameters + self.norm_parameters
        if is_dense or not self.is_mixture:
            return own + self.mlp_parameters(self.dense_d_ff or self.d_ff)
        many = (self.top_k if is_active_only else self.experts) + self.shared_experts
        return own + many * self.mlp_parameters(self.d_ff) + self.experts * self.d_model

    @property
    def mixture_layers(self) -> int:
        return self.layers - self.dense_layers if self.is_mixture else 0

    @property
    def embedding_parameters(self) -> int:
        """Of the tables that are looked up: tokens and positions."""
        return (self.vocab + self.positions) * self.d_model

    @property
    def head_parameters(self) -> int:
        """Of the output layer, where it is not the token table."""
        return 0 if self.is_tied else self.vocab * self.d_model

    @property
    def parameters(self) -> int:
        """All of them, counted from the shape."""
        return self._counted(is_active_only=False)

    @property
    def active_parameters(self) -> int:
        """Those that one token passes, the tables included."""
        return self._counted(is_active_only=True)

    def _counted(self, *, is_active_only: bool) -> int:
        plain = self.layers - self.mixture_layers
        layers = plain * self.layer_parameters(is_dense=True)
        if self.mixture_layers:
            each = self.layer_parameters(is_dense=False, is_active_only=is_active_only)
            layers += self.mixture_layers * each
        final_norm = (2 if self.has_biases else 1) * self.d_model
        return layers + self.embedding_parameters + self.head_parameters + final_norm

    def flop_per_token(self, seq_len: int) -> float:
        """Of the model, forward and backward: 6 per multiplied parameter, and attention (half of it under a causal
        mask). What is computed again to save memory does not count."""
        looked_up = self.embedding_parameters - (self.vocab * self.d_model if self.is_tied else 0)
        attention = 12.0 * self.layers * self.attention_width * seq_len * (0.5 if self.is_causal else 1.0)
        return 6.0 * (self.active_parameters - looked_up) + attention
