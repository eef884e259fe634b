"""Counted memory against what others printed of theirs."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from meshscope.advisor.forecast import Fit
from meshscope.advisor.memory import memory
from meshscope.advisor.published import published

GIB = 2**30
pytestmark = pytest.mark.shared


@pytest.fixture(scope="module")
def rows(shared: Path) -> list[dict[str, str]]:
    with (shared / "data/published_runs.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("split", ["calib", "dev"])
def test_allocated_memory_is_counted_to_a_percent_of_what_was_measured(rows: list[dict[str, str]], split: str) -> None:
    errors = []
    for row in rows:
        if row["source_key"] == "simumax-b200" and row["suggested_split"] == split:
            asked, measured = published(row), float(row["mem_gib_per_gpu"]) * GIB
            found = memory(asked.architecture, asked.candidate, asked.cluster).allocated
            errors.append(abs(found.value / measured - 1))
            assert found.low <= measured <= found.high
    assert len(errors) == 12
    assert sum(errors) / len(errors) <= 0.010
    assert max(errors) <= 0.015


def test_reserved_memory_is_counted_to_four_percent(rows: list[dict[str, str]]) -> None:
    errors = []
    for row in rows:
        stated = re.search(r"max reserved ([\d.]+) GiB", row["mem_kind"])
        measured = float(stated[1]) if stated else float(row["mem_gib_per_gpu"] or 0)
        if "reserved" in row["mem_kind"]:
            asked = published(row)
            found = memory(asked.architecture, asked.candidate, asked.cluster).reserved
            errors.append(abs(found.value / (measured * GIB) - 1))
    assert len(errors) == 27
    assert max(errors) <= 0.04


@pytest.mark.slow
def test_no_run_that_fsdp_finished_is_said_not_to_fit(rows: list[dict[str, str]]) -> None:
    """MosaicML took the largest micro-batch that fits: the verdicts may be close, and half of them are."""
    sources = ("llm-foundry", "torchtitan-2412", "torchtitan-2024", "torchtitan-asynctp")
    on_fewest = {}
    for row in sorted(rows, key=lambda row: float(row["n_gpus"] or 0)):
        tokens = float(row["micro_batch_per_dp_rank"] or 0) * float(row["seq_len"] or 0)
        if row["source_key"] in sources:
            on_fewest.setdefault((row["model"], row["gpu"], row["act_ckpt"], tokens), row)
    verdicts = []
    for row in on_fewest.values():
        asked = published(row)
        verdicts.append(memory(asked.architecture, asked.candidate, asked.cluster).fit)
    assert len(verdicts) > 30
    assert Fit.DOES_NOT not in verdicts
