"""The fast extra is there for what is large, and for nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from meshscope import fast


def loaded(tmp_path: Path, *arguments: str, **environ: str) -> bool:
    """Whether a command has loaded numba at its end."""
    program = (
        "import sys\nfrom meshscope.cli import main\n"
        "try:\n    main()\nexcept SystemExit as ended:\n    assert not ended.code, ended.code\n"
        "print('numba' in sys.modules)"
    )
    env = {name: value for name, value in os.environ.items() if name != fast.SWITCH}
    ran = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True, text=True, timeout=300, check=True,
        env=env | {"XDG_CACHE_HOME": str(tmp_path / "cache")} | environ,
    )  # fmt: skip
    return ran.stdout.split()[-1] == "True"


def trace(folder: Path) -> str:
    event = {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1, "dur": 2, "args": {"stream": 7}}
    path = folder / "a.pt.trace.json"
    path.write_text(json.dumps({"traceEvents": [event]}))
    return str(path)


def test_neither_help_nor_a_small_trace_loads_numba(tmp_path: Path) -> None:
    assert not loaded(tmp_path, "--help")
    assert not loaded(tmp_path, "analyze", trace(tmp_path))


def test_this_test_can_fail(tmp_path: Path) -> None:
    pytest.importorskip("numba", reason="the fast extra is not installed")
    cache = fast.cache_folder() if os.environ.get("NUMBA_CACHE_DIR") is None else Path(os.environ["NUMBA_CACHE_DIR"])
    assert loaded(tmp_path, "analyze", trace(tmp_path), MESHSCOPE_FAST="1", NUMBA_CACHE_DIR=str(cache))


def test_a_size_decides_unless_somebody_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast, "is_ready", lambda: True)
    monkeypatch.setattr(fast, "is_loaded", lambda: False)
    monkeypatch.delenv(fast.SWITCH, raising=False)
    assert [fast.is_worth(size, 100) for size in (99, 100)] == [False, True]
    monkeypatch.setenv(fast.SWITCH, "0")
    assert not fast.is_worth(100, 100)
    monkeypatch.setenv(fast.SWITCH, "1")
    assert fast.is_worth(0, 100)


def test_once_it_is_loaded_less_is_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast, "is_ready", lambda: True)
    monkeypatch.setattr(fast, "is_loaded", lambda: True)
    monkeypatch.delenv(fast.SWITCH, raising=False)
    assert fast.is_worth(6400, 64_000)
    assert not fast.is_worth(999, 64_000)


def test_without_a_place_to_keep_compiled_code_it_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba", reason="the fast extra is not installed")
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(fast, "is_loaded", lambda: False)
    monkeypatch.setattr(fast.sys, "platform", "linux")
    fast.is_ready.cache_clear()
    try:
        assert not fast.is_ready()
    finally:
        fast.is_ready.cache_clear()


def test_without_numba_it_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast, "find_spec", lambda name: None)
    monkeypatch.setenv(fast.SWITCH, "1")
    fast.is_ready.cache_clear()
    try:
        assert not fast.is_worth(1 << 40, 1)
    finally:
        fast.is_ready.cache_clear()


def test_clearing_the_cache_removes_compiled_code_of_every_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for digest in ("now", "earlier"):
        (tmp_path / "meshscope" / "numba" / digest).mkdir(parents=True)
    (tmp_path / "meshscope" / "entries").mkdir()
    fast.forget()
    assert [child.name for child in (tmp_path / "meshscope").iterdir()] == ["entries"]


_COUNTED = """
import sys
sys.path.insert(0, sys.argv[1])
from meshscope import fast
seen = []
fast._count = lambda change, count=fast._count: (count(change), seen.append(fast.is_compiling()))
import doubling
assert doubling.doubled(21) == 42
print(*seen, fast.is_compiling())
"""


def test_compiling_is_told_while_it_goes_on_and_not_of_what_is_kept(tmp_path: Path) -> None:
    pytest.importorskip("numba", reason="the fast extra is not installed")
    source = "from meshscope.fast import compiled\n\n@compiled\ndef doubled(a):\n    return 2 * a\n"
    (tmp_path / "doubling.py").write_text(source)
    env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    line = [sys.executable, "-c", _COUNTED, str(tmp_path)]
    first, again = (subprocess.run(line, capture_output=True, text=True, check=True, env=env).stdout for _ in "ab")
    assert (first.split(), again.split()) == (["True", "False", "False"], ["False"])
