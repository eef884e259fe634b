"""A program of known schedule, recorded and read: what the trace says is what its own clock said."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from meshscope.analysis.breakdown import RankBreakdown, breakdown
from meshscope.capture.request import Windows
from meshscope.intervals import Intervals, union
from meshscope.run import Gallery

pytestmark = pytest.mark.live

MS = 1_000_000
ORACLE = Path(__file__).parent / "oracle"
CASES = ("overlapped", "awaited", "inside")


ATTEMPTS = 3
"""On a crowded machine gloo's thread begins later than it was called, which is no fault of who reads the trace."""


@dataclass(frozen=True)
class Recorded:
    """One run: rank 0's breakdown in each case, and where the program noted its own schedule."""

    found: dict[str, RankBreakdown]
    schedule: Path


@pytest.fixture(scope="module")
def made() -> list[Recorded]:
    """The runs that all claims here share."""
    return []


@pytest.fixture
def runs(record: Callable, made: list[Recorded], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    """One run after another, each made when it is first asked for."""

    def each() -> Iterator[Recorded]:
        for number in range(ATTEMPTS):
            if number == len(made):
                made.append(_recorded(record, tmp_path_factory.mktemp("oracle") / "schedule"))
            yield made[number]

    return each()


def _recorded(record: Callable, schedule: Path) -> Recorded:
    asked = {"options": ("--schedule", str(schedule)), "workloads": str(ORACLE), "windows": Windows(wait=3)}
    live = record(*CASES, ranks=2, **asked)
    assert live.wait().outcome == "done", live.log()
    _, found = Gallery(live.folder).at(2**62)
    return Recorded({run.experiment.strategy: breakdown(run)[0] for run in found}, schedule)


def _scheduled(run: Recorded, case: str) -> tuple[float, float]:
    """(hidden, exposed) ns per step, by the program's own clock."""
    steps = run.found[case].steps
    noted = json.loads(Path(f"{run.schedule}-{case}.json").read_text())
    hidden, total = [], []
    for step in steps:
        compute, collective = (_intervals(noted[str(step)][kind]) for kind in ("compute", "collective"))
        hidden.append((compute & collective).total_ns)
        total.append(collective.total_ns)
    return float(np.mean(hidden)), float(np.mean(total) - np.mean(hidden))


def _intervals(pairs: list[list[int]]) -> Intervals:
    edges = np.array(pairs, dtype=np.int64)
    return union(edges[:, 0], edges[:, 1])


def _agrees(measured_ns: float, scheduled_ns: float) -> bool:
    return abs(measured_ns - scheduled_ns) <= max(5 * MS, 0.05 * scheduled_ns)


def test_hidden_and_exposed_are_what_the_program_s_own_clock_says(runs: Iterator[Recorded]) -> None:
    assert any(_overlap_agrees(run) for run in runs)


def _overlap_agrees(run: Recorded) -> bool:
    case = run.found["overlapped"]
    hidden_ns, exposed_ns = _scheduled(run, "overlapped")
    assert case.per_step is not None
    assert len(case.steps) >= 2
    kept = abs(hidden_ns - 70 * MS) <= 25 * MS  # else the program itself did not keep its schedule
    return kept and _agrees(case.per_step.hidden_ns, hidden_ns) and _agrees(case.per_step.exposed_ns, exposed_ns)


@pytest.mark.parametrize("case", ["awaited", "inside"])
def test_a_collective_that_is_awaited_at_once_hides_nothing(runs: Iterator[Recorded], case: str) -> None:
    assert any(_nothing_is_hidden(run, case) for run in runs)


def _nothing_is_hidden(run: Recorded, case: str) -> bool:
    measured = run.found[case].per_step
    _, exposed_ns = _scheduled(run, case)
    assert measured is not None
    assert measured.collective_ns >= 90 * MS
    assert measured.hidden_ns < 0.05 * measured.collective_ns
    return _agrees(measured.exposed_ns, exposed_ns)
