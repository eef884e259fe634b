"""The time of a step on CPU ranks, as a forecast; see `cpu_steps` for what it is made of."""

from __future__ import annotations

from meshscope.advisor.architecture import Architecture
from meshscope.advisor.candidate import Candidate
from meshscope.advisor.cluster import Cluster
from meshscope.advisor.cpu_costs import CpuCosts, cpu_costs
from meshscope.advisor.cpu_steps import CpuStep, cpu_step
from meshscope.advisor.figures import Figure, Source
from meshscope.advisor.forecast import Term, TimeForecast
from meshscope.advisor.multipliers import NEUTRAL, Multipliers

COLD_FRAC = 1.0
"""How far off a step is that nothing was measured for: cores differ by that much from machine to machine."""

_WORDS = {
    "matmul": "matrix products",
    "attention": "attention",
    "memory_bound": "other operators",
    "stream": "passes over parameters",
    "launch": "Python and dispatch",
}


def is_cpu(cluster: Cluster) -> bool:
    """Whether its devices are CPU ranks."""
    return cluster.device.family == "cpu"


def cpu_timing(
    architecture: Architecture, candidate: Candidate, cluster: Cluster, multipliers: Multipliers = NEUTRAL
) -> TimeForecast:
    """Raises NotCovered for what is not modelled of CPU ranks."""
    costs = cpu_costs(cluster, candidate.numerics.compute, multipliers)
    step = cpu_step(architecture, candidate, costs)
    is_warm = not multipliers.is_neutral
    frac = multipliers.provenance.residual_frac if is_warm else COLD_FRAC
    flop = architecture.flop_per_token(candidate.seq_len) * candidate.tokens_per_step
    return TimeForecast(
        step_s=_figure(step.step_s, frac, is_warm=is_warm, where=_where(multipliers)),
        compute_s=step.compute_s,
        exposed_s=step.exposed_s,
        bubble_s=step.bubble_s,
        idle_s=step.launch_s,
        hidden_s=step.hidden_s,
        exposed_by=step.exposed_by,
        mfu_frac=flop / step.step_s / cluster.devices / costs.flop_per_s,
        tokens_per_s=candidate.tokens_per_step / step.step_s,
        terms=tuple(_terms(step, costs, frac, is_warm=is_warm)),
    )


def _where(multipliers: Multipliers) -> str:
    told = multipliers.provenance
    return f"calibrated on {told.strategy}" if told.strategy else "the operators of eager torch on a CPU rank"


def _figure(value: float, frac: float, *, is_warm: bool, where: str) -> Figure:
    source: Source = "interpolated" if is_warm else "assumed"
    return Figure(value, value / (1 + frac), value * (1 + frac), source, where)


def _terms(step: CpuStep, costs: CpuCosts, frac: float, *, is_warm: bool) -> list[Term]:
    found = [
        Term(f"{phase}: {_WORDS[part]}", _figure(seconds, frac, is_warm=is_warm, where=""), 1.0, _spelled(part, costs))
        for (phase, part), seconds in step.by_part.items()
        if seconds
    ]
    if step.contended_s:
        figure = _figure(step.contended_s, frac, is_warm=is_warm, where="")
        found.append(Term("compute beside transfers", figure, 1.0, f"{costs.contention:.2f} times as long"))
    for kind in dict.fromkeys(kind for kind, _, _ in step.transfers):
        each = [(size, seconds) for name, size, seconds in step.transfers if name == kind]
        mean_s = sum(seconds for _, seconds in each) / len(each)
        size = sum(size for size, _ in each) / len(each)
        figure = _figure(mean_s, frac, is_warm=is_warm, where="gloo")
        found.append(Term(kind, figure, len(each), f"{size / 1e6:.2f} MB at {size / mean_s / 1e6:.0f} MB/s"))
    if step.bubble_s:
        figure = _figure(step.bubble_s, frac, is_warm=is_warm, where="")
        found.append(Term("bubble", figure, 1.0, "what the stage waits for the others"))
    return found


def _spelled(part: str, costs: CpuCosts) -> str:
    m = costs.multipliers
    rates = {
        "matmul": f"at {costs.flop_per_s / m.matmul / 1e9:.1f} GFLOP/s",
        "attention": f"{m.attention:.2f} × the assumed rate",
        "memory_bound": f"{m.memory_bound:.2f} × the bytes over {costs.bytes_per_s / 1e9:.1f} GB/s",
        "stream": f"{m.step_tail:.2f} × the bytes over {costs.bytes_per_s / 1e9:.1f} GB/s",
        "launch": f"{m.launch * costs.launch_s * 1e6:.1f} µs an operator",
    }
    return rates[part]
