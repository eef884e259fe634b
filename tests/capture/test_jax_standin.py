"""The GPU branches of a JAX process, against stand-in devices; no GPU has run them here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from meshscope.recording.entries import Checked, Compiled, Entry, MemoryMeasured, RankStarted, StepDone
from meshscope.recording.journal import Tail

pytestmark = pytest.mark.live

SCRIPT = Path(__file__).parent / "standins" / "jax_gpu.py"


@pytest.fixture(scope="module")
def entries(tmp_path_factory: pytest.TempPathFactory, root: Path) -> list[Entry]:
    recording = tmp_path_factory.mktemp("jax") / "pjit"
    known = {"PYTHONPATH": str(root / "src"), "PATH": "/usr/bin:/bin", "JAX_NUM_CPU_DEVICES": "2"}
    line = [sys.executable, str(SCRIPT), str(recording)]
    done = subprocess.run(line, env=known, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return Tail(recording / "journal" / "rank0.jsonl").read()


def _of(entries: list[Entry], kind: type) -> list:
    return [entry for entry in entries if isinstance(entry, kind)]


def test_each_device_is_announced_as_a_rank(entries: list[Entry]) -> None:
    starts = _of(entries, RankStarted)
    assert [(s.rank, s.device, s.device_name, s.device_kind) for s in starts] == [
        (0, 0, "Stand-in", "gpu"),
        (1, 1, "Stand-in", "gpu"),
    ]


def test_the_measured_peak_replaces_the_compiler_s_plan_once_steps_have_run(entries: list[Entry]) -> None:
    before, after = (_of(entries, MemoryMeasured)[part] for part in (slice(0, 2), slice(2, 4)))
    assert [m.peak_how for m in before] == ["compiler", "compiler"]
    assert [(m.rank, m.peak_bytes, m.peak_how) for m in after] == [(0, 900, "measured"), (1, 901, "measured")]
    assert [(m.pool_bytes, m.in_use_bytes) for m in after] == [(7000, 300), (7000, 301)]
    assert {(m.limit_bytes, m.largest_free_bytes, m.capacity_bytes) for m in after} == {(8000, 6100, -1)}
    assert {m.categories["parameters"] for m in after} == {32}


def test_steps_carry_the_first_device_s_counters(entries: list[Entry]) -> None:
    steps = _of(entries, StepDone)
    assert {(s.allocated_bytes, s.reserved_bytes, s.peak_bytes) for s in steps} == {(300, 7000, 900)}


def test_shards_have_sums_of_their_own_and_summing_is_no_compilation_of_the_run(entries: list[Entry]) -> None:
    checks = [(c.rank, c.step, c.parameters) for c in _of(entries, Checked)]
    assert checks == [(0, 0, 28.0), (1, 0, 92.0), (0, 2, 28.0), (1, 2, 92.0)]
    assert not [c for c in _of(entries, Compiled) if "meshscope" in c.name]
