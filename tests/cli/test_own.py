"""``meshscope run -- COMMAND`` on the command line: what is refused, and in which words."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from meshscope.cli import _answer


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (["run", "--"], "There is no command after --"),
        (["run", "ddp", "--", "python", "x.py"], "Strategies and a command of your own are separate runs"),
        (["run", "--ranks", "2", "--", "python", "x.py"], "--ranks is for the bundled workloads"),
        (["run", "--inject", "hang", "--", "python", "x.py"], "--inject is for the bundled workloads"),
    ],
)
def test_what_cannot_go_together_is_a_usage_error(
    line: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _answer(line) == 2
    assert words in capsys.readouterr().err


def test_a_command_that_there_is_not_is_told_in_two_lines(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert _answer(["run", "--out", str(tmp_path / "run"), "--", "torchrunn", "x.py"]) == 1
    assert capsys.readouterr().err == (
        "meshscope: There is no command 'torchrunn'.\n  Give it as you would type it: -- torchrun train.py\n"
    )


def test_options_behind_the_dashes_are_the_commands_own(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "import sys; print(sys.argv[1:]); sys.exit(9)"
    line = [
        "run",
        "--headless",
        "--out",
        str(tmp_path / "run"),
        "--",
        sys.executable,
        "-c",
        code,
        "--ranks",
        "--",
        "-x",
    ]
    assert _answer(line) == 9
    said = capfd.readouterr()
    assert said.out == "['--ranks', '--', '-x']\n"
    assert "No process of the command imported torch or JAX" in said.err


def test_a_signal_that_ends_the_command_is_told_as_shells_do(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    line = ["run", "--headless", "--out", str(tmp_path / "run"), "--", "sh", "-c", "kill -9 $$"]
    assert _answer(line) == 137
    assert "it was ended by SIGKILL" in capfd.readouterr().err
