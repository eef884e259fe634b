"""Members and workloads are found, and finding them imports nothing heavy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from meshscope import discovery

SCRIPT = """
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch"]
#
# [[tool.meshscope.strategy]]
# name = "mine"
# title = "Mine"
# framework = "torch"
# launch = "torchrun"
#
# [[tool.meshscope.strategy]]
# name = "mine-2"
# title = "Mine, twice"
# framework = "torch"
# launch = "torchrun"
# arguments = ["--twice"]
# ///
import torch

model = torch.nn.Linear(2, 2)
model = wrap(model)  # parallel
loader = slices(loader, rank)  # parallel
"""


def test_a_script_declares_its_strategies_and_is_not_run(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(SCRIPT)
    (tmp_path / "beside.py").write_text("raise SystemExit('imported')\n")
    first, second = discovery.workloads(tmp_path)
    assert (first.strategy, first.parallel_lines, first.arguments) == ("mine", 2, ())
    assert (second.strategy, second.arguments) == ("mine-2", ("--twice",))


def test_the_bundled_folders_are_found() -> None:
    assert discovery.bundled("workloads").is_dir()


_LOADED = "import sys; {code}; print(sorted({{'torch', 'jax'}} & set(sys.modules)))"


def _loaded_after(code: str) -> str:
    command = [sys.executable, "-c", _LOADED.format(code=code)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout.strip()


def test_discovering_workloads_loads_neither_torch_nor_jax() -> None:
    assert _loaded_after("from meshscope import discovery; discovery.workloads()") == "[]"


def test_that_test_can_fail() -> None:
    """A stand-in module of the name would be seen."""
    assert _loaded_after("import types; sys.modules['torch'] = types.ModuleType('torch')") == "['torch']"
