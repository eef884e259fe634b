"""The start-up hook in plain Pythons: it must find what it waits for, and never be in the way."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from meshscope.capture.own import planning, told


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    folder = tmp_path / "recording"
    (folder / "logs").mkdir(parents=True)
    return folder


def _run(
    recording: Path, code: str, *flags: str, python: str = sys.executable, **environment: str
) -> subprocess.CompletedProcess[str]:
    known = {"PATH": os.environ["PATH"], "HOME": str(recording), **planning.environment(recording, is_unbuffered=False)}
    known.pop("PYTHONPATH")
    before = environment.pop("PYTHONPATH", "")
    path = os.pathsep.join([str(planning.HOOK), *([before] if before else [])])
    return subprocess.run(
        [python, *flags, "-c", code], env=known | {"PYTHONPATH": path} | environment, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip


def _log(recording: Path) -> str:
    log = recording / "logs" / told.HOOK_LOG
    return log.read_text() if log.exists() else ""


def test_the_scripts_path_is_as_it_would_be(recording: Path, tmp_path: Path) -> None:
    code = "import sys; print(sys.path)"
    bare = subprocess.run(
        [sys.executable, "-c", code], env={"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path)}, text=True,
        capture_output=True, check=True,
    )  # fmt: skip
    assert _run(recording, code, PYTHONPATH=str(tmp_path)).stdout == bare.stdout
    assert "started: " in _log(recording)


def test_nothing_is_imported_before_the_script_imports_it(recording: Path) -> None:
    names = ("meshscope", "msgspec", "torch", "jax", "typing")
    code = f"import sys; print([name for name in {names} if name in sys.modules])"
    assert _run(recording, code).stdout == "[]\n"


def test_the_users_own_sitecustomize_runs_and_is_the_one_that_is_imported(recording: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import os\nos.environ['SEEN'] = 'by mine'\nMINE = 1\n")
    done = _run(
        recording, "import os, sitecustomize; print(os.environ['SEEN'], sitecustomize.MINE)", PYTHONPATH=str(tmp_path)
    )
    assert done.stdout == "by mine 1\n"
    assert done.stderr == ""


def test_an_error_in_the_users_own_sitecustomize_is_shown_as_ever(recording: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("raise ValueError('mine')\n")
    done = _run(recording, "print('on')", PYTHONPATH=str(tmp_path))
    assert done.stdout == "on\n"
    assert "ValueError: mine" in done.stderr


def test_a_torch_that_cannot_be_imported_fails_as_ever_and_is_waited_for_again(recording: Path, tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('no libtorch')\n")
    code = "for _ in range(2):\n try:\n  import torch\n except ImportError as error:\n  print(error)"
    done = _run(recording, code, PYTHONPATH=str(tmp_path))
    assert done.stdout == "no libtorch\nno libtorch\n"
    assert "imported" not in _log(recording)
    assert "refused" not in _log(recording)


def test_a_watch_that_fails_is_a_line_in_the_log(recording: Path, tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("version = 'none that a watch could know'\n")
    done = _run(recording, "import torch; print(torch.version, torch.__spec__.loader)", PYTHONPATH=str(tmp_path))
    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout.startswith("none that a watch could know <_frozen_importlib_external.SourceFileLoader")
    assert "refused: " in _log(recording)
    said = told.unwatched(recording, has_ranks=False)
    assert len(said) == 1
    assert "ModuleNotFoundError" in said[0][0] or "ImportError" in said[0][0]


def test_a_disk_that_takes_no_log_stops_no_script(recording: Path) -> None:
    (recording / "logs").rmdir()
    done = _run(recording, "print('on')")
    assert (done.stdout, done.stderr) == ("on\n", "")


def test_an_isolated_python_is_told_about(recording: Path) -> None:
    assert _run(recording, "print('on')", "-I").stdout == "on\n"
    assert [text for text, _ in told.unwatched(recording, has_ranks=False)] == [told._NO_PYTHON]


def test_modules_and_spawned_processes_are_reached(recording: Path) -> None:
    code = (
        "import multiprocessing as mp, runpy, os\n"
        "if __name__ == '__main__':\n"
        " print(len(mp.get_context('spawn').Pool(1).map(len, ['ab'])))\n"
    )
    (recording / "script.py").write_text(code)
    done = _run(
        recording,
        f"import runpy, sys; sys.argv = ['x']; runpy.run_path({str(recording / 'script.py')!r}, run_name='__main__')",
    )
    assert done.returncode == 0, done.stderr
    assert _log(recording).count("started: ") >= 2


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python of another installation, which has neither meshscope nor msgspec."""
    folder = tmp_path_factory.mktemp("other")
    venv.create(folder, with_pip=False)
    return str(folder / "bin" / "python")


def test_another_installation_is_lent_meshscope_and_msgspec_and_nothing_else(recording: Path, other: str) -> None:
    code = (
        "import meshscope, msgspec, importlib.util as u\n"
        "print(meshscope.__file__, msgspec.json.encode(1), u.find_spec('click'), u.find_spec('numpy'))"
    )
    done = _run(recording, code, python=other)
    assert done.returncode == 0, done.stderr
    assert str(Path(planning.__file__).parents[2]) in done.stdout
    assert done.stdout.endswith("b'1' None None\n")


def test_an_installation_whose_version_takes_no_msgspec_runs_unwatched(recording: Path, other: str) -> None:
    done = _run(recording, "print('on')", python=other, MESHSCOPE_TAG="cpython-39")
    assert (done.stdout, done.stderr) == ("on\n", "")
    said = told.unwatched(recording, has_ranks=False)
    assert [text for text, _ in said] == [
        f"{other} cannot be watched: msgspec is not installed for it",
        f"To have it watched: {other} -m pip install msgspec",
    ]
    assert sysconfig.get_python_version() in sys.version
