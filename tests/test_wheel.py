"""An installed wheel carries the workloads and recordings and works outside the source tree."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    subprocess.run(command, cwd=root, check=True, capture_output=True, timeout=120)
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A venv with the wheel and, by a path file, this interpreter's packages. Returns its ``meshscope``."""
    home = tmp_path_factory.mktemp("venv")
    venv.create(home, with_pip=False)
    (site,) = home.glob("lib/python*/site-packages")
    # A path file adds the folder but not the path files in it, so an editable meshscope there stays unseen.
    (site / "packages.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = [sys.executable, "-m", "pip", "--python", str(home / "bin" / "python"), "install", "-q", "--no-deps"]
    subprocess.run([*pip, "--no-index", str(wheel)], check=True, capture_output=True, timeout=120)
    return home / "bin" / "meshscope"


def _run(command: list[str], cwd: Path, timeout_s: float = 60) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    return subprocess.run(command, check=False, cwd=cwd, env=clean, capture_output=True, text=True, timeout=timeout_s)


def test_the_wheel_carries_workloads_and_recordings(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    for part in ("workloads/torch_ddp.py", "workloads/options.py", "workloads/models/", "recordings/"):
        assert any(name.startswith(f"meshscope/_bundled/{part}") for name in names), part
    assert "meshscope/capture/hook/sitecustomize.py" in names
    for table in ("hardware/nvidia.toml", "hardware/links.toml", "sweeps.toml", "collectives.toml", "matmul.toml"):
        assert f"meshscope/advisor/data/{table}" in names, table
    assert not [name for name in names if "/tests/" in name or name.endswith((".pyc", ".part"))]


def test_a_bundled_recording_replays_from_the_installed_wheel(installed: Path, tmp_path: Path) -> None:
    done = _run([str(installed), "replay", "--headless"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert all(name in done.stdout for name in ("ddp", "fsdp", "pmap", "pjit"))


@pytest.mark.slow
@pytest.mark.live
@pytest.mark.parametrize("strategy", ["ddp", "pmap"])
def test_the_installed_wheel_runs_and_analyzes(installed: Path, tmp_path: Path, strategy: str) -> None:
    run = [str(installed), "run", strategy, "--ranks", "2", "--steps", "12", "--out", "r", "--headless"]
    done = _run(run, tmp_path, timeout_s=240)
    assert done.returncode == 0, done.stdout + done.stderr
    said = json.loads(_run([str(installed), "analyze", "r", "--json"], tmp_path).stdout)
    assert [r["strategy"] for r in said["recordings"]] == [strategy]
