"""The CUDA branches of a torch rank, against a stand-in for torch.cuda; no GPU has run them here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from meshscope.recording.entries import Checked, Entry, MemoryMeasured, RankStarted, StepDone, TraceWritten
from meshscope.recording.journal import Tail

pytestmark = pytest.mark.live

SCRIPT = Path(__file__).parent / "standins" / "cuda_rank.py"
WEIGHTS = (32 * 32 + 32) * 4


@pytest.fixture(scope="module")
def entries(tmp_path_factory: pytest.TempPathFactory, root: Path) -> list[Entry]:
    recording = tmp_path_factory.mktemp("cuda") / "ddp"
    known = {"PYTHONPATH": str(root / "src"), "PATH": "/usr/bin:/bin"}
    line = [sys.executable, str(SCRIPT), str(recording)]
    done = subprocess.run(line, env=known, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return Tail(recording / "journal" / "rank1.jsonl").read()


def _of(entries: list[Entry], kind: type) -> list:
    return [entry for entry in entries if isinstance(entry, kind)]


def test_a_rank_announces_its_own_gpu(entries: list[Entry]) -> None:
    (started,) = _of(entries, RankStarted)
    assert (started.device, started.device_name, started.device_kind) == (1, "Stand-in 1", "gpu")
    assert started.device_uuid == "uuid-1"


def test_every_step_carries_the_allocator_s_counters(entries: list[Entry]) -> None:
    steps = _of(entries, StepDone)
    assert [(s.allocated_bytes, s.reserved_bytes, s.peak_bytes) for s in steps] == [
        (1000 + n, 5000, 200_000 + n) for n in range(8)
    ]


def test_the_peak_is_measured_and_the_pool_shown_apart_from_what_is_in_use(entries: list[Entry]) -> None:
    measured = _of(entries, MemoryMeasured)
    assert len(measured) == 1, "the allocator needs no window of the profiler"
    memory = measured[0]
    assert (memory.peak_bytes, memory.peak_how) == (200_001, "measured")
    assert (memory.pool_bytes, memory.in_use_bytes) == (5000, 1001)
    assert (memory.capacity_bytes, memory.limit_bytes) == (80_000, -1)
    assert memory.categories["parameters"] == memory.categories["gradients"] == WEIGHTS
    assert memory.how["temporaries"] == "derived"
    assert sum(memory.categories.values()) == memory.peak_bytes
    assert "CUDA's allocator" in memory.source


def test_the_gpu_s_random_generator_is_part_of_the_fingerprint(entries: list[Entry]) -> None:
    checks = _of(entries, Checked)
    assert [check.step for check in checks] == [0, 4]
    assert all(check.rng for check in checks)


def test_the_window_is_traced_with_cuda_asked_for(entries: list[Entry]) -> None:
    (trace,) = _of(entries, TraceWritten)
    assert (trace.first_step, trace.end_step) == (3, 5)
