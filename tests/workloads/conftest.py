"""The workloads' own modules, and ways to run what needs torch or JAX in a process of its own."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

OWN_MODULES = ("refusals", "faults", "degrees", "variants", "pipelines", "options", "watching", "tokens", "devices")


@pytest.fixture
def workload(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], ModuleType]]:
    """Imports one of the workloads' modules that need neither torch nor JAX; forgotten after the test."""
    monkeypatch.syspath_prepend(str(root / "workloads"))
    for name in OWN_MODULES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield importlib.import_module
    for name in OWN_MODULES:
        sys.modules.pop(name, None)


@pytest.fixture(scope="session")
def need() -> Callable[..., None]:
    """Skips where a package is not installed; looks for it without importing it."""

    def check(*packages: str) -> None:
        for package in packages:
            if importlib.util.find_spec(package) is None:
                pytest.skip(f"{package} is not installed (the extra is called workloads)")

    return check


@pytest.fixture(scope="session")
def elsewhere(root: Path) -> Callable[..., Any]:
    """Runs a Python program beside the workloads, in another process, and reads the JSON it prints last."""

    def run(program: str, *arguments: str, patience_s: float = 120) -> Any:
        environment = os.environ | {"PYTHONPATH": str(root / "workloads"), "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments],
            capture_output=True,
            text=True,
            timeout=patience_s,
            env=environment,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return json.loads(done.stdout.splitlines()[-1])

    return run
