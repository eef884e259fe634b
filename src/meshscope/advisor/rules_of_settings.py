"""Rules of thumb about what may be turned in any strategy: checkpointing, precision, sizes of messages."""

from __future__ import annotations

from meshscope.advisor.candidate import Candidate
from meshscope.advisor.rule import Case, Saying
from meshscope.units import percent, size

_NVLINK_BYTES = 8 * 2**20
_NETWORK_BYTES = 512 * 2**20
_NARROW = 4096


def checkpoint_as_needed(case: Case) -> Saying | None:
    """None before selective before full."""
    if case.choice is None or len(case.question.checkpointing) < 2:
        return None
    fits = (*case.advice.ranked, *case.advice.settings)
    kept = [each for each in fits if each.candidate.checkpointing == "none"]
    holds = not kept
    threshold = (
        "nothing fits that keeps all activations"
        if holds
        else f"{len(kept)} of those computed keep all activations and fit; full costs 1/3 more FLOPs, selective less"
    )
    return Saying(
        "checkpoint only as needed", threshold, holds, "Korthikanti et al. 2022, arXiv 2205.05198; torchtitan's tables",
        "some checkpointing" if holds else "no checkpointing",
        (lambda one: one.checkpointing != "none") if holds else (lambda one: one.checkpointing == "none"),
    )  # fmt: skip


def eight_bits(case: Case) -> Saying | None:
    """fp8 gains 1.2 to 1.5 times in linear layers only, little for narrow models."""
    device, shape = case.question.cluster.device, case.question.architecture
    peaks = device.peak_flops_per_s
    if not peaks.get("fp8") or not peaks.get("bf16"):
        return None
    holds = shape.d_model >= _NARROW
    has_it = case.choice is not None and case.choice.candidate.numerics.compute == "fp8"
    threshold = (
        f"{device.name} multiplies fp8 at {peaks['fp8'] / peaks['bf16']:.1f} times the peak of bf16; a width of "
        f"{shape.d_model:,} is {'wide' if holds else 'narrow'} (from {_NARROW:,} on it pays); published: 1.28 "
        "times for 8 B on 8 H100 (torchtitan)"
    )
    chooses = "" if has_it or not holds else "--precision fp8, if its loss is checked"
    return Saying("fp8 for linear layers", threshold, holds, "Megatron-Bridge performance guide", chooses)


def message_size(case: Case) -> Saying | None:
    """Below some size per message the bandwidth collapses: gather at least a layer at once, raise buckets."""
    if case.choice is None or case.choice.candidate.data < 2:
        return None
    chosen, cluster = case.choice.candidate, case.question.cluster
    message = _message_bytes(case, chosen)
    is_across = chosen.data * chosen.tensor * chosen.context > cluster.per_node
    least = _NETWORK_BYTES if is_across else _NVLINK_BYTES
    holds = message < least
    word = "a bucket" if chosen.zero_stage == 0 else "a layer"
    threshold = (
        f"{word} is {size(message)} in one message {'<' if holds else '≥'} {size(least)} "
        f"{'between nodes' if is_across else 'within a node'}"
    )
    chooses = (
        f"larger messages: {'larger buckets' if chosen.zero_stage == 0 else 'several layers in one'}" if holds else ""
    )
    return Saying("size of messages", threshold, holds, "nccl-tests on 4 × 8 B200 (ml-engineering, network)", chooses)


def plausible(case: Case) -> Saying | None:
    """No step runs above the best matrix product measured on the device."""
    choice, device = case.choice, case.question.cluster.device
    if choice is None or choice.time is None:
        return None
    compute = choice.candidate.numerics.compute
    peak = device.peak_flops_per_s.get(compute) or device.peak_flops_per_s.get("bf16", 0.0)
    measured = device.measured_flops_per_s.get(compute, 0.0)
    if not peak or not measured:
        return None
    ceiling = measured / peak
    threshold = (
        f"MFU {percent(choice.time.mfu_frac)} of the {compute} peak; the best product measured on {device.name} "
        f"reaches {percent(ceiling)} of it"
    )
    holds = choice.time.mfu_frac > ceiling
    return Saying("nothing is faster than the best product", threshold, holds, "ml-engineering, MAMF table")


def _message_bytes(case: Case, chosen: Candidate) -> float:
    kinds, shape = chosen.numerics, case.question.architecture
    if chosen.zero_stage == 0:
        return float(chosen.bucket_bytes)
    layer = shape.parameters / shape.layers / chosen.tensor / chosen.expert
    return layer * (kinds.cast_bytes or kinds.parameter_bytes)
