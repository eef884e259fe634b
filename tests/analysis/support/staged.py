"""A pipeline of two stages, made by hand: GPipe over two micro-batches, a forward pass of 2 ms, a backward one of 4.

    rank 0  F0 F1 wait--------- B0---- B1----      time 0 … 18 ms
    rank 1  wait F0 F1 B0---- B1---- wait-----

Each stage computes for 12 of 18 ms and waits for 6: (p − 1) / (m + p − 1) = 1 / 3.
"""

from __future__ import annotations

from typing import Any

from drawn import run
from made_spans import Made, window

from meshscope.kinds import Kind
from meshscope.run import Run
from meshscope.spans import ProcessGroup, Window

MS = 1_000_000
STEP_MS = 18
OPTIONS = {"schedule": "gpipe", "stages": 2, "accumulate": 2}
_GROUPS = (ProcessGroup("0", 2, (0, 1)),)


def ops(start_ms: float, end_ms: float) -> Made:
    return Made(Kind.COMPUTE, "main", round(start_ms * MS), round(end_ms * MS), "aten::mm")


def sends(
    start_ms: float, end_ms: float, pair: str = "ranks 0 to 1", *, size_bytes: int = 4096, before_ns: int = 0
) -> Made:
    return _passes("send", start_ms, end_ms, pair, size_bytes, before_ns)


def receives(
    start_ms: float, end_ms: float, pair: str = "ranks 0 to 1", *, size_bytes: int = 4096, before_ns: int = 0
) -> Made:
    return _passes("recv", start_ms, end_ms, pair, size_bytes, before_ns)


def _passes(kind: str, start_ms: float, end_ms: float, pair: str, size_bytes: int, before_ns: int) -> Made:
    """A span of gloo's on the thread that asks for it, and the call that asked ``before_ns`` before, where it did."""
    start, end = round(start_ms * MS), round(end_ms * MS)
    call = Made(Kind.LAUNCH, "main", start - before_ns, start, f"c10d::{kind}") if before_ns else None
    return Made(
        Kind.COLLECTIVE, "main", start, end, f"gloo:{kind}", call, collective=kind, size_bytes=size_bytes, group=pair
    )


def ties(start_ms: float, end_ms: float) -> Made:
    start, end = round(start_ms * MS), round(end_ms * MS)
    return Made(Kind.COLLECTIVE, "gloo", start, end, "gloo:all_reduce", collective="all_reduce", size_bytes=2**20)


def first(*, longer_ms: float = 0.0) -> list[Made]:
    """Rank 0; its forward pass of the second micro-batch may take longer than the schedule says."""
    return [
        ops(0, 2), sends(2, 4), ops(2, 4 + longer_ms), sends(4 + longer_ms, 4 + longer_ms),
        receives(4 + longer_ms, 10, "ranks 1 to 0"), ops(10, 14), receives(14, 14, "ranks 1 to 0"), ops(14, 18),
        ties(18, 18),
    ]  # fmt: skip


def last() -> list[Made]:
    return [
        receives(0, 2), ops(2, 4), receives(4, 4), ops(4, 6), ops(6, 10), sends(10, 12, "ranks 1 to 0"), ops(10, 14),
        sends(14, 14, "ranks 1 to 0"), ties(14, 18),
    ]  # fmt: skip


def stage(rank: int, spans: list[Made], **about: Any) -> Window:
    known: dict[str, Any] = {
        "steps": [(0, STEP_MS * MS)], "device_kind": "cpu", "host": "node", "world": 2, "process_groups": _GROUPS,
    }  # fmt: skip
    return window(spans, rank=rank, **(known | about))


def staged(*windows: Window, **about: Any) -> Run:
    known: dict[str, Any] = {
        "strategy": "pp-gpipe", "device_kind": "cpu", "ranks": 2, "cores": 8, "options": OPTIONS,
        "windows": windows or (stage(0, first()), stage(1, last())),
    }  # fmt: skip
    return run(**(known | about))
