"""The GPU checks can fail: put to a CPU recording they hold where they may and fail where they must."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from meshscope.cli import gpu_checks
from meshscope.run import Gallery, Run


@pytest.fixture(scope="module")
def ddp(root: Path) -> Run:
    plan = root / "recordings" / "tiny-4-cpu-ranks" / "plan.json"
    _, runs = Gallery(plan.parent).at(time.time_ns())
    return runs[0]


def test_a_cpu_run_is_not_taken_for_a_gpu_run(ddp: Run) -> None:
    with pytest.raises(gpu_checks.CheckFailed, match="cpu"):
        gpu_checks.kernels_were_traced(ddp)
    with pytest.raises(gpu_checks.CheckFailed):
        gpu_checks.sensors_answered(ddp)


@pytest.mark.parametrize(
    "check",
    [
        gpu_checks.time_adds_up,
        gpu_checks.collectives_were_seen,
        gpu_checks.memory_was_measured,
        gpu_checks.profiling_is_cheap,
    ],
)
def test_what_any_run_must_hold_holds_for_a_real_one(check, ddp: Run) -> None:
    assert check(ddp)


def test_the_report_names_device_versions_and_every_claim() -> None:
    outcomes = [gpu_checks.Outcome("ddp", "kernels were traced", "failed", "0 | none\x1b[31m")]
    text = gpu_checks.report(outcomes, ("NVIDIA A100",))
    assert "1 × NVIDIA A100" in text
    assert "| ddp | kernels were traced | failed | 0 / none" in text
    assert "\x1b" not in text


def test_a_run_that_cannot_start_is_not_run_rather_than_failed(tmp_path: Path) -> None:
    from meshscope.cli.checkup import nvidia_gpus

    if nvidia_gpus():
        pytest.skip("this machine has GPUs")
    (outcome,) = gpu_checks.checked("ddp", tmp_path / "ddp")
    assert outcome.state == "not run"
    assert "no GPU" in outcome.figures
