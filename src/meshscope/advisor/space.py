"""Every legal way of laying a model over devices: strategy × mesh × schedule × micro-batch × checkpointing.

What makes a layout legal: degrees multiply to the number of devices; tensor parallelism divides the heads, those of
keys and values too, and the MLP, and stays inside a node (or NVLink domain) unless more was asked for; every pipeline
stage has a layer, and none much more than others; a slice of a sequence is no shorter than what attention kernels
want; experts divide over the ranks that see different tokens; every data rank gets a whole sample.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from meshscope.advisor.candidate import Candidate, Checkpointing
from meshscope.advisor.question import Framework, Question, numerics_of
from meshscope.advisor.stacks import of

_MOST_PIPELINE = 64
_MOST_CONTEXT = 16
_SHORTEST_SLICE = 2048
_MOST_MICRO = 64
_VIRTUAL = (2, 4, 8)
_UNEVEN_FRAC = 0.05
_MOST_UNEVEN = 3
_EXPERTS = (8, 16, 32, 64)

DataWay = tuple[str, int, int, int]
"""A word for it, replicas, shards, ZeRO stage."""


def layouts(question: Question) -> Iterator[Candidate]:
    """Each once, with one sample as its micro-batch and everything kept; `fillings` gives the others."""
    for framework in question.frameworks:
        for tensor, pipeline, context in _degrees(question):
            data = question.cluster.devices // (tensor * pipeline * context)
            if question.global_batch % data:
                continue
            for way in _data_ways(question, framework, data, tensor, pipeline, context):
                for expert in _experts(question, way, context):
                    found = _candidate(question, framework, way, (tensor, pipeline, context, expert))
                    if _is_asked_for(question, found):
                        yield from _scheduled(question, found)


def fillings(question: Question, layout: Candidate) -> Iterator[Candidate]:
    """The layout with every micro-batch that divides a rank's samples, and every kind of checkpointing."""
    each = question.global_batch // layout.data
    for micro in _micro_batches(each, question.micro_batch):
        accumulate = each // micro
        if layout.pipeline > 1 and not _fills(layout, accumulate):
            continue
        for kept in question.checkpointing:
            yield _filled(layout, micro, accumulate, kept)


def _filled(layout: Candidate, micro: int, accumulate: int, kept: Checkpointing) -> Candidate:
    """``dataclasses.replace`` by hand: that asks every field, for tens of thousands of candidates."""
    found = object.__new__(Candidate)
    found.__dict__.update(layout.__dict__, micro_batch=micro, accumulate=accumulate, checkpointing=kept)
    return found


