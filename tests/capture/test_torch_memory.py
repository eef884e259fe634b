"""Memory by category of a model whose sizes are known by hand."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.live

PROGRAM = Path(__file__).parent / "programs" / "torch_sizes.py"
WEIGHTS = (32 * 64 + 64 * 16) * 4
# The first layer keeps its input; tanh and the second layer keep one and the same tensor.
SAVED = (8 * 32 + 8 * 64) * 4


@pytest.fixture(scope="module")
def found(root: Path) -> dict[str, dict[str, int]]:
    known = {"PYTHONPATH": str(root / "src"), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, str(PROGRAM)], env=known, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("kind", ["plain", "ddp", "ddp copies", "zero1", "fsdp", "fsdp1", "tp"])
def test_trees_are_counted_to_the_byte(found: dict, kind: str) -> None:
    sizes = found[kind]
    assert sizes["parameters"] == WEIGHTS
    assert sizes["optimizer"] == 2 * WEIGHTS + 2 * 4, "two moments, and a step counter per parameter"


@pytest.mark.parametrize("kind", ["plain", "ddp", "ddp copies", "fsdp", "fsdp1", "tp"])
def test_saved_tensors_are_the_activations_and_never_a_parameter(found: dict, kind: str) -> None:
    assert found[kind]["activations"] == SAVED


@pytest.mark.parametrize("kind", ["plain ×4", "fsdp ×4"])
def test_micro_batches_keep_their_activations_one_after_another(found: dict, kind: str) -> None:
    assert found[kind]["activations"] == SAVED // 4


@pytest.mark.parametrize("kind", ["plain", "ddp", "fsdp", "fsdp1", "tp", "plain ×4", "fsdp ×4"])
def test_after_backward_no_activation_is_kept(found: dict, kind: str) -> None:
    assert found[kind]["activations_after"] == 0


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        ("plain", WEIGHTS, 0),
        ("ddp", WEIGHTS, WEIGHTS),
        ("ddp copies", 2 * WEIGHTS, WEIGHTS),
        ("fsdp", WEIGHTS, 0),
        ("fsdp1", WEIGHTS, 0),
        ("tp", WEIGHTS, 0),
    ],
)
def test_gradients_live_on_in_ddp_s_buckets_when_they_are_cleared(
    found: dict, kind: str, before: int, after: int
) -> None:
    assert (found[kind]["gradients"], found[kind]["gradients_after"]) == (before, after)


def test_what_comes_to_lie_where_a_freed_parameter_lay_is_an_activation(found: dict) -> None:
    assert found["recognised"] == {"before": True, "after": False}


def test_what_ddp_leaves_alone_is_in_no_bucket_and_no_replica(found: dict) -> None:
    """Of two layers the second one's gradients are its own, and go when they are cleared."""
    first = 32 * 64 * 4
    sizes = found["ddp in part"]
    assert (sizes["parameters"], sizes["gradients"]) == (WEIGHTS, WEIGHTS)
    assert (sizes["replicated"], sizes["gradients_after"]) == (first, first)
    assert found["ddp"]["replicated"] == found["plain"]["replicated"] == WEIGHTS
