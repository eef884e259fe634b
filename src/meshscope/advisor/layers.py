"""The operations of one layer, forward and backward: what is multiplied, moved, exchanged and computed again."""

from __future__ import annotations

from dataclasses import dataclass, replace

from meshscope.advisor.architecture import Architecture
from meshscope.advisor.candidate import Candidate
from meshscope.advisor.constants import PASSES, Passes
from meshscope.advisor.operation import Layer, Operation, groups
from meshscope.advisor.stacks import Stack

_USUAL_NODE = 8
"""Devices in a node, as far as experts' traffic is spared between nodes."""


_HIDDEN_EXPERTS_FRAC = 0.5
"""Of experts' traffic between nodes, where one micro-batch's is sent while another one's layers compute (Megatron
Core's overlap of expert-parallel communication, DeepSeek's DualPipe): as far as both are about as long."""


@dataclass(frozen=True)
class Layers:
    """``tokens`` are of one micro-batch on one rank, before tensor parallelism divides anything."""

    model: Architecture
    laid: Candidate
    ran: Stack

    @property
    def tokens(self) -> float:
        return self.laid.micro_batch * self.laid.seq_len / self.laid.context * self.filled_frac

    @property
    def filled_frac(self) -> float:
        """Of a sequence, what is no padding: of a corpus of documents for encoders, pairs of sentences are 290 tokens
        long on average (Wikipedia and books in BERT's second phase), and padded to the next 64."""
        if self.model.is_causal or not self.ran.drops_padding:
            return 1.0
        return min(1.0, 322 / self.laid.seq_len)

    @property
    def element_bytes(self) -> float:
        return 4.0 if self.laid.numerics.compute in ("fp32", "tf32") else 2.0

    @property
    def passes(self) -> Passes:
        """Models with gated MLPs have RMSNorm and rotary positions, which eager code writes out."""
        fusion = "compiled" if self.laid.is_compiled and self.ran.fusion == "eager" else self.ran.fusion
        return PASSES["eager rms" if fusion == "eager" and self.model.is_gated else fusion]

    @property
    def spread_tokens(self) -> float:
        """Tokens that a rank's element-wise work between the tensor-parallel regions sees."""
        return self.tokens / (self.laid.tensor if self.laid.is_sequence_parallel else 1)

    @property
    def is_narrow(self) -> bool:
        return self.laid.numerics.compute in ("fp8", "fp4")

    def cast(self, elements: float) -> tuple[Operation, ...]:
        """Before products in fp8: what is read in 16 bits is written in 8, and once more turned for the product by
        weight (Transformer Engine; Hopper's fp8 products take one layout only)."""
        return (Operation("cast", "memory", size_bytes=4.0 * elements, launches=2),) if self.is_narrow else ()

    def product(self, name: str, n: float, k: float, *, tokens: float = 0.0, times: int = 1) -> Operation:
        m = max(1, round(tokens or self.tokens))
        return Operation(name, "matmul", m=m, n=max(1, round(n)), k=max(1, round(k)), times=times)

    def moved(self, name: str, elements: float, launches: int) -> Operation:
        return Operation(name, "memory", size_bytes=elements * self.element_bytes, launches=launches)

    # ---- layers

    def layer_kinds(self) -> tuple[tuple[Layer, int], ...]:
        mixture = self.model.mixture_layers
        plain = self.model.layers - mixture
        kinds = [(self.layer(is_dense=True), plain)] if plain else []
        return (*kinds, (self.layer(is_dense=False), mixture)) if mixture else tuple(kinds)

    def layer(self, *, is_dense: bool) -> Layer:
        forward = (*self.attention_block(), *(self.dense_block() if is_dense else self.mixture_block()))
        shared, experts = self.layer_parameters(is_dense=is_dense), 0.0 if is_dense else self.expert_parameters()
        there, back = self.held(shared + experts)
        return Layer(
            "layer" if is_dense else "mixture layer",
            (*there, *forward),
            (*self.again(forward), *self.reversed(forward), *back),
            shared,
            experts,
        )

    def held(self, parameters: float) -> tuple[tuple[Operation, ...], tuple[Operation, ...]]:
        """What every micro-batch does to each parameter and gradient beside multiplying by it, forward and backward:
        casts, copies into and out of the buffers that travel, adding up."""
        numerics, stage = self.laid.numerics, self.laid.zero_stage
        wide = numerics.gradient_bytes
        if self.ran.is_megatron:
            there, back = 0.0, 2 * wide
        elif stage >= 2:
            copies = 4.0 if self.ran.copies_gathered else 0.0
            there, back = copies, copies * (stage == 3) + (2 + numerics.reduce_bytes) * (numerics.reduce_bytes > 2)
        else:
            cast = numerics.cast_bytes
            there, back = (4 + cast) * (cast > 0), (cast + wide) * (cast > 0)
            if (
                self.laid.framework == "torch"
                and stage == 0
                and self.laid.replicate > 1
                and not self.laid.is_bucket_view
            ):
                back += 2 * wide
        return self.touched("weights", there * parameters), self.touched("gradients", back * parameters)

    def touched(self, name: str, size_bytes: float) -> tuple[Operation, ...]:
        return (Operation(name, "memory", size_bytes=size_bytes, launches=4),) if size_bytes else ()

    def attention_block(self) -> tuple[Operation, ...]:
        model, t, passes = self.model, self.laid.tensor, self.passes
        width, narrow = model.attention_width / t, model.kv_width / t
        return (
            self.normed(),
            *self.enter_tensor(),
            *self.cast(model.d_model * self.tokens),
            *self.projections(),
            self.moved("positions", passes.heads * (width + 2 * narrow) * self.tokens, passes.launches // 4),
            *self.ring(),
            *self.scores(),
            *self.cast(width * self.tokens),
            self.product("attention out", model.d_model, width),
            *self.leave_tensor(),
        )

    def normed(self) -> Operation:
        """One of a layer's two norms, and the residual addition before it."""
        passes = self.passes
        return self.moved(
            "norm and residual", passes.width / 2 * self.model.d_model * self.spread_tokens, passes.launches // 2
        )

    def projections(self) -> tuple[Operation, ...]:
        """To queries, keys and values."""
        model, t = self.model, self.laid.tensor
        if not model.kv_rank:
            return (self.product("query, key, value", (model.attention_width + 2 * model.kv_width) / t, model.d_model),)
        queries = model.heads * (model.head_dim + model.rope_dim) / t
        narrow = (
            (self.product("query down", model.query_rank, model.d_model),
             self.product("query up", queries, model.query_rank))
            if model.query_rank
            else (self.product("query", queries, model.d_model),)
        )  # fmt: skip
        return (
            *narrow,
            self.product("key and value down", model.kv_rank + model.rope_dim, model.d_model),
            self.product("key and value up", 2 * model.attention_width / t, model.kv_rank),
        )

    def scores(self) -> tuple[Operation, ...]:
        """Attention of queries and keys: one kernel, or with the scores in memory."""
        model, laid = self.model, self.laid
        heads = model.heads / laid.tensor
        # Of latent attention, queries and keys are wider than values.
        head = max(1, round(model.attention_width / model.heads + model.rope_dim / 2))
        if laid.is_flash:
            batch = laid.micro_batch / laid.context
            many, m = (heads, 1) if heads < 1 else (1.0, round(heads))
            name = "attention" if laid.context == 1 else "ring attention"
            return (Operation(name, "attention", m=m, n=laid.seq_len, k=head, batch=batch * many,
                              is_causal=model.is_causal),)  # fmt: skip
        scores = self.tokens * laid.seq_len * heads
        many = max(1, round(laid.micro_batch * heads))
        rows = max(1, round(laid.seq_len / laid.context))
        return (
            Operation("scores", "matmul", m=rows, n=laid.seq_len, k=head, times=many),
            self.moved("softmax", self.passes.scores * scores, 4),
            Operation("scores times values", "matmul", m=rows, n=head, k=laid.seq_len, times=many),
        )

    def dense_block(self) -> tuple[Operation, ...]:
        model, t, passes = self.model, self.laid.tensor, self.passes
        d_ff = (model.dense_d_ff or model.d_ff) / t
        wide = 2 * d_ff if model.is_gated else d_ff
        return (
            self.normed(),
            *self.enter_tensor(),
            *self.cast(model.d_model * self.tokens),
            self.product("MLP up", wide, model.d_model),
            self.moved("activation", (passes.gated if model.is_gated else passes.plain) * d_ff * self.tokens, 2),
            *self.cast(d_ff * self.tokens),
            self.product("MLP down", model.d_model, d_ff),
            *self.leave_tensor(),
        )

    def mixture_block(self) -> tuple[Operation, ...]:
        model, laid, passes = self.model, self.laid, self.passes
        t = 1 if laid.is_expert_over_tensor else laid.tensor
        # Tokens that experts see on this rank: under tensor parallelism each rank routes its part of the sequence.
        routed = self.tokens / laid.tensor * model.top_k
        own = max(1, round(model.experts / laid.expert))
        each = max(1.0, routed * (1 if laid.is_expert_over_tensor else laid.tensor) / own)
        d_ff = model.d_ff / t
        wide = 2 * d_ff if model.is_gated else d_ff
        seen = each * own
        exchange = () if laid.expert == 1 else (self.exchange(routed),)
        shared = self.shared_experts() if model.shared_experts else ()
        return (
            self.normed(),
            self.product("router", model.experts, model.d_model, tokens=self.spread_tokens),
            self.moved("sorting by expert", passes.routing * model.d_model * routed, 12),
            *shared,
            *exchange,
            *self.cast(model.d_model * seen),
            self.product("experts up", wide, model.d_model, tokens=each, times=own),
            self.moved("activation", (passes.gated if model.is_gated else passes.plain) * d_ff * seen, 2),
            *self.cast(d_ff * seen),
            self.product("experts down", model.d_model, d_ff, tokens=each, times=own),
            *exchange,
        )

    def shared_experts(self) -> tuple[Operation, ...]:
        model, t = self.model, self.laid.tensor
        d_ff = model.d_ff * model.shared_experts / t
        wide = 2 * d_ff if model.is_gated else d_ff
        return (
            self.product("shared experts up", wide, model.d_model),
            self.product("shared experts down", model.d_model, d_ff),
        )

    # ---- communication inside a layer

    def enter_tensor(self) -> tuple[Operation, ...]:
        if self.laid.tensor == 1 or not self.laid.is_sequence_parallel:
            return ()
        return (self.tensor_collective("all_gather"),)

    def leave_tensor(self) -> tuple[Operation, ...]:
        if self.laid.tensor == 1:
            return ()
        return (self.tensor_collective("reduce_scatter" if self.laid.is_sequence_parallel else "all_reduce"),)

    def tensor_collective(self, kind: str) -> Operation:
        size = self.tokens * self.model.d_model * self.element_bytes
        return Operation(
            "tensor", kind, size_bytes=size, ranks=self.laid.tensor, hidden_frac=self.ran.hides_tensor_frac
        )

    def ring(self) -> tuple[Operation, ...]:
        """Keys and values of the other ranks, beside attention to those at hand."""
        laid = self.laid
        if laid.context == 1:
            return ()
        size = 2 * self.tokens * laid.context * self.model.kv_width / laid.tensor * self.element_bytes
        return (
            Operation("context", "all_gather", size_bytes=size, ranks=laid.context, stride=laid.tensor, beside=True),
        )

    def exchange(self, routed: float) -> Operation:
        size = routed * self.model.d_model * self.element_bytes
        nodes = self.laid.expert * groups(self.laid).expert / _USUAL_NODE
        if self.ran.sends_once_per_node and nodes > 1:
            chosen = self.model.top_k
            size *= nodes * (1 - (1 - 1 / nodes) ** chosen) / chosen
        hidden_frac = _HIDDEN_EXPERTS_FRAC if self.ran.sends_once_per_node and nodes > 1 else 0.0
        return Operation(
            "experts", "all_to_all", size_bytes=size, ranks=self.laid.expert, stride=groups(self.laid).expert,
            hidden_frac=hidden_frac,
        )  # fmt: skip

    def handover_bytes(self) -> float:
        return self.spread_tokens * self.model.d_model * self.element_bytes

    # ---- backward

    def again(self, forward: tuple[Operation, ...]) -> tuple[Operation, ...]:
        """What is computed a second time, so that it need not be kept."""
        if self.laid.checkpointing == "none":
            return ()
        if self.laid.checkpointing == "full":
            return forward
        share = self.ran.selective_recompute_frac
        work = [each for each in forward if each.kind in ("matmul", "memory") and not each.name.startswith("score")]
        scores = [each for each in forward if each.name in ("scores", "softmax", "scores times values")]
        return (*(_share(each, share) for each in work if share), *scores)

    def reversed(self, forward: tuple[Operation, ...]) -> tuple[Operation, ...]:
        return tuple(grad for each in reversed(forward) for grad in self.gradient(each))

    def gradient(self, each: Operation) -> tuple[Operation, ...]:
        """What the backward pass does for one operation of the forward pass."""
        if each.kind == "matmul":
            by_input = replace(each, name=f"{each.name}, by input", n=each.k, k=each.n)
            by_weight = replace(each, name=f"{each.name}, by weight", m=each.k, n=each.n, k=each.m)
            return (by_input, by_weight)
        if each.kind == "attention":
            return (replace(each, is_backward=True),)
        if each.kind == "memory":
            more = 1.0 if each.name == "cast" else self.passes.backward
            return (replace(each, size_bytes=more * each.size_bytes, launches=2 * each.launches, is_backward=True),)
        return self.turned(each)

    def turned(self, each: Operation) -> tuple[Operation, ...]:
        """A collective's gradient: the one that goes the other way."""
        if each.name == "context":
            return (replace(each, size_bytes=2 * each.size_bytes),)
        if each.name == "tensor" and each.kind == "all_gather":
            # The input is gathered once more for the product by weight, beside the product by input.
            return (replace(each, beside=True), replace(each, kind="reduce_scatter"))
        other = {"all_gather": "reduce_scatter", "reduce_scatter": "all_gather"}
        return (replace(each, kind=other.get(each.kind, each.kind)),)

    # ---- parameters

    def layer_parameters(self, *, is_dense: bool) -> float:
        model, t = self.model, self.laid.tensor
        own = model.attention_parameters / t + model.norm_parameters
        if is_dense:
            return own + model.mlp_parameters(model.dense_d_ff or model.d_ff) / t
        shared = model.shared_experts * model.mlp_parameters(model.d_ff) / t
        return own + shared + model.experts * model.d_model

    def expert_parameters(self) -> float:
        t = 1 if self.laid.is_expert_over_tensor else self.laid.tensor
        return self.model.experts * self.model.mlp_parameters(self.model.d_ff) / self.laid.expert / t

    # ---- both ends

    def embedding(self) -> Layer:
        model = self.model
        table = (model.vocab / self.laid.tensor + model.positions) * model.d_model
        forward = [self.moved("embedding", 4 * model.d_model * self.tokens, 3)]
        if self.laid.tensor > 1:
            forward.append(self.tensor_collective("reduce_scatter" if self.laid.is_sequence_parallel else "all_reduce"))
        written = model.vocab / self.laid.tensor * model.d_model * (4 / self.element_bytes)
        backward = (self.moved("embedding", 4 * model.d_model * self.tokens + written, 4),)
        return Layer("embedding", tuple(forward), backward, table)

    def head(self) -> Layer:
        model, laid = self.model, self.laid
        wide = model.vocab / laid.tensor
        # Encoders predict what was masked, 15 % of the tokens (BERT, arXiv 1810.04805).
        seen = self.tokens * (1.0 if model.is_causal else 0.15)
        product = self.product("head", wide, model.d_model, tokens=seen)
        logits = wide * seen
        loss = self.moved("loss", self.passes.logits * logits * 2 / self.element_bytes, 6)
        norm = self.moved("norm", self.passes.width / 4 * model.d_model * self.spread_tokens, 2)
        there, back = self.held(wide * model.d_model)
        forward = (*there, norm, *self.enter_tensor(), product, loss)
        backward = (
            self.moved("loss", self.passes.logits * logits * 2 / self.element_bytes, 6),
            *self.gradient(product),
            *self.leave_tensor(),
            self.moved("norm", self.passes.width / 2 * model.d_model * self.spread_tokens, 4),
            *back,
        )
        tied = model.is_tied and laid.pipeline == 1
        return Layer("head", forward, backward, 0.0 if tied else wide * model.d_model)


def _share(each: Operation, share: float) -> Operation:
    if each.kind == "memory":
        return replace(each, size_bytes=each.size_bytes)
    return replace(each, m=max(1, round(each.m * share)))
