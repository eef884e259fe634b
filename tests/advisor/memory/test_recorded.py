"""Counted bytes against those of real steps on CPU ranks, as the shipped recordings have them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from meshscope.advisor.architecture import Architecture
from meshscope.advisor.candidate import Candidate, Numerics
from meshscope.advisor.memory.activations import activations
from meshscope.advisor.memory.place import Place, places
from meshscope.advisor.memory.state import state

TINY = Architecture("tiny", 2, 256, 4, 4, 1024, 2048, is_gated=False, is_tied=True, positions=64)
FULL = Numerics("fp32", "fp32", 4, 4, 8)
STEP_COUNTERS = 4 * 15
"""AdamW keeps an fp32 counter per tensor: six of each block, the last norm and two tables."""


def recorded(root: Path, strategy: str) -> dict[str, int]:
    lines = (root / "recordings/tiny-4-cpu-ranks" / strategy / "journal/rank0.jsonl").read_text().splitlines()
    sizes = [record["categories"] for record in map(json.loads, lines) if record["type"] == "memory"]
    return next(each for each in sizes if "parameters" in each)


def place(samples: int, **degrees: int) -> Place:
    candidate = Candidate("", "torch", "torch", 64, samples, FULL, **degrees)  # type: ignore[arg-type]
    return places(TINY, candidate)[0]


def counted(at: Place, category: str) -> float:
    return sum(part.size_bytes for part in state(at, "end") if part.category == category)


@pytest.mark.parametrize(
    ("strategy", "at"),
    [
        ("torch-single", place(8)),
        ("ddp", place(2, replicate=4)),
        ("fsdp", place(2, shard=4, zero_stage=3)),
    ],
)
def test_parameters_gradients_and_moments_are_counted_to_the_byte(root: Path, strategy: str, at: Place) -> None:
    real = recorded(root, strategy)
    assert counted(at, "parameters") == real["parameters"]
    assert counted(at, "gradients") == real["gradients"]
    assert counted(at, "optimizer") == real["optimizer"] - STEP_COUNTERS


@pytest.mark.parametrize(("strategy", "samples"), [("torch-single", 8), ("ddp", 2), ("fsdp", 2)])
def test_saved_tensors_are_counted_to_within_half_a_percent(root: Path, strategy: str, samples: int) -> None:
    """The loss keeps its log-softmax, 4 bytes a logit."""
    kept = sum(part.size_bytes for part in activations(place(samples), "loss"))
    log_softmax = 4 * samples * 64 * TINY.vocab
    assert kept + log_softmax == pytest.approx(recorded(root, strategy)["activations"], rel=0.005)
