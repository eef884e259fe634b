"""How far off predictions are, per source of published runs, beside two simple rules."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from meshscope.advisor.cells import number, text
from meshscope.advisor.coverage import NotCovered
from meshscope.advisor.plausibility import ceiling_flops_per_s, measured_step_s
from meshscope.advisor.predictions import GIB, Predicted
from meshscope.advisor.published import Published, published

Row = Mapping[str, str]


@dataclass(frozen=True)
class Errors:
    """Of predictions against measurements, as shares of what was measured (NaN where there is nothing to compare)."""

    count: int
    mean_frac: float
    p90_frac: float
    worst_frac: float
    bias_frac: float

    @property
    def is_empty(self) -> bool:
        return self.count == 0


@dataclass(frozen=True)
class Score:
    """Of one source. ``timed`` rows have a measured step time; ``covered_frac`` of them were predicted. ``inside_frac``
    of those lie in the interval. ``constant_mfu`` and ``roofline`` are the two simple rules on the same rows."""

    source: str
    rows: int
    timed: int
    covered_frac: float
    time: Errors
    inside_frac: float
    allocated: Errors
    reserved: Errors
    constant_mfu: Errors
    roofline: Errors
    worst_run: str = ""


def errors(pairs: Iterable[tuple[float, float]]) -> Errors:
    """Of (predicted, measured)."""
    off = [predicted / measured - 1.0 for predicted, measured in pairs if measured > 0 and math.isfinite(predicted)]
    if not off:
        return Errors(0, math.nan, math.nan, math.nan, math.nan)
    sizes = sorted(abs(each) for each in off)
    at = (len(sizes) - 1) * 0.9
    low = math.floor(at)
    p90 = sizes[low] + (sizes[min(low + 1, len(sizes) - 1)] - sizes[low]) * (at - low)
    return Errors(len(off), sum(sizes) / len(sizes), p90, sizes[-1], sum(off) / len(off))


def measured_memory_gib(row: Row) -> tuple[float, float]:
    """Allocated and reserved as the row states them, 0 for what it does not; what was claimed or only counted is no
    measurement."""
    kind, stated = text(row, "mem_kind").lower(), number(row, "mem_gib_per_gpu")
    if not stated or re.search(r"analytic|claim|breakdown", kind):
        return 0.0, 0.0
    both = re.search(r"reserved\D*(\d+(?:\.\d+)?)", kind)
    if "allocated" in kind:
        return stated, float(both[1]) if both else 0.0
    return (0.0, stated) if "reserved" in kind or not kind else (0.0, 0.0)


def flops_of(asked: Published) -> float:
    """Of a step, on one device, by the model alone."""
    laid = asked.candidate
    return asked.architecture.flop_per_token(laid.seq_len) * laid.tokens_per_step / laid.devices


def constant_mfu(rows: Iterable[Row]) -> dict[str, float]:
    """The median share of the datasheet's peak that these rows reached, by device family, and of all as "": the first
    simple rule. Rows that are not covered or not timed teach nothing."""
    shares: dict[str, list[float]] = {}
    for row, asked in _asked(rows):
        measured, device = measured_step_s(row), asked.cluster.device
        peak = device.peak_flops_per_s.get(asked.candidate.numerics.compute, 0.0)
        if measured and peak:
            share = flops_of(asked) / measured / peak
            shares.setdefault(device.family, []).append(share)
            shares.setdefault("", []).append(share)
    return {family: median(found) for family, found in shares.items()}


def constant_mfu_s(asked: Published, shares: Mapping[str, float]) -> float:
    """The step by the first simple rule."""
    device = asked.cluster.device
    share = shares.get(device.family, shares.get("", 0.4))
    peak = device.peak_flops_per_s.get(asked.candidate.numerics.compute, 0.0)
    return flops_of(asked) / (share * peak) if peak else math.nan


def roofline_s(asked: Published) -> float:
    """The step by the second simple rule: the products at the best measured rate, what is computed again with them,
    and the optimizer's state through memory at the datasheet's rate."""
    device, laid = asked.cluster.device, asked.candidate
    rate = ceiling_flops_per_s(device, laid.numerics.compute)
    if not rate:
        return math.nan
    again = 4 / 3 if laid.checkpointing == "full" else 1.0
    state = asked.architecture.parameters * 28.0 / (laid.tensor * laid.pipeline * laid.sharded_over)
    return again * flops_of(asked) / rate + state / device.memory_bytes_per_s


def _asked(rows: Iterable[Row]) -> list[tuple[Row, Published]]:
    found = []
    for row in rows:
        try:
            found.append((row, published(row)))
        except NotCovered:
            continue
    return found


def scores(rows: Sequence[Row], predicted: Sequence[Predicted], shares: Mapping[str, float]) -> tuple[Score, ...]:
    """Per source, in the order of the table. What claims the impossible is not compared with anything."""
    sources = dict.fromkeys(text(row, "source_key") for row in rows)
    pairs = list(zip(rows, predicted, strict=True))
    return tuple(
        score(name, [each for each in pairs if text(each[0], "source_key") == name], shares) for name in sources
    )


def score(source: str, pairs: Sequence[tuple[Row, Predicted]], shares: Mapping[str, float]) -> Score:
    """Of some rows with their predictions."""
    honest = [(row, said) for row, said in pairs if not said.impossible]
    timed = [(row, said) for row, said in honest if measured_step_s(row)]
    told = [(row, said, said.step_time_s) for row, said in timed if said.step_time_s is not None]
    times = [(figure.value, measured_step_s(row)) for row, _, figure in told]
    inside = [figure.low <= measured_step_s(row) <= figure.high for row, _, figure in told]
    asked = _asked([row for row, _, _ in told])
    worst = max(told, key=lambda each: abs(each[2].value / measured_step_s(each[0]) - 1), default=None)
    held = [(said.memory, measured_memory_gib(row)) for row, said in honest if said.memory is not None]
    return Score(
        source,
        len(pairs),
        len(timed),
        len(told) / len(timed) if timed else math.nan,
        errors(times),
        sum(inside) / len(inside) if inside else math.nan,
        errors((found.allocated.value / GIB, gib[0]) for found, gib in held),
        errors((found.reserved.value / GIB, gib[1]) for found, gib in held),
        errors((constant_mfu_s(each, shares), measured_step_s(row)) for row, each in asked),
        errors((roofline_s(each), measured_step_s(row)) for row, each in asked),
        worst[1].run_id if worst else "",
    )
