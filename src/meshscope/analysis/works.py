"""The kernels, operators and collectives of profiled steps by name: how often and how long, step by step."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from meshscope.analysis.device_steps import device_step_ns
from meshscope.analysis.parts import per_window
from meshscope.run import Run
from meshscope.spans import Kind, SpanTable, Window

KINDS = {Kind.COMPUTE: "compute", Kind.COLLECTIVE: "collective", Kind.COPY: "copy"}

Key = tuple[str, str]


@dataclass(frozen=True)
class Work:
    """One name of one kind (compute, collective, copy). ``count`` and ``total_ns`` are means over ranks, one per
    profiled step; over each whole window where no step is complete.

    A collective goes by what it does (``all_reduce``) where that is told, since libraries rename their kernels.
    On CPU ranks operators call operators: an operator's time there is its own, without that of those it calls.
    """

    kind: str
    name: str
    count: tuple[float, ...]
    total_ns: tuple[float, ...]


@dataclass(frozen=True)
class Works:
    """``steps`` are the profiled steps in order (−1 for a window without a complete one); ``ranks`` saw them."""

    steps: tuple[int, ...]
    ranks: int
    works: tuple[Work, ...]

    @property
    def has_steps(self) -> bool:
        return bool(self.steps) and self.steps[0] >= 0


@dataclass(frozen=True)
class Part:
    """Calls and ns of one window by step, then by (kind, name)."""

    rank: int
    steps: dict[int, dict[Key, tuple[int, int]]]


@per_window
def measure(window: Window) -> Part:
    spans = window.spans
    work = spans.where(np.isin(spans.kind, np.array(list(KINDS), dtype=np.uint8)))
    own_ns = _own_ns(work) if window.device_kind == "cpu" else work.end_ns - work.start_ns
    if not window.steps:
        return Part(window.rank, {-1: _by_name(work, own_ns)})
    steps = {}
    for step, (start_ns, end_ns) in zip(window.steps, device_step_ns(window).tolist(), strict=True):
        rows = np.flatnonzero((work.start_ns >= start_ns) & (work.start_ns < end_ns))
        steps[step] = _by_name(work.where(rows), own_ns[rows])
    return Part(window.rank, steps)


def _by_name(work: SpanTable, own_ns: npt.NDArray[np.int64]) -> dict[Key, tuple[int, int]]:
    is_told = (work.kind == Kind.COLLECTIVE) & (work.collective >= 0)
    columns = (work.kind, np.where(is_told, -1, work.name), np.where(is_told, work.collective, -1))
    keys, number = np.unique(np.stack(columns, axis=1).astype(np.int64), axis=0, return_inverse=True)
    count = np.bincount(number.reshape(-1), minlength=len(keys))
    total_ns = np.zeros(len(keys), dtype=np.int64)
    np.add.at(total_ns, number.reshape(-1), own_ns)
    found: dict[Key, tuple[int, int]] = {}
    for row, (kind, name, collective) in enumerate(keys.tolist()):
        key = (KINDS[Kind(kind)], work.names[name] if name >= 0 else work.collectives[collective])
        calls, so_far_ns = found.get(key, (0, 0))
        found[key] = (calls + int(count[row]), so_far_ns + int(total_ns[row]))
    return found


def _own_ns(work: SpanTable) -> npt.NDArray[np.int64]:
    """Each span's time without that of the spans inside it on its lane."""
    duration_ns = work.end_ns - work.start_ns
    own_ns = duration_ns.copy()
    order = np.lexsort((-duration_ns, work.start_ns, work.lane))
    open_rows: list[int] = []
    lane, end_ns = work.lane.tolist(), work.end_ns.tolist()
    start_ns, taken = work.start_ns.tolist(), [0] * len(own_ns)
    for row in order.tolist():
        while open_rows and (lane[open_rows[-1]] != lane[row] or end_ns[open_rows[-1]] <= start_ns[row]):
            open_rows.pop()
        if open_rows:
            taken[open_rows[-1]] += min(end_ns[row], end_ns[open_rows[-1]]) - start_ns[row]
        open_rows.append(row)
    left_ns: npt.NDArray[np.int64] = np.maximum(own_ns - np.array(taken, dtype=np.int64), 0)
    return left_ns


def works(run: Run) -> Works:
    """By total time, largest first. Steps that only some ranks saw are left out, unless no step was seen by all."""
    parts = [measure(window) for window in run.windows if window.device_kind != "none" and window.is_complete]
    seen: dict[int, list[dict[Key, tuple[int, int]]]] = defaultdict(list)
    has_steps = any(step >= 0 for part in parts for step in part.steps)
    for part in parts:
        for step, found in part.steps.items():
            if (step >= 0) == has_steps:
                seen[step].append(found)
    ranks = len({part.rank for part in parts})
    most = max((len(found) for found in seen.values()), default=0)
    steps = tuple(sorted(step for step, found in seen.items() if len(found) == most))
    names = {key for step in steps for found in seen[step] for key in found}
    rows = [_work(key, [seen[step] for step in steps]) for key in names]
    return Works(steps, ranks, tuple(sorted(rows, key=lambda row: (-sum(row.total_ns), row.kind, row.name))))


def _work(key: Key, steps: list[list[dict[Key, tuple[int, int]]]]) -> Work:
    kind, name = key
    calls = [[found.get(key, (0, 0)) for found in ranks] for ranks in steps]
    return Work(
        kind=kind,
        name=name,
        count=tuple(sum(count for count, _ in ranks) / len(ranks) for ranks in calls),
        total_ns=tuple(sum(total_ns for _, total_ns in ranks) / len(ranks) for ranks in calls),
    )
