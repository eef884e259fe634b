"""The command line: what it answers without work, and how it refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

REFUSALS = {
    ("run", "ddpp"): ("no strategy 'ddpp'", "Did you mean ddp?"),
    ("run", "ddp", "--model", "7b"): ("no model '7b'", "tiny, 125m, 350m, 1.3b"),
    ("run", "ddp", "--batch", "7", "--ranks", "4"): ("batch of 7 does not divide", "multiple of 4"),
    ("run", "pmap", "--ranks", "3"): ("does not divide into 3 ranks", "multiple of 3"),
    ("run", "ddp", "--device", "gpu"): ("finds no GPU", "Leave --device out"),
    ("run", "ddp", "--inject", "lag"): ("no fault 'lag'", "straggler, slow-input"),
    ("run", "ddp", "fsdp", "--inject", "slow-input", "--inject", "unsynced-gradients"): (
        "fsdp: unsynced-gradients makes no sense",
        "injected into ddp, zero1, ",
    ),
    ("analyze", "nothere"): ("does not exist", "Give a recording"),
    ("analyze", __file__): ("no format that meshscope reads", "kineto, xplane"),
    ("replay", "."): ("holds no recording", "meshscope run"),
    ("watch", "."): ("holds no recording", "meshscope run"),
}


def _run(*line: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "meshscope", *line]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("line", REFUSALS, ids=" ".join)
def test_what_cannot_be_done_is_one_line_what_and_one_line_what_to_do(line: tuple[str, ...], tmp_path: Path) -> None:
    if "--device" in line:
        pytest.importorskip("pynvml")
        from meshscope.cli.checkup import nvidia_gpus

        if nvidia_gpus():
            pytest.skip("this machine has GPUs")
    done = _run(*line, cwd=tmp_path)
    what, todo = REFUSALS[line]
    assert done.returncode == 1
    assert done.stdout == ""
    first, second = done.stderr.splitlines()
    assert what in first
    assert todo in second
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "line", [("bogus",), ("run", "--steps", "0"), ("analyze",), ("run", "--nope"), ("replay", "--speed", "nan")]
)
def test_usage_is_exit_code_two(line: tuple[str, ...], tmp_path: Path) -> None:
    done = _run(*line, cwd=tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_help_loads_nothing_but_click(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom meshscope import cli\n"
        "try: cli.main(['--help'])\nexcept SystemExit: pass\n"
        "print(sorted({'numpy', 'textual', 'msgspec', 'torch', 'jax'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert "demo" in done.stdout


@pytest.mark.parametrize("command", ["demo", "run", "watch", "replay", "analyze", "compare", "doctor"])
def test_every_command_has_help(command: str, tmp_path: Path) -> None:
    done = _run(command, "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith(f"Usage: meshscope {command}")


def test_the_help_of_run_names_every_model_and_strategy(tmp_path: Path) -> None:
    from meshscope.capture.scripts import options_module
    from meshscope.discovery import bundled, workloads

    said = _run("run", "--help", cwd=tmp_path).stdout.replace(",", " ").split()
    strategies = {found.strategy for found in workloads() if not found.is_baseline}
    assert {*options_module(bundled("workloads")).PRESETS, *strategies} <= set(said)


def test_without_a_terminal_the_bare_command_prints_its_help(tmp_path: Path) -> None:
    done = _run(cwd=tmp_path)
    assert done.returncode == 0
    assert "Commands:" in done.stdout


def test_a_reader_that_leaves_early_gets_no_traceback(tmp_path: Path) -> None:
    line = f"{sys.executable} -m meshscope run --help | head -n 1"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60, check=False)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "line", [("--help",), ("cache",), ("doctor",), ("analyze", "{recording}"), ("analyze", "{recording}", "--json")]
)
def test_a_closed_pipe_ends_every_command_alike_and_quietly(line: tuple[str, ...], root: Path, tmp_path: Path) -> None:
    """As a shell tells the end of other programs in a pipe: 128 and the number of SIGPIPE."""
    plan = root / "recordings" / "tiny-4-cpu-ranks" / "plan.json"
    words = [word.format(recording=plan.parent) for word in line]
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as stdout:
        command = [sys.executable, "-m", "meshscope", *words]
        done = subprocess.run(command, cwd=tmp_path, stdout=stdout, stderr=subprocess.PIPE, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (141, b"")


def test_doctor_names_what_it_looked_at(tmp_path: Path) -> None:
    done = _run("doctor", cwd=tmp_path)
    for subject in ("python", "torch", "jax", "nvml", "terminal", "locale", "workloads"):
        assert any(line[6:].startswith(subject) for line in done.stdout.splitlines()), subject


def test_gpu_checks_refuse_where_there_is_no_gpu(tmp_path: Path) -> None:
    from meshscope.cli.checkup import nvidia_gpus

    if nvidia_gpus():
        pytest.skip("this machine has GPUs")
    done = _run("doctor", "--gpu", cwd=tmp_path)
    assert done.returncode == 1
    assert "no NVIDIA GPU" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_json_is_one_object_also_when_everything_was_refused(tmp_path: Path) -> None:
    done = _run("analyze", "nothere", "--json", cwd=tmp_path)
    said = json.loads(done.stdout)
    assert done.returncode == 1
    assert said["recordings"] == []
    assert [refused["path"] for refused in said["refused"]] == ["nothere"]


@pytest.mark.parametrize("target", [">&-", ">/dev/full"])
def test_a_stdout_that_takes_nothing_gets_no_traceback(target: str, root: Path) -> None:
    plan = root / "recordings" / "tiny-4-cpu-ranks" / "plan.json"
    line = f"{sys.executable} -m meshscope analyze {plan.parent} {target}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60, check=False)
    assert "Traceback" not in done.stderr
    assert "Error" not in done.stderr


def test_what_is_to_be_pasted_is_quoted() -> None:
    from meshscope.cli.headless import quoted

    assert quoted(Path("my runs/ddp")) == "'my runs/ddp'"


def test_faults_given_one_by_one_reach_the_workload_together() -> None:
    from meshscope.cli.run import request

    given = {"window": None, "budget": None, "every": None, "baseline": False, "model": "tiny", "ranks": 2, "steps": 9}
    asked = request(("ddp",), None, given | {"batch": None, "patience": 7.0, "inject": ("straggler:60", "same-key")})
    assert asked.options == ("--inject", "straggler:60,same-key")
    assert asked.patience_s == 7
    clean = request(("ddp",), None, given | {"batch": None, "patience": None, "inject": ()})
    assert clean.options == ()
    assert clean.patience_s == 120
