"""Real ranks of a known schedule: what is read from the trace is what the ranks' own clock says."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from meshscope.analysis.breakdown import Breakdown, measure
from meshscope.readers import read

pytestmark = pytest.mark.live

NS = 1_000_000_000


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    out = tmp_path_factory.mktemp("known")
    script = Path(__file__).parent / "live" / "two_ranks.py"
    launch = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
        str(script),
        str(out),
    ]
    ran = subprocess.run(launch, capture_output=True, text=True, timeout=240, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    return out


def figures(traces: Path, mode: str) -> tuple[Breakdown, dict[str, float]]:
    (window,) = read(traces / f"{mode}.json")
    return measure(window).total, json.loads((traces / f"{mode}.clock.json").read_text())


def is_close(found_ns: float, expected_s: float) -> bool:
    """Within 5 ms or 5 %."""
    return abs(found_ns / NS - expected_s) <= max(0.005, 0.05 * expected_s)


def test_hidden_and_exposed_agree_with_the_schedule(traces: Path) -> None:
    found, told = figures(traces, "overlap")
    assert is_close(found.hidden_ns, told["computed"] - told["called"])
    assert is_close(found.exposed_ns, told["done"] - told["computed"])


def test_a_collective_awaited_at_once_hides_nothing(traces: Path) -> None:
    found, told = figures(traces, "await")
    assert found.hidden_ns < 0.05 * found.collective_ns
    assert is_close(found.exposed_ns, told["done"] - told["called"])


def test_an_operator_that_awaits_inside_itself_hides_nothing(traces: Path) -> None:
    found, _ = figures(traces, "inside")
    assert found.collective_ns > 0.05 * NS
    assert found.hidden_ns < 0.05 * found.collective_ns
