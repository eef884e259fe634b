"""A program of known schedule, recorded and read: what the trace says is what its own clock said."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from meshscope.analysis.breakdown import RankBreakdown, breakdown
from meshscope.intervals import Intervals, union
from meshscope.run import Gallery

pytestmark = pytest.mark.live

MS = 1_000_000
ORACLE = Path(__file__).parent / "oracle"
CASES = ("overlapped", "awaited", "inside")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Filled by the one run that all claims here share."""
    return {"schedule": tmp_path_factory.mktemp("oracle") / "schedule"}


@pytest.fixture
def found(record: Callable, recorded: dict[str, Path]) -> dict[str, RankBreakdown]:
    """Rank 0's breakdown in each case."""
    if "folder" not in recorded:
        asked = {"options": ("--schedule", str(recorded["schedule"])), "workloads": str(ORACLE)}
        live = record(*CASES, ranks=2, **asked)
        assert live.wait().outcome == "done", live.log()
        recorded["folder"] = live.folder
    _, runs = Gallery(recorded["folder"]).at(2**62)
    return {run.experiment.strategy: breakdown(run)[0] for run in runs}


def _scheduled(recorded: dict[str, Path], case: str, steps: tuple[int, ...]) -> tuple[float, float]:
    """(hidden, exposed) ns per step, by the program's own clock."""
    noted = json.loads(Path(f"{recorded['schedule']}-{case}.json").read_text())
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


def test_hidden_and_exposed_are_what_the_program_s_own_clock_says(found: dict, recorded: dict) -> None:
    case = found["overlapped"]
    hidden_ns, exposed_ns = _scheduled(recorded, "overlapped", case.steps)
    assert hidden_ns == pytest.approx(70 * MS, abs=25 * MS), "the program itself kept its schedule"
    assert case.per_step is not None
    assert len(case.steps) >= 2
    assert _agrees(case.per_step.hidden_ns, hidden_ns), (case.per_step, hidden_ns)
    assert _agrees(case.per_step.exposed_ns, exposed_ns), (case.per_step, exposed_ns)


@pytest.mark.parametrize("case", ["awaited", "inside"])
def test_a_collective_that_is_awaited_at_once_hides_nothing(found: dict, recorded: dict, case: str) -> None:
    measured = found[case].per_step
    _, exposed_ns = _scheduled(recorded, case, found[case].steps)
    assert measured is not None
    assert measured.collective_ns >= 90 * MS
    assert measured.hidden_ns < 0.05 * measured.collective_ns
    assert _agrees(measured.exposed_ns, exposed_ns), (measured, exposed_ns)