def _degrees(question: Question) -> Iterator[tuple[int, int, int]]:
    """Of tensor, pipeline and context, what they leave being data parallel."""
    devices = question.cluster.devices
    for tensor in _tensors(question):
        for pipeline in _divisors(devices // tensor, _MOST_PIPELINE):
            if _is_even(question.architecture.layers, pipeline):
                for context in _contexts(question, devices // tensor // pipeline):
                    yield tensor, pipeline, context


def _tensors(question: Question) -> list[int]:
    shape, cluster = question.architecture, question.cluster
    most = question.most_tensor or cluster.per_node
    widths = (shape.heads, shape.kv_heads, shape.d_ff, cluster.devices)
    return [
        tensor
        for tensor in _divisors(shape.kv_heads, most)
        if all(width % tensor == 0 for width in widths)
        and (cluster.per_node % tensor == 0 or tensor % cluster.per_node == 0)
    ]


def _contexts(question: Question, left: int) -> list[int]:
    most = min(_MOST_CONTEXT, max(1, question.seq_len // _SHORTEST_SLICE))
    # Under a causal mask each rank takes a slice from either end, so that all have equal work.
    return [context for context in _divisors(left, most) if context == 1 or question.seq_len % (2 * context) == 0]


def _experts(question: Question, way: DataWay, context: int) -> list[int]:
    experts = question.architecture.experts
    if not question.architecture.is_mixture:
        return [1]
    over = way[1] * way[2] * context
    fit = [count for count in {1, *_EXPERTS, experts} if experts % count == 0 and over % count == 0]
    return sorted(fit)


def _data_ways(
    question: Question, framework: Framework, data: int, tensor: int, pipeline: int, context: int
) -> Iterator[DataWay]:
    if data * context == 1:
        yield "", 1, 1, 0
        return
    is_plain = tensor == pipeline == context == 1
    yield "" if data == 1 else "ddp" if framework == "torch" else "dp", data, 1, 0
    if framework == "torch":
        yield "zero1", 1, data, 1
        if is_plain:
            yield "zero2", 1, data, 2
    yield "fsdp", 1, data, 3
    if pipeline == 1:
        for shard in _groups(question, data, tensor * context):
            yield "hsdp", data // shard, shard, 3


def _groups(question: Question, data: int, each: int) -> list[int]:
    """Sizes of sharding groups that span one node, four or sixteen, where there are at least two of them."""
    sizes = (question.cluster.per_node * nodes // each for nodes in (1, 4, 16))
    return [size for size in sizes if 1 < size <= data // 2 and data % size == 0]


def _candidate(question: Question, framework: Framework, way: DataWay, degrees: tuple[int, int, int, int]) -> Candidate:
    word, replicas, shard, stage = way
    tensor, pipeline, context, expert = degrees
    runs_in = software(question, framework)
    return Candidate(
        strategy=_strategy(framework, word, degrees),
        framework=framework,
        stack=runs_in,
        seq_len=question.seq_len,
        micro_batch=1,
        numerics=numerics_of(question, framework=framework, zero_stage=stage, is_megatron=of(runs_in).is_megatron),
        accumulate=question.global_batch // (replicas * shard),
        replicate=replicas,
        shard=shard,
        zero_stage=stage,
        tensor=tensor,
        pipeline=pipeline,
        context=context,
        expert=expert,
        is_compiled=of(runs_in).is_compiled,
        is_flash=question.is_flash,
        reshards=stage == 3,
    )


def software(question: Question, framework: Framework) -> str:
    """What it runs in, as `stacks` calls it: one and the same for all strategies, so that these are compared and not
    the kernels of those who wrote them. In torch torchtitan, which has most of the strategies."""
    if framework == "jax":
        return "jax"
    return question.software or ("torchtitan-compile" if question.is_compiled else "torchtitan")


def _strategy(framework: Framework, word: str, degrees: tuple[int, int, int, int]) -> str:
    """What a person calls it: ``fsdp``, ``zero1+tp+pp``, ``pmap``, ``pjit-fsdp+tp``."""
    names = [name for name, degree in zip(("tp", "pp", "cp", "ep"), degrees, strict=True) if degree > 1]
    if framework == "torch":
        return "+".join([word, *names] if word else names) or "single"
    if word == "dp" and not names:
        return "pmap"
    joined = "+".join([word, *names] if word else names)
    return f"pjit-{joined}" if joined else "single"


def _is_asked_for(question: Question, found: Candidate) -> bool:
    """A filter is one of a strategy's words, or with ``=`` all of them: ``fsdp`` finds ``fsdp+tp``, ``=fsdp`` not."""
    if not question.strategies:
        return True
    words = set(found.strategy.replace("pjit-", "pjit+").split("+"))
    return any(
        set(asked[1:].replace("pjit-", "pjit+").split("+")) == words if asked.startswith("=") else asked in words
        for asked in question.strategies
    )


def _scheduled(question: Question, found: Candidate) -> Iterator[Candidate]:
    if found.pipeline == 1:
        yield found
        return
    if found.framework == "jax":
        yield replace(found, schedule="gpipe")
        return
    yield replace(found, schedule="gpipe")
    yield found
    for virtual in _VIRTUAL:
        if _is_even(question.architecture.layers, found.pipeline * virtual):
            yield replace(found, schedule="interleaved", virtual=virtual)


def _fills(layout: Candidate, accumulate: int) -> bool:
    """Fewer micro-batches than stages leave more than half of a step idle; interleaving takes them in rounds."""
    if layout.virtual > 1:
        return accumulate % layout.pipeline == 0
    return accumulate >= layout.pipeline


def _micro_batches(each: int, asked: int) -> list[int]:
    if asked:
        return [asked] if each % asked == 0 else []
    powers = [micro for micro in (2**power for power in range(_MOST_MICRO.bit_length())) if each % micro == 0]
    return sorted({*powers, *([each] if each <= _MOST_MICRO else [])})


def _is_even(layers: int, stages: int) -> bool:
    """Whether so many stages leave at most a few places empty: the table and the output layer take a layer's place."""
    if stages > layers:
        return False
    empty = -layers % stages
    return empty <= min(_MOST_UNEVEN, _UNEVEN_FRAC * layers)


def _divisors(number: int, most: int) -> list[int]:
    return [divisor for divisor in range(1, min(number, most) + 1) if number % divisor == 0]
