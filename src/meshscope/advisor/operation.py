"""One operation of a step, and the layers and stages that operations make up."""

from __future__ import annotations

from dataclasses import dataclass

from meshscope.advisor.candidate import Candidate


@dataclass(frozen=True, slots=True)
class Operation:
    """``kind``: matmul (m × n × k, ``times`` alike), attention (of ``batch`` samples: m heads, n tokens, k the width
    of a head), memory (``size_bytes`` moved) or a
    collective (``size_bytes`` of the whole tensor, over ``ranks`` that are ``stride`` apart).

    ``launches`` is how many kernels the host starts for it. ``beside``: it runs on a stream of its own while the next
    operation computes, and what follows waits for both.
    """

    name: str
    kind: str
    size_bytes: float = 0.0
    m: int = 0
    n: int = 0
    k: int = 0
    times: int = 1
    ranks: int = 1
    stride: int = 1
    launches: int = 1
    hidden_frac: float = 0.0
    beside: bool = False
    batch: float = 0.0
    is_causal: bool = True
    is_backward: bool = False


@dataclass(frozen=True)
class Layer:
    """``backward`` begins with what is computed again. ``parameters`` are of this rank before data-parallel sharding:
    shared by all, and of experts (which have data-parallel groups of their own)."""

    name: str
    forward: tuple[Operation, ...]
    backward: tuple[Operation, ...]
    parameters: float
    expert_parameters: float = 0.0


@dataclass(frozen=True)
class Stage:
    """``layers`` in order, each with how many there are. ``first`` is the embedding, ``last`` the head and the loss
    (None where the stage has none). ``handover_bytes`` goes to the next stage, per micro-batch."""

    first: Layer | None
    layers: tuple[tuple[Layer, int], ...]
    last: Layer | None
    handover_bytes: float = 0.0

    @property
    def parameters(self) -> float:
        ends = sum(each.parameters for each in (self.first, self.last) if each)
        return ends + sum(layer.parameters * many for layer, many in self.layers)

    @property
    def expert_parameters(self) -> float:
        return sum(layer.expert_parameters * many for layer, many in self.layers)


@dataclass(frozen=True)
class Groups:
    """Distance of neighbours in global rank numbers: tensor varies fastest, then context, data, pipeline."""

    tensor: int
    context: int
    shard: int
    replicate: int
    pipeline: int
    expert: int


def groups(candidate: Candidate) -> Groups:
    """Strides of the candidate's process groups."""
    inner = candidate.tensor * candidate.context
    expert = 1 if candidate.is_expert_over_tensor else candidate.tensor
    return Groups(1, candidate.tensor, candidate.tensor, inner * candidate.shard, inner * candidate.data, expert)
