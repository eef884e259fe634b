"""A rank's simulated step as the trace that torch.profiler would have written, marked as simulated in its head.

Kineto's Chrome trace is what every viewer of such steps opens. Each span that was predicted is a kernel on the stream
that it was predicted for; a collective carries what NCCL's kernels carry (its name, group, size and type), so that it
is read by the same rules as a real one. The processes are named *simulated*, for viewers that do not read the head.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import msgspec

from meshscope import kinds
from meshscope.advisor.candidate import Candidate
from meshscope.advisor.forecast import PredictedSpan
from meshscope.advisor.simulated_ranks import group
from meshscope.experiment import Simulation
from meshscope.kinds import Kind
from meshscope.units import ranges

SIMULATED = "simulated"
_HOST_TID = 1
_FIRST_STREAM = 7
"""The number that CUDA gives the stream of a process's own work; those of NCCL come after."""

_CATEGORIES = {Kind.COMPUTE: "kernel", Kind.COLLECTIVE: "kernel", Kind.COPY: "gpu_memcpy"}
_BY_WIDTH = {1: "Float8_e4m3fn", 2: "BFloat16", 4: "Float"}
_DATA = ("", "data", "shard", "replicate", "data_context", "shard_context", "world")


@dataclass(frozen=True)
class Sketch:
    """What is drawn of one rank: the spans of its class, within one step of ``step_ns``."""

    rank: int
    device: int
    spans: tuple[PredictedSpan, ...]
    step: int
    step_ns: int


@dataclass
class _Drawing:
    """Counts what has to be numbered while events are made."""

    streams: dict[str, int] = field(default_factory=dict)
    groups: dict[str, tuple[int, ...]] = field(default_factory=dict)
    sequence: dict[str, int] = field(default_factory=dict)

    def stream(self, lane: str) -> int:
        return self.streams.setdefault(lane, _FIRST_STREAM + 4 * len(self.streams))

    def next_of(self, group: str) -> int:
        self.sequence[group] = self.sequence.get(group, -1) + 1
        return self.sequence[group]


def trace(sketch: Sketch, candidate: Candidate, simulation: Simulation, *, t0_unix_ns: int, device_name: str) -> bytes:
    """The whole file, compressed; equal for equal arguments."""
    drawing = _Drawing()
    events = [*_step(sketch), *_phases(sketch)]
    events += [_event(span, sketch, candidate, drawing) for span in _ordered(sketch.spans)]
    said = {
        SIMULATED: {"by": simulation.by, "constants": simulation.constants, "cluster": simulation.cluster},
        "schemaVersion": 1,
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": t0_unix_ns,
        "deviceProperties": [{"id": sketch.device, "name": f"{device_name} ({SIMULATED})"}],
        "distributedInfo": {
            "backend": "nccl",
            "rank": sketch.rank,
            "world_size": candidate.devices,
            "pg_config": [
                {"pg_name": name, "pg_desc": name, "pg_size": len(ranks), "ranks": list(ranks)}
                for name, ranks in drawing.groups.items()
            ],
        },
        "traceEvents": [*_names(sketch, drawing), *events],
    }
    return gzip.compress(msgspec.json.encode(said), mtime=0)


def _ordered(spans: Sequence[PredictedSpan]) -> list[PredictedSpan]:
    """By start; what is no work of a device (the host's share, a bubble, a wait) is not drawn: it is a gap."""
    kept = [span for span in spans if span.kind in _CATEGORIES and span.end_ns > span.start_ns]
    return sorted(kept, key=lambda span: (span.start_ns, span.end_ns, span.lane))


def _event(span: PredictedSpan, sketch: Sketch, candidate: Candidate, drawing: _Drawing) -> dict[str, Any]:
    stream = drawing.stream(span.lane)
    args: dict[str, Any] = {"device": sketch.device, "stream": stream, SIMULATED: True}
    if span.phase:
        args["phase"] = span.phase
    if span.kind == Kind.COLLECTIVE:
        args |= _met(span, sketch, candidate, drawing)
    elif span.size_bytes:
        args["bytes"] = span.size_bytes
    return {
        "ph": "X",
        "cat": _CATEGORIES[span.kind],
        "name": _name(span),
        "pid": sketch.device,
        "tid": stream,
        "ts": _us(span.start_ns),
        "dur": _us(span.end_ns - span.start_ns),
        "args": args,
    }


def _name(span: PredictedSpan) -> str:
    """What computes must not be called as a library calls what communicates: it would be read as that."""
    if span.kind != Kind.COMPUTE:
        return span.name
    return span.name if _is_read_as_compute(span.name) else f"triton_fused_{span.name}"


