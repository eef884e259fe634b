"""What the processes that ask torch and XLA answer, against sizes worked out by hand and against recordings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from meshscope.advisor.coverage import NotCovered
from meshscope.advisor.exact import ExactMemory, exact_of
from meshscope.errors import InputError

pytestmark = [pytest.mark.slow, pytest.mark.live, pytest.mark.timeout(600)]

FLOAT = 4
TINY = ("--model", "tiny", "--layers", "2")
RECORDED = "recordings/tiny-4-cpu-ranks"

OWN = """
import torch
from torch import nn

class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(8, 32, bias=False), nn.Linear(32, 8, bias=False)

    def forward(self, x):
        return x + self.down(torch.tanh(self.up(x)))

class Picky(Layer):
    def forward(self, x):
        return super().forward(x[x.sum(-1) > 0])

def made(layer=Layer):
    x = torch.randn(4, 8)
    return nn.Sequential(layer(), layer()), (x, x), nn.functional.mse_loss

def asks_for_numbers():
    module, batch, loss = made()
    assert float(module[0].up.weight.sum()) < 1e9
    return module, batch, loss

def looks_at_numbers():
    return made(Picky)

def trains_nothing():
    return nn.Identity(), torch.ones(4, 8)
"""
WEIGHTS = 2 * 2 * 8 * 32 * FLOAT
TENSORS = 4


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "theirs.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)


def sizes(exact: ExactMemory) -> dict[str, int]:
    return {name: int(figure.value) for name, figure in exact.sizes.items()}


@pytest.mark.parametrize("factory", ["made", "asks_for_numbers"])
@pytest.mark.usefixtures("own")
def test_a_users_own_model_is_sharded_to_the_byte(factory: str) -> None:
    found = sizes(exact_of("fsdp", ("--model", f"theirs:{factory}", "--batch", "8"), 4))
    assert found["parameters"] == found["gradients"] == WEIGHTS // 4
    assert found["optimizer"] == 2 * WEIGHTS // 4 + TENSORS * FLOAT, "two moments, and a step counter per parameter"
    # Of two samples: what each layer takes in, what tanh makes of it, the model's output and the target.
    assert found["activations"] == 2 * (4 * 8 + 2 * 32) * FLOAT


@pytest.mark.usefixtures("own")
def test_a_model_whose_shapes_depend_on_numbers_is_not_answered() -> None:
    with pytest.raises(NotCovered, match="depend on numbers"):
        exact_of("ddp", ("--model", "theirs:looks_at_numbers", "--batch", "8"), 2)


@pytest.mark.usefixtures("own")
def test_a_model_that_cannot_be_trained_is_wrong_input() -> None:
    with pytest.raises(InputError, match="has nothing to train"):
        exact_of("ddp", ("--model", "theirs:trains_nothing", "--batch", "8"), 2)


def test_buckets_are_as_large_as_gradients_and_reduced_once() -> None:
    exact = exact_of("ddp", (*TINY, "--no-bucket-view", "--bucket-mb", "1"), 4)
    found = sizes(exact)
    assert found["buckets"] == found["gradients"] == found["parameters"]
    assert {sent.kind for sent in exact.collectives} == {"all_reduce"}
    assert sum(sent.size_bytes * sent.count for sent in exact.collectives) == found["parameters"]


def test_experts_are_taken_to_be_used_alike_and_that_is_said() -> None:
    assert any("alike" in note for note in exact_of("torch-single", ("--model", "moe"), 1).notes)


def recorded(root: Path, strategy: str) -> dict[str, int]:
    journal = (root / RECORDED / strategy / "journal" / "rank0.jsonl").read_text().splitlines()
    newest = [entry for entry in map(json.loads, journal) if entry.get("type") == "memory"][-1]
    categories: dict[str, int] = newest["categories"]
    return categories


@pytest.mark.parametrize("strategy", ["pjit", "pmap"])
def test_xlas_arguments_are_what_a_device_held_in_the_recording_and_its_batch(root: Path, strategy: str) -> None:
    found, held = sizes(exact_of(strategy, TINY, 4)), recorded(root, strategy)
    assert (found["parameters"], found["optimizer"]) == (held["parameters"], held["optimizer"])
    tokens = 2 * (64 + 1) * FLOAT
    assert found["arguments"] == held["parameters"] + held["optimizer"] + tokens


def test_pmap_reduces_gradients_and_loss_in_one_and_pjit_gathers_each_parameter_before() -> None:
    pmap, pjit = (exact_of(strategy, TINY, 4) for strategy in ("pmap", "pjit"))
    whole = sizes(pmap)["parameters"]
    assert [(sent.kind, sent.size_bytes, sent.ranks, sent.groups, sent.count) for sent in pmap.collectives] == [
        ("all_reduce", whole + FLOAT, 4, 1, 1)
    ]
    gathered = [sent for sent in pjit.collectives if sent.kind == "all_gather"]
    assert sum(sent.size_bytes * sent.count for sent in gathered) == whole
    assert sum(sent.count for sent in gathered) == 15


def test_a_collective_counts_once_for_each_round_of_the_loop_that_it_is_in() -> None:
    """Parameters do not change between micro-batches: XLA gathers them before the loop."""
    once, four = (exact_of("pjit", (*TINY, "--batch", "16", "--accumulate", n), 4) for n in ("1", "4"))
    counts = [
        {
            kind: sum(sent.count for sent in exact.collectives if sent.kind == kind)
            for kind in ("all_gather", "all_reduce")
        }
        for exact in (once, four)
    ]
    assert counts == [{"all_gather": 15, "all_reduce": 1}, {"all_gather": 15, "all_reduce": 4}]
    assert four.notes == ()
