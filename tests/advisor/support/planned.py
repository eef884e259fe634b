"""Candidates and predictions of them, made by hand: a step is drawn as text, one character for 10 ns."""

from __future__ import annotations

from meshscope.advisor.architecture import Architecture
from meshscope.advisor.candidate import Candidate, Numerics
from meshscope.advisor.cluster import Cluster, DeviceSpec, Link
from meshscope.advisor.figures import Figure
from meshscope.advisor.forecast import Fit, Forecast, MemoryForecast, PredictedSpan, TimeForecast
from meshscope.advisor.simulated import Simulated
from meshscope.kinds import Kind

TICK_NS = 10
NUMERICS = Numerics("bf16 mixed", "bf16", 4.0, 4.0, 8.0, cast_bytes=2.0)
MODEL = Architecture("1.3b", layers=24, d_model=2048, heads=32, kv_heads=32, d_ff=8192, vocab=50304, is_gated=False)
NVLINK = Link("NVLink", 450e9, 2e-6)
H100 = DeviceSpec("H100-SXM", 80e9, {"bf16": 989e12}, 3.35e12, usable_bytes=79e9)


def cluster(devices: int = 8, device: DeviceSpec = H100) -> Cluster:
    return Cluster(device, devices, min(devices, 8), NVLINK, Link("InfiniBand", 50e9, 5e-6))


def candidate(strategy: str = "ddp", devices: int = 8, **changed: object) -> Candidate:
    axes: dict[str, object] = {"replicate": devices} if strategy == "ddp" else {"shard": devices, "zero_stage": 3}
    known = {"seq_len": 2048, "micro_batch": 4, "numerics": NUMERICS, **axes, **changed}
    return Candidate(strategy, "torch", f"torch-{strategy}", **known)  # type: ignore[arg-type]


def spans(drawing: str, *, rank_class: int = 0) -> tuple[PredictedSpan, ...]:
    """Lines ``lane name drawing`` (a collective where its name says one); ``#`` is a piece of it, ``.`` nothing.

    ``|`` begins another piece where two touch.
    """
    found = []
    for line in drawing.strip().splitlines():
        lane, name, picture = line.split()
        for start, end in _pieces(picture):
            is_met = lane.startswith("comm")
            found.append(
                PredictedSpan(
                    rank_class,
                    lane,
                    name,
                    Kind.COLLECTIVE if is_met else Kind.COMPUTE,
                    start * TICK_NS,
                    end * TICK_NS,
                    size_bytes=4_000_000 if is_met else 0,
                    group="data" if is_met else "",
                    phase="" if is_met else "forward",
                )
            )
    return tuple(found)


def _pieces(picture: str) -> list[tuple[int, int]]:
    found, at = [], None
    for place, mark in enumerate(f"{picture}."):
        if at is not None and mark in ".|":
            found.append((at, place))
            at = None
        if at is None and mark in "#|":
            at = place
    return found


def time(some: tuple[PredictedSpan, ...], step_ns: int, *, off_frac: float = 0.05) -> TimeForecast:
    """What the drawing adds up to, worked out by ticks: of the first class."""
    mine = [span for span in some if span.rank_class == some[0].rank_class]
    busy = {kind: _ticks(mine, kind) for kind in (Kind.COMPUTE, Kind.COLLECTIVE)}
    compute, met = busy[Kind.COMPUTE], busy[Kind.COLLECTIVE]
    tick_s = TICK_NS / 1e9
    step_s = step_ns / 1e9
    exposed_s, compute_s = len(met - compute) * tick_s, len(compute) * tick_s
    return TimeForecast(
        step_s=Figure(step_s, step_s * (1 - off_frac), step_s * (1 + off_frac), "interpolated"),
        compute_s=compute_s,
        exposed_s=exposed_s,
        bubble_s=0.0,
        idle_s=step_s - compute_s - exposed_s,
        hidden_s=len(met & compute) * tick_s,
        exposed_by={},
        mfu_frac=0.4,
        tokens_per_s=1e5,
        spans=some,
    )


def _ticks(some: list[PredictedSpan], kind: Kind) -> set[int]:
    return {
        tick for span in some if span.kind == kind for tick in range(span.start_ns // TICK_NS, span.end_ns // TICK_NS)
    }


def memory(allocated_bytes: float = 30e9) -> MemoryForecast:
    parts = {"parameters": 0.2, "gradients": 0.2, "optimizer": 0.4, "activations": 0.2}
    figures = {name: _about(allocated_bytes * frac) for name, frac in parts.items()}
    whole = _about(allocated_bytes)
    return MemoryForecast(figures, whole, _about(allocated_bytes * 1.04), _about(allocated_bytes + 2e9), 79e9, Fit.FITS)


def _about(value: float) -> Figure:
    return Figure(value, value * 0.97, value * 1.03, "analytic")


DDP = """
    compute layer      ####.####|####....
    comm    all_reduce ......##.##..####.
"""
FSDP = """
    compute layer          ..####.####|####...
    comm    all_gather     ##.##..............
    comm2   reduce_scatter ..........###..###.
"""


def simulated(
    strategy: str = "ddp", drawing: str = "", devices: int = 8, *, off_frac: float = 0.05, **changed: object
) -> Simulated:
    drawn = spans(drawing or (DDP if strategy == "ddp" else FSDP))
    end_ns = max(span.end_ns for span in drawn) + TICK_NS
    forecast = Forecast(memory(30e9 if strategy == "ddp" else 20e9), time(drawn, end_ns, off_frac=off_frac))
    return Simulated(MODEL, candidate(strategy, devices, **changed), cluster(devices), forecast)
