"""What compute and communication have to be to hide one behind the other, on this model and this fabric."""

from __future__ import annotations

from dataclasses import dataclass

from meshscope.advisor.cluster import Cluster
from meshscope.advisor.costs.collective import collective
from meshscope.advisor.question import Question
from meshscope.advisor.ranking import Advice

_LARGE_BYTES = 2**30
_FALLBACK = {"A100": 0.55}
_FALLBACK_ELSEWHERE = 0.45


@dataclass(frozen=True)
class Balance:
    """``compute_flops_per_s`` is what one device reaches in its compute alone, ``is_of_choice`` where that is the
    forecast of the choice and no usual share of the peak. ``bus_bytes_per_s`` is the bus bandwidth of a large
    all-gather over all devices, ``inside_bytes_per_s`` of one within a node, ``between_bytes_per_s`` of one whose
    ranks all are on other nodes (0 with one node)."""

    compute_flops_per_s: float
    is_of_choice: bool
    bus_bytes_per_s: float
    inside_bytes_per_s: float
    between_bytes_per_s: float

    @property
    def flop_per_byte(self) -> float:
        """Of compute, in the time that a byte takes over the bus of all devices: also the tokens that each device
        needs between two gathers in 16 bits to hide them (6 FLOP a parameter and token against 3 × 2 bytes)."""
        return self.compute_flops_per_s / self.bus_bytes_per_s if self.bus_bytes_per_s else 0.0


def balance(advice: Advice) -> Balance:
    """Of the question, with the rate of the choice where its time is known."""
    question = advice.question
    cluster = question.cluster
    rate, is_of_choice = _rate(advice)
    nodes = cluster.nodes
    return Balance(
        rate,
        is_of_choice,
        bus_bytes_per_s(cluster, "all_gather", cluster.devices),
        bus_bytes_per_s(cluster, "all_gather", min(cluster.devices, cluster.per_node)),
        bus_bytes_per_s(cluster, "all_gather", nodes, stride=cluster.per_node, sharers=cluster.per_node),
    )


def bus_bytes_per_s(cluster: Cluster, kind: str, ranks: int, *, stride: int = 1, sharers: int = 1) -> float:
    """By nccl-tests' definition, of a large one; 0 for a single rank."""
    if ranks < 2:
        return 0.0
    took = collective(cluster, kind, _LARGE_BYTES, ranks, stride, sharers).value
    passes = 2 if kind == "all_reduce" else 1
    return passes * (ranks - 1) / ranks * _LARGE_BYTES / took if took else 0.0


def _rate(advice: Advice) -> tuple[float, bool]:
    question, choice = advice.question, advice.choice
    if choice is not None and choice.time is not None and choice.time.compute_s > 0:
        flop = question.architecture.flop_per_token(question.seq_len) * question.tokens_per_step
        return flop / question.cluster.devices / choice.time.compute_s, True
    return _usual_rate(question), False


def _usual_rate(question: Question) -> float:
    """A share of the peak as trainings show it: 55 % on A100, 45 % elsewhere."""
    device = question.cluster.device
    peak = device.peak_flops_per_s.get("bf16") or max(device.peak_flops_per_s.values(), default=0.0)
    share = next((share for name, share in _FALLBACK.items() if name in device.name), _FALLBACK_ELSEWHERE)
    return share * peak
