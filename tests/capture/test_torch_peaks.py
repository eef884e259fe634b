"""The peak and the optimizer's state of a torch rank on a CPU, of a model whose sizes are known by hand."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.live

PROGRAM = Path(__file__).parent / "programs" / "torch_peaks.py"
WEIGHTS = 64 * 64 * 4
# When the weights' gradient is made: weights, gradient, two moments and their step counter; the input and the gradient
# of the layer's output; the loss and its gradient.
PEAK = 4 * WEIGHTS + 4 + 2 * 8 * 64 * 4 + 2 * 4


@pytest.fixture(scope="module")
def found(root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict]:
    known = {"PYTHONPATH": str(root / "src"), "PATH": "/usr/bin:/bin"}
    line = [sys.executable, str(PROGRAM), str(tmp_path_factory.mktemp("peaks"))]
    done = subprocess.run(line, env=known, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("kind", ["first step", "no warm-up", "late", "cleared at start", "two steps"])
def test_the_peak_holds_what_is_there_before_the_window_wherever_it_begins(found: dict, kind: str) -> None:
    memory = found[kind]
    assert memory["peak_how"] == "derived"
    assert memory["peak_bytes"] == PEAK
    assert sum(memory["categories"].values()) == PEAK


def test_a_peak_below_what_is_alive_together_is_not_told(found: dict) -> None:
    memory = found["too small"]
    assert memory.get("peak_bytes", -1) == -1
    assert memory.get("peak_how", "") == ""
    assert memory["categories"] == {"parameters": 40, "gradients": 2}


def test_an_optimizer_that_has_no_state_yet_is_left_out(found: dict) -> None:
    """The only update of a run of one step makes the state: what was counted right before it is not its size."""
    assert set(found["one step"]["categories"]) == {"parameters", "gradients", "activations"}
    assert set(found["one step"]["how"]) == {"parameters", "gradients", "activations"}


def test_an_optimizer_that_needs_no_state_holds_nothing(found: dict) -> None:
    assert found["plain SGD"]["categories"]["optimizer"] == 0
    assert found["SGD"]["categories"]["optimizer"] == WEIGHTS
