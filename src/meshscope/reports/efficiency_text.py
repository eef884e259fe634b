"""Model FLOPs, MFU and claims as text and as plain values, with their arithmetic."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from meshscope.analysis.claims import IMPOSSIBLE, Bound, Judgement
from meshscope.analysis.efficiency import Efficiency
from meshscope.analysis.model_flops import Flops
from meshscope.reports.columns import wrapped
from meshscope.units import NS_PER_S, duration, percent, printable

_SCALES = ((1e15, "PFLOP/s"), (1e12, "TFLOP/s"), (1e9, "GFLOP/s"), (1e6, "MFLOP/s"))


def efficiency_lines(found: Efficiency) -> list[str]:
    """One paragraph of a run's report; nothing of a trace alone."""
    if math.isnan(found.flop_per_step):
        return [] if "trace" in found.why else wrapped(f"MFU: {printable(found.why)}", hanging="  ")
    if math.isnan(found.flops_per_s):
        return []
    rate = f"model FLOPs: {_rate(found.flops_per_s)} per rank ({_counted(found)})"
    if found.why:
        return wrapped(f"{rate}; MFU: {found.why}", hanging="  ")
    of = f"the {_rate(found.peak_flops_per_s)} of {found.device} in {found.precision}, dense"
    said = f"{rate}; MFU {percent(found.mfu_frac)} of {of}"
    if not math.isnan(found.measured_frac):
        said += f"; {percent(found.measured_frac)} of the best matrix product measured on one"
    if found.is_impossible:
        said += ". That is impossible: the model, the batch or the device is not what the recording says"
    return wrapped(said, hanging="  ")


def efficiency_values(found: Efficiency) -> dict[str, Any]:
    """For JSON: what is known."""
    numbers = {
        "flop_per_step": found.flop_per_step,
        "flops_per_s_per_rank": found.flops_per_s,
        "peak_flops_per_s": found.peak_flops_per_s,
        "mfu_frac": found.mfu_frac,
        "of_measured_frac": found.measured_frac,
    }
    said: dict[str, Any] = {name: value for name, value in numbers.items() if math.isfinite(value)}
    if found.flops is not None:
        said |= {"parameters": round(found.flops.parameters), "flop_per_token": found.flops.per_token}
        said |= {"tokens_per_step": found.tokens_per_step}
    if math.isfinite(found.flop_per_sample):
        said |= {"flop_per_sample": found.flop_per_sample, "flop_how": printable(found.how)}
    words = {"device": printable(found.device), "precision": found.precision, "source": found.source}
    said |= {name: word for name, word in words.items() if word}
    return said | ({"impossible": True} if found.is_impossible else {})


def claim_lines(found: Judgement) -> list[str]:
    """The verdict on a claim, and the arithmetic it rests on."""
    claim = found.claim
    on = f"{claim.model} on {claim.count} × {claim.device.name}, {claim.batch} × {claim.seq} tokens"
    share = f"{percent(found.mfu_frac)} of the datasheet's {claim.precision} peak"
    lines = wrapped(f"{found.verdict}: {on} in {_time(claim.time_s)} would be {share}.", indent="")
    lines.append("")
    peak = claim.device.peak_flops_per_s[claim.precision]
    rows = [
        ("FLOP per token", _per_token(found.bound.counted)),
        (
            "FLOP per step",
            f"{_power(found.bound.counted.per_token)} × {claim.batch} × {claim.seq} = {_power(found.bound.flop)}",
        ),
        (
            "peak",
            f"{claim.count} × {_power(peak)} = {_power(found.bound.flops_per_s)} FLOP/s ({claim.precision}, dense)",
        ),
        ("bound", f"{_division(found.bound)} at the peak"),
    ]
    if found.least.time_s < found.bound.time_s:
        rows.append(("at least", f"{_time(found.least.time_s)}: {_least(found)}"))
    best = "85 % of the peak, as none is published" if found.is_ceiling_assumed else "the best measured on one"
    rows.append(("ceiling", f"{_division(found.ceiling)} for matrix products: {best}"))
    for name, text in rows:
        lines += wrapped(f"{name:<16}{text}", hanging=" " * 16)
    return [*lines, *_notes(found)]


def _least(found: Judgement) -> str:
    least = f"{_power(found.least.counted.parameters)} parameters"
    if not found.claim.shape.layers:
        return f"{least}, if the number of parameters was rounded up"
    return f"{least} (those that are multiplied; not the table of positions), and attention"


def _notes(found: Judgement) -> list[str]:
    claim, shape = found.claim, found.claim.shape
    notes = [f"datasheet: {claim.device.source}"]
    if claim.is_precision_assumed:
        notes.append(f"{claim.precision} is assumed; name another precision to have it used")
    elif claim.precision == "tf32" and "fp32" in claim.text.lower():
        notes.append("fp32 is taken as tf32, which frameworks may multiply it in")
    if shape.layers:
        notes.append(
            f"N = {_power(shape.parameters)} counts all parameters, the token table once since it is the output layer "
            f"too; {_power(shape.non_embedding)} are in no table"
        )
    else:
        notes.append("a number of parameters alone says nothing of the layers: attention is left out")
    if found.verdict == IMPOSSIBLE:
        notes.append("no kernel can be that fast: the model, the batch, the devices or the time is not as stated")
    return [line for note in notes for line in wrapped(f"– {note}", indent="", hanging="  ")]


def claim_values(found: Judgement) -> dict[str, Any]:
    """For JSON."""
    claim = found.claim
    bounds = {"bound": found.bound, "least": found.least, "ceiling": found.ceiling}
    return {
        "claim": printable(claim.text),
        "verdict": found.verdict,
        "mfu_frac": found.mfu_frac,
        "time_ns": round(claim.time_s * NS_PER_S),
        **{f"{name}_ns": round(bound.time_s * NS_PER_S) for name, bound in bounds.items()},
        **({} if found.is_ceiling_assumed else {"measured_ns": round(found.ceiling.time_s * NS_PER_S)}),
        "flop_per_step": found.bound.flop,
        "flop_per_token": asdict(found.bound.counted),
        "peak_flops_per_s": found.bound.flops_per_s,
        "devices": claim.count,
        "device": claim.device.name,
        "precision": claim.precision,
        "batch": claim.batch,
        "seq": claim.seq,
        "source": claim.device.source,
    }


def _counted(found: Efficiency) -> str:
    """What a token or a sample takes, and how that is known."""
    if found.flops is not None:
        return f"per token {_per_token(found.flops)}"
    return f"per sample {_power(found.flop_per_sample)}: {printable(found.how)}"


def _per_token(counted: Flops) -> str:
    matrices = f"6 × {_power(counted.parameters)}"
    if not counted.attention:
        return f"{matrices} = {_power(counted.per_token)}"
    return f"{matrices} + {counted.attention_factors} of attention = {_power(counted.per_token)}"


def _power(value: float) -> str:
    """Four digits: ``2115000``, ``1.313e9``."""
    return f"{value:.4g}".replace("e+0", "e").replace("e+", "e")


def _division(bound: Bound) -> str:
    return f"{_power(bound.flop)} / {_power(bound.flops_per_s)} = {_time(bound.time_s)}"


def _time(seconds: float) -> str:
    return duration(seconds * NS_PER_S)


def _rate(flops_per_s: float) -> str:
    for scale, unit in _SCALES:
        if flops_per_s >= scale:
            return f"{flops_per_s / scale:.3g} {unit}"
    return f"{flops_per_s:.3g} FLOP/s"
