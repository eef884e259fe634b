"""Rules of thumb about what cuts a model: tensor, pipeline, context and expert parallelism, and all by scale."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from meshscope.advisor.candidate import Candidate
from meshscope.advisor.rule import Case, Saying
from meshscope.units import counted

_BUBBLE_FRAC = 0.05
_LONG = 32_768
_PIPELINED_FRAC = 0.25
_SMALL, _LARGE = 10e9, 100e9


def tensor_degree(case: Case) -> Saying | None:
    """Tensor parallelism stays bound by compute below F · W / C, inside NVLink, and divides the heads of keys."""
    cluster, shape = case.question.cluster, case.question.architecture
    if cluster.per_node < 2 or not case.balance.compute_flops_per_s or not case.balance.inside_bytes_per_s:
        return None
    most = shape.d_ff * case.balance.inside_bytes_per_s / case.balance.compute_flops_per_s
    within = min(cluster.per_node, shape.kv_heads)
    threshold = (
        f"F · W / C = {shape.d_ff} × {case.balance.inside_bytes_per_s / 1e9:.3g} GB/s / "
        f"{case.balance.compute_flops_per_s / 1e12:.3g} TFLOP/s = {most:.1f}; a node has {cluster.per_node} devices, "
        f"keys have {shape.kv_heads} heads"
    )
    limit = max(1.0, min(most, within))
    chosen = case.choice.candidate.tensor if case.choice else 1
    return Saying(
        "width of tensor parallelism", threshold, chosen > 1, "scaling-book, training chapter",
        f"tensor parallelism of at most {limit:.0f}", lambda one: one.tensor <= limit,
    )  # fmt: skip


def fsdp_beside_tensor(case: Case) -> Saying | None:
    """Mixing both: X = sqrt(B · N / F) ways of FSDP, bound by compute down to B / N = 4 (C / W)² / F tokens."""
    cluster, shape = case.question.cluster, case.question.architecture
    if cluster.devices < 2 or not case.balance.flop_per_byte:
        return None
    tokens, devices = case.question.tokens_per_step, cluster.devices
    best = math.sqrt(tokens * devices / shape.d_ff)
    least = 4 * case.balance.flop_per_byte**2 / shape.d_ff
    each = tokens / devices
    alone = case.balance.flop_per_byte * 4 / 3
    holds = least < each < alone
    threshold = (
        f"FSDP over sqrt(B N / F) = {best:.0f} of {counted(devices, 'device')}; FSDP alone needs {alone:,.0f} tokens "
        f"a device, both together {least:,.0f}; there are {each:,.0f}"
    )
    return Saying(
        "FSDP and tensor parallelism together", threshold, holds, "scaling-book, training chapter",
        "FSDP with tensor parallelism" if holds else "", (lambda one: one.tensor > 1) if holds else None,
    )  # fmt: skip


def pipeline_if_needed(case: Case) -> Saying | None:
    """A pipeline where nothing fits without, or the network is slow; its bubble wants m ≥ 20 (p − 1) / v."""
    if case.question.cluster.devices < 2 or not case.advice.every:
        return None
    others = [each for each in case.advice.every if each.candidate.pipeline == 1]
    slow = 0 < case.balance.bus_bytes_per_s < _PIPELINED_FRAC * case.balance.inside_bytes_per_s
    holds = not others or slow
    reason = "without one nothing fits" if not others else "something fits without one"
    bubble = _bubble(case)
    threshold = f"{reason}; all devices gather at {_share(case)} of what a node does{bubble}"
    return Saying(
        "pipeline only if needed", threshold, holds, "ml-engineering; Narayanan et al. 2021, arXiv 2104.04473",
        "a pipeline" if holds else "no pipeline",
        (lambda one: one.pipeline > 1) if holds else (lambda one: one.pipeline == 1),
    )  # fmt: skip


def _bubble(case: Case) -> str:
    chosen = case.choice.candidate if case.choice else None
    if chosen is None or chosen.pipeline == 1:
        return ""
    wanted = (chosen.pipeline - 1) / chosen.virtual / _BUBBLE_FRAC
    return f"; a bubble of 5 % of the work wants {wanted:.0f} micro-batches, here are {chosen.accumulate}"


def _share(case: Case) -> str:
    inside = case.balance.inside_bytes_per_s
    return f"{case.balance.bus_bytes_per_s / inside:.0%}" if inside else "–"


def context_for_long(case: Case) -> Saying | None:
    """Context parallelism for long sequences; before more tensor parallelism where s > h."""
    seq_len = case.question.seq_len
    if seq_len < 8192 or case.question.cluster.devices < 2:
        return None
    holds = seq_len >= _LONG
    threshold = f"{seq_len:,} tokens {'≥' if holds else '<'} {_LONG:,}; width {case.question.architecture.d_model:,}"
    return Saying(
        "context parallelism for long sequences", threshold, holds, "Megatron-Core (8 k), ml-engineering (32 k)",
        "context parallelism" if holds else "", (lambda one: one.context > 1) if holds else None,
    )  # fmt: skip


def experts_within_a_node(case: Case) -> Saying | None:
    """Experts spread over NVLink first."""
    shape, cluster = case.question.architecture, case.question.cluster
    if not shape.is_mixture or cluster.devices < 2:
        return None
    most = min(cluster.per_node, shape.experts)
    threshold = f"{shape.experts} experts, {counted(cluster.per_node, 'device')} in a node"
    return Saying(
        title="experts within NVLink first",
        threshold=threshold,
        holds=True,
        source="Megatron-Bridge performance guide",
        chooses=f"expert parallelism of 2 to {most}",
        is_met=lambda one: 1 < one.expert <= most,
    )


@dataclass(frozen=True)
class _Band:
    """Models of up to ``parameters`` on ``least`` devices or more."""

    parameters: float
    least: int
    words: str
    chooses: str
    is_met: Callable[[Candidate], bool]


def by_scale(case: Case) -> Saying | None:
    """What nanotron's playbook found by size and number of devices."""
    devices, parameters = case.question.cluster.devices, case.parameters
    if devices < 2 or case.question.architecture.is_mixture:
        return None
    band = next(each for each in _BANDS if parameters <= each.parameters and devices >= each.least)
    return Saying(
        title="by scale",
        threshold=f"{parameters / 1e9:.3g} B on {counted(devices, 'device')}: {band.words}",
        holds=True,
        source="notes on nanotron's Ultra-Scale Playbook (second hand)",
        chooses=band.chooses,
        is_met=band.is_met,
    )


