"""Whether a published run claims more than its devices can multiply.

The arithmetic is that of a claim (`analysis.claims`): the FLOPs that cannot be left out, over the time, against the
best rate that anybody measured with plain matrix products on that device in that precision, or, where nobody published
one, against the usual share of the datasheet's peak.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from meshscope.advisor.cells import number, whole
from meshscope.advisor.cluster import DeviceSpec
from meshscope.advisor.coverage import NotCovered
from meshscope.advisor.machines import device_of
from meshscope.advisor.published import compute_of, is_pretraining, model_of

_USUAL_CEILING_FRAC = 0.9
"""Of a datasheet's peak, where nobody published a measured ceiling: the best that is measured on any device is 0.87."""


def is_impossible(row: Mapping[str, str], folder: Path | None = None) -> bool:
    """False too where the row does not say enough to tell."""
    if not is_pretraining(row):
        return False
    try:
        model, device, compute = model_of(row), device_of(row, folder), compute_of(row)
    except NotCovered:
        return False
    seq_len, rate = whole(row, "seq_len"), tokens_per_s_per_device(row)
    ceiling = ceiling_flops_per_s(device, compute)
    if not seq_len or not rate or not ceiling:
        return False
    return rate * model.flop_per_token(seq_len) > ceiling


def ceiling_flops_per_s(device: DeviceSpec, compute: str) -> float:
    """0 where not even a peak is known."""
    measured = device.measured_flops_per_s.get(compute, 0.0)
    if not measured and compute == "fp16":
        measured = device.measured_flops_per_s.get("bf16", 0.0)
    return measured or _USUAL_CEILING_FRAC * device.peak_flops_per_s.get(compute, 0.0)


def tokens_per_s_per_device(row: Mapping[str, str]) -> float:
    """As the row claims, by whichever of its measured columns says it; 0 where none does."""
    stated, devices = number(row, "tokens_per_s_per_gpu"), number(row, "n_gpus")
    if stated:
        return stated
    samples, seq_len = number(row, "samples_per_s_total"), number(row, "seq_len")
    if samples and seq_len and devices:
        return samples * seq_len / devices
    time_s = measured_step_s(row)
    tokens = number(row, "tokens_per_step") or number(row, "global_batch_seqs") * seq_len
    return tokens / time_s / devices if time_s and tokens and devices else 0.0


def measured_step_s(row: Mapping[str, str]) -> float:
    """As the row states it, or as its rate of tokens or samples implies; 0 where neither is there."""
    stated = number(row, "step_time_s")
    if stated:
        return stated
    samples, rate = number(row, "global_batch_seqs"), number(row, "samples_per_s_total")
    if samples and rate:
        return samples / rate
    tokens = number(row, "tokens_per_step") or samples * number(row, "seq_len")
    each = number(row, "tokens_per_s_per_gpu")
    return tokens / each / number(row, "n_gpus") if tokens and each and number(row, "n_gpus") else 0.0
