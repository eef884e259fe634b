"""What the README promises is what is run."""

from __future__ import annotations

import re
from pathlib import Path


def _commands(root: Path) -> list[str]:
    text = (root / "README.md").read_text(encoding="utf-8")
    return [line for block in re.findall(r"```sh\n(.*?)```", text, re.S) for line in block.splitlines() if line]


def test_ci_runs_the_readmes_test_command(root: Path) -> None:
    (test_command,) = [line for line in _commands(root) if "pytest" in line]
    assert test_command in (root / ".ci" / "run").read_text(encoding="utf-8").splitlines()


def test_both_commands_make_their_own_venv(root: Path) -> None:
    main_job, tests = (line for line in _commands(root) if line.startswith("python3 -m venv .venv"))
    assert main_job.endswith("meshscope demo")
    assert tests.endswith("pytest")
