"""Rules of thumb about data parallelism: when to replicate, when to shard, and over what."""

from __future__ import annotations

from meshscope.advisor.candidate import Candidate
from meshscope.advisor.numerics import state_bytes
from meshscope.advisor.question import numerics_of
from meshscope.advisor.rule import Case, Saying
from meshscope.advisor.space import software
from meshscope.advisor.stacks import of
from meshscope.units import size

_ROOM_FRAC = 0.9
_BESIDE_BYTES = 3 * 2**30
_SLOW_FRAC = 0.5
_BUCKETS_BYTES = 4


def data_parallel_first(case: Case) -> Saying | None:
    """If state and activations fit on one device, replicate."""
    if case.question.cluster.devices < 2:
        return None
    each = _replicated_bytes(case)
    room = _ROOM_FRAC * case.memory_bytes - _BESIDE_BYTES
    holds = each * case.parameters < room
    threshold = (
        f"{each:g} B of state{_with_buckets(case)} × {_billions(case.parameters)} = {size(each * case.parameters)} "
        f"{'<' if holds else '≥'} {size(room)}, 90 % of the memory less 3 GiB, so below {_billions(room / each)}"
    )
    return Saying(
        "replicate first", threshold, holds, "Megatron-Bridge performance guide; scaling-book",
        "plain data parallelism, or ZeRO-1, which moves as much" if holds else "",
        (lambda one: _is_pure(one) and one.zero_stage <= 1) if holds else None,
    )  # fmt: skip


def gathers_hide(case: Case) -> Saying | None:
    """FSDP is bound by compute if a device has more tokens between two gathers than C / W."""
    if case.question.cluster.devices < 2 or not case.balance.flop_per_byte:
        return None
    micro = _tokens_between_gathers(case)
    half, mixed = case.balance.flop_per_byte, case.balance.flop_per_byte * 4 / 3
    threshold = (
        f"C / W = {_tera(case.balance.compute_flops_per_s)} / {_giga(case.balance.bus_bytes_per_s)}: FSDP needs "
        f"{half:,.0f} tokens a device in bf16, {mixed:,.0f} with fp32 gradients, DDP {2 * half:,.0f}; "
        f"here are {micro:,.0f} in a micro-batch"
    )
    holds = micro > mixed
    chooses = "FSDP: its gathers hide" if holds else "less to gather: larger micro-batches, HSDP or tensor parallelism"
    return Saying(
        "tokens per device against C / W", threshold, holds, "scaling-book, training chapter", chooses,
        _is_pure if holds else _is_no_plain_fsdp,
    )  # fmt: skip


def shard_only_if_needed(case: Case) -> Saying | None:
    """FSDP pays where state does not fit; elsewhere only by a larger micro-batch."""
    if case.question.cluster.devices < 2:
        return None
    needed = _replicated_bytes(case) * case.parameters
    holds = needed >= _ROOM_FRAC * case.memory_bytes - _BESIDE_BYTES
    threshold = f"replicated state {size(needed)} {'does not fit' if holds else 'fits'} {size(case.memory_bytes)}"
    known = "" if holds else (
        "; measured otherwise once: 1.1 B on 8 × A100-40 in eager litgpt, DDP 569 ms and 32.0 GB, FSDP 457 ms and "
        "22.1 GB, one GPU 448 ms and 29.8 GB"
    )  # fmt: skip
    return Saying(
        "FSDP or DDP", threshold + known, holds, "PyTorch FSDP guide; litgpt's table for Thunder",
        "FSDP" if holds else "no sharded parameters",
        _is_sharded if holds else (lambda one: one.zero_stage < 3),
    )  # fmt: skip


def accumulation_and_sharding(case: Case) -> Saying | None:
    """With m micro-batches ZeRO-2 and 3 communicate m times; ZeRO-1 once."""
    if case.choice is None or case.choice.candidate.data < 2 or case.choice.candidate.pipeline > 1:
        return None
    chosen = case.choice.candidate
    split = chosen.tensor
    kinds = numerics_of(case.question, framework=chosen.framework, zero_stage=1, is_megatron=_is_megatron(case))
    sharded = kinds.optimizer_bytes + kinds.master_bytes
    held = (state_bytes(kinds) - sharded + sharded / (chosen.data * chosen.context)) * case.parameters / split
    fits = held < _ROOM_FRAC * case.memory_bytes - _BESIDE_BYTES
    holds = chosen.accumulate > 1 and fits
    threshold = (
        f"m = {chosen.accumulate}; ZeRO-1 keeps {size(held)} a device, which "
        f"{'fits' if fits else 'does not fit'} beside activations in {size(case.memory_bytes)}"
    )
    if not holds:
        return Saying("accumulation and sharding", threshold, holds, "ml-engineering, model parallelism")
    return Saying(
        "accumulation and sharding", threshold, holds, "ml-engineering, model parallelism", "ZeRO-1 (or plain DDP)",
        lambda one: one.zero_stage <= 1,
    )  # fmt: skip


