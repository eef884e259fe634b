"""``run all`` at the command line: what its help names, and what it says at its end of what did not run."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from meshscope.cli import ending, run
from meshscope.discovery import workloads
from meshscope.experiment import Plan
from meshscope.recording import layout
from meshscope.recording.entries import Ended
from meshscope.recording.journal import Journal

T0 = 1_700_000_000_000_000_000
PLAN = Plan(t0_unix_ns=T0, runs=[], ranks=2, model="tiny")


def _end(folder: Path, plan: Plan) -> int:
    layout.create_plan(folder, plan)
    Journal(folder, "supervisor", t0_unix_ns=T0).append(Ended(t_ns=5, outcome="done"))
    return ending.followed(folder, None, notes=[])


def test_what_was_left_out_is_told_once_more_at_the_end_and_is_no_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _end(tmp_path / "a", msgspec.structs.replace(PLAN, left_out={"dp": "runs on \x1b[31mGPUs only"})) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line for line in said if line.startswith("not run here: dp: runs on ")]
    assert "\x1b" not in "".join(said)
    assert _end(tmp_path / "b", PLAN) == 0
    assert "not run here" not in capsys.readouterr().out


def test_the_help_names_every_strategy() -> None:
    words = set(re.findall(r"[\w-]+", CliRunner().invoke(run.command, ["--help"]).output))
    baselines = {workload.strategy for workload in workloads() if workload.is_baseline}
    assert {workload.strategy for workload in workloads()} - baselines <= words
    assert {"single", "all"} <= words
