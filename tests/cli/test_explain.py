"""``meshscope explain``: names, narrowing, JSON, and what it refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HOSTILE = "evil\x1b[31m\u202e" + "x" * 300


def kernel(name: str, start_us: int, dur_us: int) -> dict[str, object]:
    return {"ph": "X", "cat": "kernel", "name": name, "ts": start_us, "dur": dur_us, "pid": 0, "tid": 7, "args": {}}


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Compute from 0 to 15 µs and NCCL from 10 to 30: 15 exposed."""
    events = [kernel(HOSTILE, 0, 15), kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 10, 20)]
    path = tmp_path / "rank0.json"
    path.write_text(json.dumps({"traceEvents": events}))
    return path


def explain(*line: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "meshscope", "explain", *map(str, line)],
        cwd=cwd, capture_output=True, text=True, timeout=120, check=False,
        env=os.environ | {"XDG_CONFIG_HOME": str(cwd / "none"), "PYTHONIOENCODING": "utf-8"},
    )  # fmt: skip


def test_a_number_is_explained_with_its_rule(trace: Path) -> None:
    done = explain(trace, "exposed_collective", cwd=trace.parent)
    assert (done.returncode, done.stderr) == (0, "")
    said = " ".join(done.stdout.split())
    assert "rank 0: 15.0 µs" in said
    assert "by «NCCL or RCCL kernel»" in said
    assert "in analyze --json: ranks[rank=0].breakdown.exposed_ns" in said


def test_a_trace_cannot_steer_the_terminal(trace: Path) -> None:
    done = explain(trace, "compute", cwd=trace.parent)
    assert "evil�[31m�" in done.stdout
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 90


def test_json_is_one_object_and_nothing_else(trace: Path) -> None:
    done = explain(trace, "breakdown.exposed_ns", "--rank", "0", "--json", cwd=trace.parent)
    (found,) = json.loads(done.stdout)["explanations"]
    (case,) = found["cases"]
    assert (found["number"], case["value"], case["formula"]["how"]) == ("breakdown.exposed", 15_000, "difference")


def test_without_a_number_all_of_them_are_listed(trace: Path) -> None:
    done = explain(trace, cwd=trace.parent)
    assert done.returncode == 0
    assert "where a step of each rank goes" in done.stdout
    assert "exposed" in done.stdout.split()
    assert explain(trace, "--strategy", trace.name, cwd=trace.parent).stdout == done.stdout


@pytest.mark.parametrize(
    ("line", "what", "hint"),
    [
        (("exposd",), "There is no number called exposd here.", "Did you mean exposed"),
        (("exposed", "--rank", "3"), "has no rank 3.", "Its ranks: 0."),
        (("exposed", "--step", "3"), "has no step 3 for exposed.", "It can be told of no step here."),
        (
            ("throughput", "--rank", "0"),
            "throughput cannot be told of one rank: a step ends when its last rank does",
            "Leave --rank out.",
        ),
        (("exposed", "--run", "fsdp"), "There is no run called fsdp.", "There are: "),
        (("--strategy", "fsdp"), "There is no run called fsdp.", "There are: "),
    ],
)
def test_what_cannot_be_done_is_two_lines(trace: Path, line: tuple[str, ...], what: str, hint: str) -> None:
    done = explain(trace, *line, cwd=trace.parent)
    first, second = done.stderr.splitlines()
    assert done.returncode == 1
    assert what in first
    assert hint in second
    assert done.stdout == ""


def test_with_json_a_refusal_is_an_object_too(trace: Path) -> None:
    done = explain(trace, "exposd", "--json", cwd=trace.parent)
    said = json.loads(done.stdout)
    assert (done.returncode, said["explanations"]) == (1, [])
    assert "exposd" in said["refused"][0]["why"]


def test_a_file_that_cannot_be_read_is_two_lines(tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text("{")
    done = explain("broken.json", "exposed", cwd=tmp_path)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 2
    assert "Traceback" not in done.stderr


def test_a_last_word_that_is_a_file_is_a_path(trace: Path) -> None:
    (trace.parent / "idle").write_bytes(trace.read_bytes())
    listed = explain(trace, "idle", cwd=trace.parent)
    assert "can be" not in listed.stderr
    assert "step_time" in listed.stdout


def test_narrowing_without_a_number_is_a_usage_error(trace: Path) -> None:
    done = explain(trace, "--rank", "0", cwd=trace.parent)
    assert done.returncode == 2
    assert "NUMBER" in done.stderr


def test_an_empty_path_is_a_usage_error(tmp_path: Path) -> None:
    assert explain("", "idle", cwd=tmp_path).returncode == 2
