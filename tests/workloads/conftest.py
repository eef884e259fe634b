"""The workloads' own modules, and ways to run what needs torch or JAX in a process of its own."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

OWN_MODULES = (
    "refusals", "faults", "families", "sizes", "degrees", "variants", "pipelines", "options", "watching", "tokens",
    "images", "own", "batches", "devices",
)  # fmt: skip
FACTORIES = Path(__file__).with_name("factories")


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


@dataclass(frozen=True)
class Trained:
    """What each rank wrote; a JAX process counts as one."""

    ranks: list[dict[str, Any]]

    @property
    def losses(self) -> np.ndarray:
        """The global loss of each step: the mean over ranks, without those that never have one."""
        told = [rank["losses"] for rank in self.ranks]
        return np.mean([losses for losses in told if not np.isnan(losses).all()], axis=0)


Train = Callable[..., Trained]


@pytest.fixture(scope="session")
def train(root: Path, need: Callable[..., None], tmp_path_factory: pytest.TempPathFactory) -> Train:
    """Trains with a script on some ranks and keeps the answer for whoever asks the same again."""
    kept: dict[tuple[object, ...], Trained] = {}

    def run(script: str, ranks: int, *flags: str) -> Trained:
        need(script.partition("_")[0])
        asked = (script, ranks, *flags)
        if asked not in kept:
            kept[asked] = _train(root, tmp_path_factory.mktemp(script), script, ranks, flags)
        return kept[asked]

    return run


def _train(root: Path, out: Path, script: str, ranks: int, flags: tuple[str, ...]) -> Trained:
    launch = [sys.executable]
    if script.startswith("torch") and script != "torch_single":
        launch += ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(ranks)]
    elif ranks > 1:
        flags = (*flags, "--devices", str(ranks))
    command = [*launch, str(Path(__file__).with_name("trained.py")), str(out), script, *flags]
    environment = os.environ | {
        "PYTHONPATH": str(root / "workloads"),
        "OMP_NUM_THREADS": "1",
        "PYTHONFAULTHANDLER": "1",
    }
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=240, env=environment, check=False, cwd=FACTORIES
    )
    assert done.returncode == 0, done.stderr
    written = sorted(out.glob("rank*.json"))
    return Trained([json.loads(path.read_text()) for path in written])
