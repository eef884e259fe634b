"""Where the mean profiled step of a run goes, in parts that add up to it, and how far each scatters over the steps."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from meshscope.analysis import breakdown
from meshscope.analysis.device_steps import device_step_ns
from meshscope.analysis.exposure import waited
from meshscope.analysis.parts import per_window, per_windows
from meshscope.analysis.traced import knows_waiting
from meshscope.analysis.waiting import waiting
from meshscope.intervals import covered_ns
from meshscope.run import Run
from meshscope.spans import Kind, Window

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

PARTS = ("compute", "hidden", "waiting", "transfer", "exposed", "copy", "idle")
"""In the order in which they are shown. Exposed time is either told apart as waiting and transfer, or one part."""

EXPOSED = ("waiting", "transfer", "exposed")

FEWEST = 3
"""Of fewer steps no spread is told."""


@dataclass(frozen=True)
class StepSplit:
    """The mean over all ``pairs`` of a rank and a complete profiled step; nanoseconds.

    ``parts_ns`` add up to ``span_ns`` exactly: compute beside no collective, hidden (compute beside one), exposed
    communication, copies beside neither, idle. Exposed time is two parts where waiting for a late rank can be told from
    ``transfer`` (``tells_waiting``), else the one part ``exposed``. ``spread_ns`` has half the interquartile range over
    ``steps`` steps, each the mean of its ranks: of every part, of ``span``, ``exposed`` and of ``computing`` (compute
    and hidden together); NaN with fewer than FEWEST steps.
    """

    span_ns: int
    parts_ns: dict[str, int]
    spread_ns: dict[str, float]
    steps: int
    pairs: int
    tells_waiting: bool

    @property
    def computing_ns(self) -> int:
        return self.parts_ns["compute"] + self.parts_ns["hidden"]

    @property
    def exposed_ns(self) -> int:
        return sum(self.parts_ns.get(name, 0) for name in EXPOSED)

    def part_ns(self, name: str) -> int | None:
        """One of PARTS; None where it is not told. Where nothing is exposed, no part of that is."""
        return self.parts_ns.get(name, None if name not in EXPOSED or self.exposed_ns else 0)


@per_window
def measure(window: Window) -> Ints:
    """Each complete step of a window, shape (steps, 5): compute alone, hidden, exposed, copy alone, idle."""
    spans, (start_ns, end_ns) = window.spans, device_step_ns(window).T
    compute, collective = spans.busy(Kind.COMPUTE), spans.busy(Kind.COLLECTIVE)
    unions = (compute, collective, collective & compute, compute | collective | spans.busy(Kind.COPY))
    computed, communicated, hidden, busy = (covered_ns(one, start_ns, end_ns) for one in unions)
    exposed = communicated - hidden
    return np.stack((computed - hidden, hidden, exposed, busy - computed - exposed, end_ns - start_ns - busy), axis=1)


@per_windows
def step_split(run: Run) -> StepSplit | None:
    """None where no complete step with device work was profiled."""
    windows = [window for window in run.windows if window.device_kind != "none"]
    mean = breakdown.per_step(breakdown.combine(map(breakdown.measure, windows))) if windows else None
    if mean is None:
        return None
    tells_waiting = _tells_waiting(run, mean.exposed_ns)
    tables = _tables(run, [window for window in windows if breakdown.measure(window).steps], waits=tells_waiting)
    pairs = sum(len(table) for table in tables.values())
    waits_ns = min(round(sum(int(table[:, -1].sum()) for table in tables.values()) / pairs), mean.exposed_ns)
    told = {"waiting": waits_ns, "transfer": mean.exposed_ns - waits_ns}
    series = _series(tables)
    return StepSplit(
        span_ns=mean.span_ns,
        parts_ns={
            "compute": mean.compute_ns - mean.hidden_ns,
            "hidden": mean.hidden_ns,
            **(told if tells_waiting else {"exposed": mean.exposed_ns}),
            "copy": mean.busy_ns - mean.compute_ns - mean.exposed_ns,
            "idle": mean.idle_ns,
        },
        spread_ns={name: _spread(column) for name, column in series.items()},
        steps=len(series["span"]),
        pairs=pairs,
        tells_waiting=tells_waiting,
    )


@per_windows
def each_step(run: Run) -> tuple[tuple[int, breakdown.Breakdown], ...]:
    """Every complete profiled step by its number, the mean over ranks; of copies what is beside nothing else.

    Steps that only some ranks saw are left out, unless all saw none.
    """
    rows: dict[int, list[Ints]] = {}
    for window in run.windows:
        if window.device_kind != "none" and window.steps:
            for step, row in zip(window.steps, measure(window), strict=True):
                rows.setdefault(step, []).append(row)
    most = max((len(found) for found in rows.values()), default=0)
    return tuple(
        (step, _of_parts(np.mean(found, axis=0))) for step, found in sorted(rows.items()) if len(found) == most
    )


def _of_parts(parts_ns: Floats) -> breakdown.Breakdown:
    alone, hidden, exposed, copy, idle = (round(ns) for ns in parts_ns.tolist())
    busy = alone + hidden + exposed + copy
    return breakdown.Breakdown(
        span_ns=busy + idle,
        compute_ns=alone + hidden,
        collective_ns=hidden + exposed,
        copy_ns=copy,
        hidden_ns=hidden,
        exposed_ns=exposed,
        busy_ns=busy,
        idle_ns=idle,
    )


def exposed_waits(run: Run) -> dict[Window, int] | None:
    """By window with complete steps, the exposed waiting for late ranks in all of them, ns.

    None where it cannot be told from transfer.
    """
    windows = [window for window in run.windows if window.device_kind != "none"]
    mean = breakdown.per_step(breakdown.combine(map(breakdown.measure, windows))) if windows else None
    if mean is None or not _tells_waiting(run, mean.exposed_ns):
        return None
    stepped = [window for window in windows if breakdown.measure(window).steps]
    return {window: int(table[:, -1].sum()) for window, table in _tables(run, stepped, waits=True).items()}


def _tells_waiting(run: Run, exposed_ns: int) -> bool:
    """Whether all exposed time is known to be either waiting or transfer; where there is none, that is known too."""
    if not exposed_ns:
        return True
    known = breakdown.parts(run)
    whole = breakdown.combine(part for window, part in known.items() if window.device_kind != "none")
    return whole.stepped.wait_ns is not None and knows_waiting(run)


def _tables(run: Run, windows: list[Window], *, waits: bool) -> dict[Window, Ints]:
    """The complete steps of windows, each of shape (steps, 6): as ``measure``, and last the exposed waiting."""
    found = waiting(run).windows if waits else {}
    tables = {}
    for window in windows:
        waited_ns = np.zeros(len(window.steps), dtype=np.int64)
        if waits:
            exposed = window.spans.busy(Kind.COLLECTIVE) - window.spans.busy(Kind.COMPUTE)
            late = waited(window, found.get(window)) & exposed
            waited_ns = covered_ns(late, *device_step_ns(window).T)
        tables[window] = np.concatenate((measure(window), waited_ns[:, None]), axis=1)
    return tables


def _series(tables: dict[Window, Ints]) -> dict[str, Floats]:
    """By part, one mean over ranks per step; steps that only some ranks saw are left out, unless all saw none."""
    rows: dict[int, list[Ints]] = {}
    for window, table in tables.items():
        for step, row in zip(window.steps, table, strict=True):
            rows.setdefault(step, []).append(row)
    most = max(len(found) for found in rows.values())
    whole = [np.mean(found, axis=0) for _, found in sorted(rows.items()) if len(found) == most]
    compute, hidden, exposed, copy, idle, waited_ns = np.array(whole).T
    return {
        "compute": compute, "hidden": hidden, "waiting": waited_ns, "transfer": exposed - waited_ns,
        "exposed": exposed, "copy": copy, "idle": idle, "computing": compute + hidden,
        "span": compute + hidden + exposed + copy + idle,
    }  # fmt: skip


def _spread(values: Floats) -> float:
    """Half the interquartile range."""
    if len(values) < FEWEST:
        return math.nan
    low, high = np.percentile(values, (25, 75))
    return float(high - low) / 2
