"""Pipelines and meshes of two axes, recorded for real: which ranks meet, over how many bytes, how long they wait."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from typing import Any

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.live, pytest.mark.timeout(1800)]

SMALL = ("--layers", "4", "--width", "64", "--vocab", "512", "--seq", "32", "--device", "cpu")
FLOAT = 4
FEATURES = 32 * 64 * FLOAT
"""Bytes of the features of one sample, in fp32."""

EMBEDDING = 512 * 64 * FLOAT


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What ``analyze --json`` says of each strategy; two runs, since not all take as many ranks."""
    said: dict[str, dict[str, Any]] = {}
    for ranks, strategies in (
        (3, ("pp-gpipe", "pp-1f1b")),
        (2, ("pp-interleaved", "jax-pp", "shard-map-fsdp")),
        (4, ("pjit-tp", "pjit-2d")),
    ):
        folder = tmp_path_factory.mktemp("runs")
        line = [sys.executable, "-m", "meshscope", "run", *strategies, "--ranks", str(ranks), "--steps", "20", *SMALL]
        subprocess.run([*line, "--headless", "--out", "r"], cwd=folder, check=True, capture_output=True, timeout=900)
        told = subprocess.run(
            [*line[:3], "analyze", "--json", "r"], cwd=folder, check=True, capture_output=True, timeout=120
        )
        said |= {one["strategy"]: one for one in json.loads(told.stdout)["recordings"]}
    return said


def per_step(recorded: dict[str, Any], name: str) -> dict[str, tuple[int, float]]:
    """By group the size of a call, and how many there are in a step of a rank; several sizes of one group add up."""
    steps = {rank["rank"]: rank["per_step"]["steps"] for rank in recorded["ranks"]}
    found: dict[str, tuple[int, float]] = {}
    for row in recorded["collectives"]:
        if row["name"] == name:
            calls = row["count"] / sum(steps[rank] for rank in row["ranks"])
            found[row["group"]] = (row["size_bytes"], found.get(row["group"], (0, 0.0))[1] + calls)
    return found


@pytest.mark.parametrize("strategy", ["pp-gpipe", "pp-1f1b"])
def test_stages_pass_each_micro_batch_on_and_its_gradient_back(
    recorded: dict[str, dict[str, Any]], strategy: str
) -> None:
    said = recorded[strategy]
    pairs = {f"ranks {a} to {b}": (FEATURES, 8.0) for a, b in ((0, 1), (1, 2), (2, 1), (1, 0))}
    assert per_step(said, "send") == pairs
    assert per_step(said, "recv") == pairs
    (embedding,) = (row for row in said["collectives"] if row["name"] == "all_reduce")
    assert (embedding["size_bytes"], embedding["ranks"], embedding["group_size"]) == (EMBEDDING, [0, 2], 2)
    assert said["waiting"]["matched"] == said["waiting"]["spans"]


@pytest.mark.parametrize("strategy", ["pp-gpipe", "pp-interleaved"])
def test_the_embedding_is_compared_between_the_two_ranks_that_hold_it(
    recorded: dict[str, dict[str, Any]], strategy: str
) -> None:
    state = {one["code"]: one["state"] for one in recorded[strategy]["looked_for"]}
    assert state["ranks-drift"] == "judged"


@pytest.mark.parametrize("strategy", ["pp-gpipe", "pp-1f1b", "pp-interleaved", "jax-pp"])
def test_the_bubble_of_every_stage_is_told_beside_the_ideal(recorded: dict[str, dict[str, Any]], strategy: str) -> None:
    found = recorded[strategy]["pipeline"]
    stages = 3 if strategy in ("pp-gpipe", "pp-1f1b") else 2
    chunks = 2 if strategy == "pp-interleaved" else 1
    assert found["ideal_wait_frac"] == pytest.approx((stages - 1) / (8 * chunks + stages - 1))
    assert [one["rank"] for one in found["ranks"]] == list(range(stages))
    assert all(0 < one["wait_frac"] < 1 for one in found["ranks"])
    assert all(one["compute_ns"] + one["wait_ns"] + one["rest_ns"] == one["step_ns"] for one in found["ranks"])


@pytest.mark.parametrize("strategy", ["pp-gpipe", "pp-interleaved", "jax-pp", "pjit-tp", "pjit-2d", "shard-map-fsdp"])
def test_a_clean_run_has_a_loss_a_throughput_and_no_finding(recorded: dict[str, dict[str, Any]], strategy: str) -> None:
    said = recorded[strategy]
    assert said["outcome"] == "done"
    assert 5 < said["steps"]["loss_last"] < math.log(512)
    # Every step is of 8 samples, however many ranks work on each of them.
    assert said["steps"]["samples_per_s"] * said["steps"]["median_ns"] / 1e9 == pytest.approx(8, rel=0.1)
    # Drawing a batch takes a millisecond, which is much of a step of so small a model.
    assert {one["code"] for one in said["findings"]} <= {"input-bound"}
    assert said["stragglers"] == []


def test_devices_of_a_jax_pipeline_permute_once_a_tick_there_and_back(recorded: dict[str, dict[str, Any]]) -> None:
    said = recorded["jax-pp"]
    assert per_step(said, "permute") == {"devices 0, 1": (FEATURES, 2 * (8 + 1))}
    # The embedding, positions, the last norm and the loss in one.
    everywhere = EMBEDDING + FEATURES + 64 * FLOAT + FLOAT
    assert per_step(said, "all_reduce") == {"devices 0, 1": (everywhere, 1.0)}


def test_tensor_parallel_devices_add_up_features_twice_a_block_there_and_back(
    recorded: dict[str, dict[str, Any]],
) -> None:
    rows = {row["size_bytes"]: row for row in recorded["pjit-tp"]["collectives"] if row["name"] == "all_reduce"}
    # 4 blocks, and once where the embedding is looked up; its gradient comes back with that of the loss.
    assert rows[8 * FEATURES]["count"] == 4 * (4 * 4 + 1) * recorded["pjit-tp"]["ranks"][0]["per_step"]["steps"]
    assert {row["group"] for row in rows.values()} == {"devices 0, 1, 2, 3"}


def test_a_mesh_of_two_axes_gathers_along_one_and_adds_up_along_the_other(
    recorded: dict[str, dict[str, Any]],
) -> None:
    said = recorded["pjit-2d"]["collectives"]
    gathered = {row["group"] for row in said if row["name"] == "all_gather"}
    added = {row["group"] for row in said if row["name"] == "all_reduce" and row["size_bytes"] == 4 * FEATURES}
    assert gathered == {"devices 0, 2", "devices 1, 3"}
    assert added == {"devices 0, 1", "devices 2, 3"}


def test_gathers_by_hand_are_of_whole_parameters_and_their_gradients_are_scattered(
    recorded: dict[str, dict[str, Any]],
) -> None:
    rows = {(row["name"], row["size_bytes"]): row for row in recorded["shard-map-fsdp"]["collectives"]}
    steps = 2 * recorded["shard-map-fsdp"]["ranks"][0]["per_step"]["steps"]
    for name in ("all_gather", "reduce_scatter"):
        assert rows[name, EMBEDDING]["count"] == steps
        assert rows[name, 4 * 64 * 64 * FLOAT]["count"] == 2 * 4 * steps  # up and down of each block
        assert rows[name, 3 * 64 * 64 * FLOAT]["count"] == 4 * steps  # queries, keys and values
