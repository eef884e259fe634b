"""What torch allocates on fake tensors against what real ranks hold: the exact categories, to the byte."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from meshscope.advisor.exact import ExactMemory, exact_of

pytestmark = [pytest.mark.slow, pytest.mark.live, pytest.mark.timeout(1800)]

SHORT = {"tiny": (), "125m": ("--batch", "8", "--seq", "64")}
"""Without these a CPU takes minutes for a step of the larger model."""

RUNS = {
    ("tiny", 2): ("ddp", "fsdp", "tp", "zero1", "pp-1f1b"),
    ("tiny", 4): ("ddp", "fsdp", "hsdp", "tp", "fsdp-tp", "zero1"),
    ("125m", 2): ("ddp", "fsdp", "tp"),
    ("125m", 4): ("ddp", "fsdp", "hsdp", "tp", "fsdp-tp"),
}
CASES = [(model, ranks, strategy) for (model, ranks), each in RUNS.items() for strategy in each]

Memory = list[dict[str, Any]]


def run_for_real(folder: Path, strategies: tuple[str, ...], ranks: int, flags: tuple[str, ...]) -> Any:
    line = [sys.executable, "-m", "meshscope"]
    asked = ["run", *strategies, "--ranks", str(ranks), *flags, "--headless", "--out", "r"]
    subprocess.run([*line, *asked], cwd=folder, check=True, capture_output=True, timeout=900)
    told = subprocess.run([*line, "analyze", "--json", "r"], cwd=folder, check=True, capture_output=True, timeout=120)
    return {one["strategy"]: one for one in json.loads(told.stdout)["recordings"]}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int], dict[str, Memory]]:
    """Memory of every rank by strategy, of one run for a model and a number of ranks."""

    @functools.cache
    def of(model: str, ranks: int) -> dict[str, Memory]:
        flags = ("--model", model, "--steps", "2", "--device", "cpu", *SHORT[model])
        said = run_for_real(tmp_path_factory.mktemp("runs"), RUNS[model, ranks], ranks, flags)
        return {name: one["memory"] for name, one in said.items()}

    return of


def bytes_of(rank: dict[str, Any]) -> dict[str, int]:
    exact = {name: one["bytes"] for name, one in rank["categories"].items() if one["how"] == "exact"}
    assert exact.keys() == {"parameters", "gradients", "optimizer"}
    return exact


def of_fake(exact: ExactMemory) -> dict[str, int]:
    """In the words of a recording, which counts what DDP's buckets hold beside gradients as gradients."""
    sizes = {name: int(figure.value) for name, figure in exact.sizes.items()}
    return {
        "parameters": sizes["parameters"],
        "gradients": sizes["gradients"] + sizes["buckets"],
        "optimizer": sizes["optimizer"],
    }


@pytest.mark.parametrize(("model", "ranks", "strategy"), CASES)
def test_parameters_gradients_and_optimizer_are_those_of_real_ranks(
    measured: Callable[[str, int], dict[str, Memory]], model: str, ranks: int, strategy: str
) -> None:
    exact = exact_of(strategy, ("--model", model, *SHORT[model]), ranks)
    real = {rank["rank"]: bytes_of(rank) for rank in measured(model, ranks)[strategy]}
    assert of_fake(exact) == real[exact.rank]
    if strategy not in ("zero1", "pp-1f1b"):  # these do not give every rank the same
        assert all(one == of_fake(exact) for one in real.values())


def test_buckets_beside_gradients_are_a_second_copy_of_them(tmp_path: Path) -> None:
    said = run_for_real(
        tmp_path, ("ddp",), 2, ("--model", "tiny", "--steps", "2", "--device", "cpu", "--no-bucket-view")
    )
    exact = exact_of("ddp", ("--model", "tiny", "--no-bucket-view"), 2)
    assert exact.sizes["buckets"].value == exact.sizes["gradients"].value
    assert of_fake(exact) == bytes_of(said["ddp"]["memory"][0])


def test_the_peak_is_the_profilers_but_for_what_gloo_keeps(tmp_path: Path) -> None:
    """Gloo's threads hold what their last call sent or received, for a while that differs between ranks: of DDP that
    is a bucket, which lives anyway, of FSDP up to a block. The four bytes are the step's loss."""
    said = run_for_real(tmp_path, ("ddp", "fsdp"), 4, ("--model", "tiny", "--steps", "12", "--device", "cpu"))
    peaks = {name: [rank["peak_bytes"] for rank in one["memory"]] for name, one in said.items()}
    ddp, fsdp = (exact_of(name, ("--model", "tiny"), 4, is_cpu=True) for name in ("ddp", "fsdp"))
    assert ddp.peak is not None
    assert fsdp.peak is not None
    assert {peak - ddp.peak.value for peak in peaks["ddp"]} == {-4}
    gathered = max(sent.size_bytes for sent in fsdp.collectives if sent.kind == "all_gather")
    assert all(-4 <= peak - fsdp.peak.value <= 2 * gathered for peak in peaks["fsdp"])
    for exact in (ddp, fsdp):
        assert sum(part.value for part in exact.categories.values()) == exact.peak.value


@pytest.mark.parametrize("ranks", [8, 64, 1024])
def test_any_number_of_ranks_is_asked_about_in_minutes_and_half_a_gigabyte(ranks: int) -> None:
    exact = exact_of("fsdp", ("--model", "tiny", "--batch", str(ranks)), ranks)
    assert exact.seconds < 300
    assert exact.worker_bytes < 2**29
    # The blocks are gathered for the forward and the backward pass, the rest once.
    assert sum(sent.count for sent in exact.collectives if sent.kind == "all_gather") == 2 * 4 + 1
