"""Degrees and batch of a published run, from columns or else from its strategy's name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from meshscope.advisor.cells import number, text, whole
from meshscope.advisor.coverage import NotCovered
from meshscope.advisor.stacks import Stack


@dataclass(frozen=True)
class Layout:
    """As in `Candidate`."""

    name: str
    devices: int
    seq_len: int
    micro_batch: float
    accumulate: int
    replicate: int
    shard: int
    zero_stage: int
    tensor: int
    pipeline: int
    virtual: int
    context: int
    expert: int


def layout(row: Mapping[str, str], ran: Stack, assumed: list[str]) -> Layout:
    """Raises NotCovered where the devices, the length of a sequence or the batch can be told from nothing."""
    devices = whole(row, "n_gpus")
    if not devices:
        raise NotCovered("the number of devices is not stated")
    named = text(row, "strategy")
    if re.search(r"recipe config", named.lower()):
        assumed.append("layout")
    tensor, pipeline, context, expert = (_degree(row, named, name) for name in ("tp", "pp", "cp", "ep"))
    rest = tensor * pipeline * context
    if devices % rest:
        raise NotCovered(f"{devices} devices do not divide by tensor × pipeline × context = {rest}")
    data, stage = devices // rest, _zero_stage(row, named, ran, devices, assumed)
    shard = _shard(row, named, data, stage)
    seq_len = _seq_len(row)
    micro_batch, accumulate = _batch(row, data, pipeline, seq_len, ran, assumed)
    virtual = _virtual(row, named, pipeline, ran, assumed)
    return Layout(named, devices, seq_len, micro_batch, accumulate, data // shard, shard, stage, tensor, pipeline,
                  virtual, context, expert)  # fmt: skip


def _degree(row: Mapping[str, str], named: str, name: str) -> int:
    found = re.search(rf"(?<![a-z]){name}[ =_-]?(\d+)", named.lower())
    return max(1, whole(row, name) or (int(found[1]) if found else 1))


_STAGE_WORDS = (
    (r"zero[ -_]?0", 0),
    (r"zero[ -_]?1", 1),
    (r"zero[ -_]?2|shard_grad_op", 2),
    (r"zero[ -_]?3|fsdp|full_shard|hsdp", 3),
    (r"dist.?opt|distributed.?optimizer", 1),
    (r"ddp|pmap|\bdp\b|single|data.?parallel", 0),
)


def _zero_stage(row: Mapping[str, str], named: str, ran: Stack, devices: int, assumed: list[str]) -> int:
    if text(row, "zero_stage"):
        return min(3, int(number(row, "zero_stage")))
    found = next((stage for words, stage in _STAGE_WORDS if re.search(words, named.lower())), None)
    if found is not None:
        return found
    if devices == 1:
        return 0
    assumed.append("zero stage")
    return ran.usual_zero_stage


def _shard(row: Mapping[str, str], named: str, data: int, stage: int) -> int:
    if not stage:
        return 1
    said = whole(row, "fsdp_shard")
    if stage == 1 and not said:
        return data
    replicate = whole(row, "dp_replicate")
    shard = said or (data // replicate if replicate > 1 and data % replicate == 0 and stage > 1 else data)
    return shard if data % shard == 0 else data


def _seq_len(row: Mapping[str, str]) -> int:
    said = whole(row, "seq_len")
    tokens, samples = number(row, "tokens_per_step"), number(row, "global_batch_seqs")
    if not said and tokens and samples:
        said = round(tokens / samples)
    if not said:
        raise NotCovered("the length of a sequence is not stated")
    return said


def _batch(
    row: Mapping[str, str], data: int, pipeline: int, seq_len: int, ran: Stack, assumed: list[str]
) -> tuple[float, int]:
    """Samples per micro-batch and data rank, and micro-batches per step."""
    samples = number(row, "global_batch_seqs") or number(row, "tokens_per_step") / seq_len
    micro, many = number(row, "micro_batch_per_dp_rank"), whole(row, "grad_accum")
    if samples and micro and not many:
        many = max(1, round(samples / data / micro))
    if samples and many and not micro:
        micro = samples / data / many
    if samples and not micro:
        each = samples / data
        assumed.append("micro-batch")
        micro = each if ran.framework == "jax" and pipeline == 1 else _usual_micro_batch(each, pipeline, seq_len)
        many = max(1, round(each / micro))
    if not micro:
        raise NotCovered("the batch is not stated")
    if samples and abs(micro * (many or 1) * data / samples - 1) > 0.01:
        # The global batch is what a step was timed over; one of the two finer figures was rounded or means another.
        many = max(1, round(samples / data / micro))
        micro = samples / data / many
    return micro, many or 1


def _usual_micro_batch(each: float, pipeline: int, seq_len: int) -> float:
    """The whole batch of a rank where it is a few thousand tokens and no pipeline wants filling, else one sample."""
    if pipeline == 1 and each * seq_len <= 16_384:
        return each
    return min(each, 1.0) if each >= 1 else each


def _virtual(row: Mapping[str, str], named: str, pipeline: int, ran: Stack, assumed: list[str]) -> int:
    if pipeline == 1:
        return 1
    said = whole(row, "vp") or _degree(row, named, "vp")
    if not whole(row, "vp") and said == 1:
        assumed.append("virtual stages")
        return ran.usual_virtual
    return said