def _is_read_as_compute(name: str) -> bool:
    return next(rule.kind for rule in kinds.KERNELS if rule.finds(name)) == Kind.COMPUTE


def _met(span: PredictedSpan, sketch: Sketch, candidate: Candidate, drawing: _Drawing) -> dict[str, Any]:
    """What a kernel of NCCL's says of its collective. Sizes are those of the whole tensor, as nccl-tests counts."""
    ranks = group(candidate, sketch.rank, span.group)
    name = f"{span.group or 'world'} {ranges(ranks).replace('–', '-')}"
    drawing.groups.setdefault(name, ranks)
    collective = kinds.collective(span.name)
    told: dict[str, Any] = {
        "Collective name": collective,
        "Process Group Name": name,
        "Group size": len(ranks),
        "Seq": drawing.next_of(name),
    }
    if span.size_bytes:
        width = _width(span, collective, candidate)
        told |= {"dtype": _BY_WIDTH[width]} | _elements(collective, round(span.size_bytes / width), len(ranks))
    return told


def _width(span: PredictedSpan, collective: str, candidate: Candidate) -> int:
    """Bytes of an element: gradients travel in a type of their own, parameters as they are cast, the rest is computed
    in what matrices are multiplied in."""
    numerics = candidate.numerics
    computed = 4.0 if numerics.compute in ("fp32", "tf32") else 2.0
    if span.group in _DATA and collective in ("all_reduce", "reduce_scatter"):
        computed = numerics.reduce_bytes
    elif span.group in _DATA and collective == "all_gather":
        computed = numerics.cast_bytes or numerics.parameter_bytes
    return min(_BY_WIDTH, key=lambda width: abs(width - computed))


def _elements(collective: str, whole: int, ranks: int) -> dict[str, int]:
    """What goes in and what comes out: of an all-gather a rank puts in its part, of a reduce-scatter it gets one."""
    part = max(whole // max(ranks, 1), 1)
    inside = part if collective == "all_gather" else whole
    outside = part if collective == "reduce_scatter" else whole
    return {"In msg nelems": inside, "Out msg nelems": outside}


def _step(sketch: Sketch) -> Iterator[dict[str, Any]]:
    yield _annotation(f"ProfilerStep#{sketch.step}", 0, sketch.step_ns, sketch)


def _phases(sketch: Sketch) -> Iterator[dict[str, Any]]:
    """Where each phase of the step begins and ends, as far as it is one stretch."""
    bounds: dict[str, tuple[int, int]] = {}
    for span in sketch.spans:
        if span.phase and span.kind == Kind.COMPUTE:
            start_ns, end_ns = bounds.get(span.phase, (span.start_ns, span.end_ns))
            bounds[span.phase] = (min(start_ns, span.start_ns), max(end_ns, span.end_ns))
    ordered = sorted(bounds.items(), key=lambda item: item[1])
    if all(one[1][1] <= other[1][0] for one, other in pairwise(ordered)):
        for name, (start_ns, end_ns) in ordered:
            yield _annotation(f"{name} ({SIMULATED})", start_ns, end_ns, sketch)


def _annotation(name: str, start_ns: int, end_ns: int, sketch: Sketch) -> dict[str, Any]:
    return {
        "ph": "X",
        "cat": "user_annotation",
        "name": name,
        "pid": 1000 + sketch.rank,
        "tid": _HOST_TID,
        "ts": _us(start_ns),
        "dur": _us(end_ns - start_ns),
        "args": {},
    }


def _names(sketch: Sketch, drawing: _Drawing) -> Iterator[Mapping[str, Any]]:
    pid = 1000 + sketch.rank
    yield _meta("process_name", sketch.device, 0, f"rank {sketch.rank}, device {sketch.device} ({SIMULATED})")
    yield _meta("process_name", pid, 0, f"rank {sketch.rank}, host ({SIMULATED})")
    yield _meta("thread_name", pid, _HOST_TID, f"steps ({SIMULATED})")
    for lane, stream in drawing.streams.items():
        yield _meta("thread_name", sketch.device, stream, f"stream {stream} {lane} ({SIMULATED})")


def _meta(what: str, pid: int, tid: int, name: str) -> Mapping[str, Any]:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "ts": 0, "args": {"name": name}}


def _us(ns: int) -> msgspec.Raw:
    """Nanoseconds as the decimal microseconds of the format, to the last digit."""
    return msgspec.Raw(f"{ns // 1000}.{ns % 1000:03d}".encode())
