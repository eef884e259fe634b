"""``meshscope attach``: what is listed, what is refused, and how a person is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from meshscope.capture.attach import candidates
from meshscope.capture.attach.candidates import Candidate
from meshscope.cli import _answer, attach

OPEN = Candidate(pid=10, frameworks=("torch",), command="python train.py", rank=1, world=2, has_daemon=True)
CLOSED = Candidate(pid=12, frameworks=("torch",), command=f"python old.py {'x' * 90}", ports=(29500, 8000))
SILENT = Candidate(pid=13, frameworks=("jax",), command="python jax_job.py")


def test_the_list_has_a_row_per_process_and_what_to_do_about_those_without_a_door() -> None:
    lines = attach.lines((OPEN, CLOSED, SILENT))
    assert lines[0].split() == ["pid", "kind", "rank", "listens", "on", "attach", "by", "command"]
    assert lines[1].split() == ["10", "torch", "1", "of", "2", "–", "kineto", "python", "train.py"]
    assert "29500, 8000" in lines[2]
    assert lines[2].endswith("…")
    text = "\n".join(lines)
    assert "12: started without KINETO_USE_DAEMON=1." in text
    assert "13: it has no profiler server." in text
    assert "jax.profiler.start_server(9999)" in text
    assert lines[-1] == "Record them: meshscope attach PID…, or meshscope attach --all"
    assert all(len(line) <= 120 for line in lines)


def test_a_list_of_processes_without_a_door_offers_no_recording() -> None:
    assert "Record them" not in "\n".join(attach.lines((CLOSED,)))


def test_without_any_process_the_way_to_one_is_told(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr(candidates, "candidates", lambda: ())
    assert _answer(["attach"]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("meshscope: No process here has loaded torch or JAX")
    assert "KINETO_USE_DAEMON=1" in told.err


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["1"], 1, "Process 1 has not loaded torch or JAX"),
        (["nonsense"], 1, "neither a process id nor HOST:PORT"),
        (["localhost:1"], 1, "localhost:1"),
        (["--all"], 1, "None of the processes here can be attached to"),
        (["12"], 1, "started without KINETO_USE_DAEMON=1"),
        (["--window", "0"], 2, "--window"),
    ],
)
def test_what_cannot_be_attached_to_leaves_no_folder(
    monkeypatch: pytest.MonkeyPatch, capsys, tmp_path: Path, words: list[str], code: int, says: str
) -> None:
    monkeypatch.setattr(candidates, "candidates", lambda: (CLOSED, SILENT))
    assert _answer(["attach", *words, "--out", str(tmp_path / "run"), "--headless"]) == code
    assert says in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_help_says_how_to_start_a_job_for_it() -> None:
    shown = CliRunner().invoke(attach.command, ["--help"]).output
    assert "KINETO_USE_DAEMON=1" in shown
    assert "jax.profiler.start_server" in shown
    assert "the job goes on" in " ".join(shown.split())
