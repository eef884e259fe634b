"""What the README promises is what is run."""

from __future__ import annotations

import re
from pathlib import Path

from meshscope.discovery import Workload, workloads


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


def _table_of_workloads(root: Path) -> dict[str, list[str]]:
    """The rows of the table under ``## Workloads``, by the name that their first column has in backticks."""
    text = (root / "README.md").read_text(encoding="utf-8")
    (section,) = re.findall(r"^## Workloads\n(.*?)(?=^## )", text, re.S | re.M)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"]
    named = [(re.fullmatch(r"`([^`]+)`", cells[0]), cells[1:]) for cells in rows]
    names = [found[1] for found, _ in named if found]
    assert len(names) == len(set(names)), "a strategy stands twice"
    return {found[1]: cells for found, cells in named if found}


def _ranks(workload: Workload) -> str:
    return "1" if workload.max_ranks == 1 else f"{workload.min_ranks} or more"


def test_the_table_of_workloads_names_every_strategy_and_no_other(root: Path) -> None:
    assert sorted(_table_of_workloads(root)) == sorted(workload.strategy for workload in workloads(root / "workloads"))


def test_the_table_of_workloads_tells_what_each_declares(root: Path) -> None:
    told = _table_of_workloads(root)
    for workload in workloads(root / "workloads"):
        title, ranks, on_cpu, _ = told[workload.strategy]
        assert (title, ranks) == (workload.title, _ranks(workload)), workload.strategy
        assert on_cpu == ("no, GPUs only" if workload.needs_gpu else "yes"), workload.strategy
