"""One pipeline stage of one candidate, with the parameters that a device of it holds."""

from __future__ import annotations

from dataclasses import dataclass, replace

from meshscope.advisor.architecture import Architecture
from meshscope.advisor.candidate import Candidate
from meshscope.advisor.memory.habits import Habits, habits, is_deepspeed, is_megatron, numerics
from meshscope.advisor.memory.stages import Stage, stages


@dataclass(frozen=True)
class Share:
    """Parameters of a device before ZeRO divides them. ``layer`` is its largest layer, experts included; ``tables`` the
    token table and output layer; ``shapes`` counts one weight of each shape within layers."""

    plain: float
    experts: float
    layer: float
    tables: float
    shapes: float

    @property
    def all(self) -> float:
        return self.plain + self.experts


@dataclass(frozen=True)
class Place:
    """Where memory is counted. ``tokens`` are of one micro-batch on this device, before tensor parallelism."""

    architecture: Architecture
    candidate: Candidate
    own: Habits
    stage: Stage
    share: Share

    @property
    def tokens(self) -> float:
        return self.candidate.micro_batch * self.candidate.seq_len / self.candidate.context

    @property
    def gathers(self) -> bool:
        """FSDP, at its second stage too: shards between steps, whole parameters within one."""
        candidate = self.candidate
        keeps_whole = bool(candidate.numerics.master_bytes) or is_deepspeed(candidate) or is_megatron(candidate)
        return candidate.framework == "torch" and candidate.zero_stage >= 2 and not keeps_whole

    @property
    def accumulates(self) -> bool:
        """Gradients of earlier micro-batches lie there while the next one runs."""
        return self.candidate.accumulate > 1

    @property
    def expert_ranks(self) -> float:
        """Over how many ranks ZeRO divides the state of experts, where it divides anything."""
        over = self.candidate.tensor if self.candidate.is_expert_over_tensor else 1
        return max(1.0, self.candidate.sharded_over * over / self.candidate.expert)


def places(architecture: Architecture, candidate: Candidate) -> tuple[Place, ...]:
    """Of the pipeline stages that may need most, first to last."""
    candidate = replace(candidate, numerics=numerics(candidate))
    own = habits(architecture, candidate)
    return tuple(
        Place(architecture, candidate, own, stage, share(architecture, candidate, stage))
        for stage in _unlike(stages(architecture, candidate))
    )


def _unlike(every: tuple[Stage, ...]) -> list[Stage]:
    """Of stages that hold the same, the first: it has as many micro-batches in flight as any of them."""
    first: dict[tuple[int, int, bool, bool], Stage] = {}
    for stage in every:
        held = (stage.plain_layers, stage.mixture_layers, stage.has_embedding, stage.has_head)
        first.setdefault(held, stage)
    return list(first.values())


def share(architecture: Architecture, candidate: Candidate, stage: Stage) -> Share:
    """Matrices are divided by the tensor degree, norms and routers are not; experts by the expert degree too."""
    tensor = candidate.tensor
    expert_tensor = 1 if candidate.is_expert_over_tensor else tensor
    attention = architecture.attention_parameters / tensor + architecture.norm_parameters
    plain_layer = attention + architecture.mlp_parameters(architecture.dense_d_ff or architecture.d_ff) / tensor
    expert = architecture.mlp_parameters(architecture.d_ff) if architecture.is_mixture else 0
    router = architecture.experts * architecture.d_model
    mixture_layer = attention + router + architecture.shared_experts * expert / tensor
    layer_experts = architecture.experts * expert / candidate.expert / expert_tensor
    tables = _tables(architecture, stage) / tensor
    norm = architecture.norm_parameters / 2 if stage.has_head else 0
    plain = stage.plain_layers * plain_layer + stage.mixture_layers * mixture_layer + tables + norm
    largest = max(
        plain_layer if stage.plain_layers else 0.0, mixture_layer + layer_experts if stage.mixture_layers else 0.0
    )
    shapes = attention + (plain_layer - attention if stage.plain_layers else 0.0)
    if stage.mixture_layers:
        shapes += expert / expert_tensor + architecture.shared_experts * expert / tensor
    return Share(plain, stage.mixture_layers * layer_experts, largest, tables, shapes)


def _tables(architecture: Architecture, stage: Stage) -> float:
    """A tied table lies on the first stage and, where there are more, on the last one too."""
    tokens = architecture.vocab * architecture.d_model
    found = architecture.embedding_parameters if stage.has_embedding else 0
    if stage.has_head and not (architecture.is_tied and stage.has_embedding):
        found += tokens
    return found