def _is_single(candidate: Candidate) -> bool:
    degrees = (candidate.tensor, candidate.pipeline, candidate.context, candidate.data)
    return sum(degree > 1 for degree in degrees) <= 1


def _is_model_cut(candidate: Candidate) -> bool:
    return max(candidate.tensor, candidate.pipeline) > 1


def _is_cut_both_ways(candidate: Candidate) -> bool:
    return candidate.tensor > 1 and candidate.pipeline > 1


def _is_whole_or_sharded(candidate: Candidate) -> bool:
    return candidate.zero_stage == 3 or _is_cut_both_ways(candidate)


# The first that a case is in.
_BANDS = (
    _Band(_SMALL, 512, "512 devices or more", "more than data parallelism alone", _is_model_cut),
    _Band(_SMALL, 9, "below 10 B on 9 to 511 devices", "no tensor parallelism", lambda one: one.tensor == 1),
    _Band(_SMALL, 2, "below 10 B on up to 8 devices", "a single technique", _is_single),
    _Band(math.inf, 1024, "1 024 devices or more", "tensor 8, ZeRO and a pipeline", _is_cut_both_ways),
    _Band(math.inf, 512, "512 devices or more", "more than data parallelism alone", _is_model_cut),
    _Band(_LARGE, 2, "10 to 100 B", "tensor 8 with a pipeline or ZeRO-3, or ZeRO-3 alone", _is_whole_or_sharded),
    _Band(math.inf, 2, "above 100 B", "tensor parallelism of 4 to 16", lambda one: 4 <= one.tensor <= 16),
)
