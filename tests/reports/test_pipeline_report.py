"""What the reports say of a pipeline: the bubble of each stage beside the ideal, and nothing of any other run."""

from __future__ import annotations

import json
from typing import Any

import pytest
from drawn import run, steps
from staged import MS, staged

from meshscope.reports.analysis_json import analysis_json
from meshscope.reports.columns import WIDTH
from meshscope.reports.text import report
from meshscope.run import Run


def said(run: Run) -> dict[str, Any]:
    (found,) = json.loads(analysis_json([run]))["recordings"]
    assert isinstance(found, dict)
    return found


def test_the_text_has_a_row_for_each_stage() -> None:
    text = report([staged()], encoding="utf-8")
    words = " ".join(text.split())
    assert "pipeline: GPipe over 2 stages and 2 micro-batches: a stage computes nothing, and receives" in words
    assert "would compute nothing for 33.3 % (1 / (2 + 1), 3 turns)" in words
    assert "rank step ms computes receives rest 0 18.0 66.7 % 33.3 % 0.0 % 1 18.0 66.7 % 33.3 % 0.0 %" in words
    assert "stages are uneven" not in words
    assert max(map(len, text.splitlines())) <= WIDTH


def test_the_json_has_the_times_of_each_stage() -> None:
    found = said(staged())["pipeline"]
    assert found["ideal_wait_frac"] == found["wait_frac"] == pytest.approx(1 / 3)
    assert (found["schedule"], found["stages"], found["micro_batches"], found["chunks"]) == ("gpipe", 2, 2, 1)
    assert found["ranks"][0] == {
        "rank": 0, "step_ns": 18 * MS, "compute_ns": 12 * MS, "wait_ns": 6 * MS, "rest_ns": 0,
        "wait_frac": pytest.approx(1 / 3), "steps": 1,
    }  # fmt: skip
    assert found["longest"] == {"rank": 0, "excess_frac": 0.0, "mean_compute_ns": 12 * MS}
    assert found["is_uneven"] is False


def test_a_run_that_is_no_pipeline_says_nothing_of_one() -> None:
    other = run(steps([100] * 5))
    assert "pipeline" not in said(other)
    assert "pipeline:" not in report([other], encoding="utf-8")