def shard_within_a_node(case: Case) -> Saying | None:
    """HSDP where the model fits a node and the network is much slower than what joins a node."""
    cluster = case.question.cluster
    if cluster.nodes < 2 or cluster.per_node < 2:
        return None
    per_device = _state_bytes(case) * case.parameters / cluster.per_node
    fits = per_device < _ROOM_FRAC * case.memory_bytes - _BESIDE_BYTES
    inside, between = case.balance.inside_bytes_per_s, case.balance.bus_bytes_per_s
    slow = between < _SLOW_FRAC * inside
    threshold = (
        f"state over one node {size(per_device)} a device {'fits' if fits else 'does not fit'}; all devices gather at "
        f"{_giga(between)}, those of a node at {_giga(inside)} ({'less' if slow else 'more'} than half)"
    )
    return Saying(
        "shard within a node, replicate across", threshold, fits and slow, "ml-engineering, model parallelism",
        "HSDP" if fits and slow else "",
        (lambda one: one.replicate > 1 and one.shard > 1) if fits and slow else None,
    )  # fmt: skip


def replicas_over_the_network(case: Case) -> Saying | None:
    """JAX over several slices or nodes: FSDP inside, plain data parallelism across."""
    cluster, balance = case.question.cluster, case.balance
    if "jax" not in case.question.frameworks or cluster.nodes < 2 or not balance.between_bytes_per_s:
        return None
    per_node = case.question.tokens_per_step / cluster.nodes
    needed = balance.compute_flops_per_s / balance.between_bytes_per_s
    holds = per_node > needed
    threshold = (
        f"{per_node:,.0f} tokens in a {'slice' if 'TPU' in cluster.device.name else 'node'} {'>' if holds else '≤'} "
        f"C / W of the network = {needed:,.0f}"
    )
    return Saying(
        "FSDP inside, replicas across the network", threshold, holds, "scaling-book, training chapter",
        "FSDP within, replicas across" if holds else "", (lambda one: one.replicate > 1) if holds else None,
    )  # fmt: skip


def _replicated_bytes(case: Case) -> float:
    """Of plain data parallelism per parameter, the buckets' copies of gradients too."""
    framework = case.question.frameworks[0]
    kinds = numerics_of(case.question, framework=framework, zero_stage=0, is_megatron=_is_megatron(case))
    buckets = min(_BUCKETS_BYTES, kinds.gradient_bytes) if framework == "torch" else 0
    return state_bytes(kinds) + buckets


def _with_buckets(case: Case) -> str:
    return " (with DDP's buckets)" if case.question.frameworks[0] == "torch" else ""


def _state_bytes(case: Case) -> float:
    framework = case.question.frameworks[0]
    kinds = numerics_of(case.question, framework=framework, zero_stage=3, is_megatron=_is_megatron(case))
    return state_bytes(kinds)


def _is_megatron(case: Case) -> bool:
    return of(software(case.question, case.question.frameworks[0])).is_megatron


def _tokens_between_gathers(case: Case) -> float:
    """Of the choice where it gathers, else of a whole batch at once."""
    if case.choice is not None:
        return case.choice.candidate.micro_batch * case.question.seq_len / case.choice.candidate.context
    return case.question.tokens_per_device


def _is_pure(candidate: Candidate) -> bool:
    return candidate.tensor == candidate.pipeline == candidate.context == 1


def _is_sharded(candidate: Candidate) -> bool:
    return candidate.zero_stage == 3 or not _is_pure(candidate)


def _is_no_plain_fsdp(candidate: Candidate) -> bool:
    return candidate.zero_stage < 3 or not _is_pure(candidate) or candidate.replicate > 1


def _billions(parameters: float) -> str:
    return f"{parameters / 1e9:.3g} B"


def _tera(flops_per_s: float) -> str:
    return f"{flops_per_s / 1e12:.3g} TFLOP/s"


def _giga(bytes_per_s: float) -> str:
    return f"{bytes_per_s / 1e9:.3g} GB/s"
