"""Compilations in xplane files: the host's, once, beside the first device's work and no part of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from made_traces import UNIX_NS, XSpace

from meshscope.analysis.traced_compilation import TracedCompilation, traced_compilation
from meshscope.readers import read
from meshscope.run import open_traces
from meshscope.spans import Kind

US = 1_000_000  # picoseconds


def event(name: str, start_us: float, dur_us: float, /, **stats: Any) -> tuple[str, int, int, dict[str, Any]]:
    return name, round(start_us * US), round(dur_us * US), stats


def op(start_us: float, dur_us: float, device: int) -> tuple[str, int, int, dict[str, Any]]:
    return event("dot", start_us, dur_us, hlo_op="dot", hlo_module="jit_step", run_id=-5, device_ordinal=device)


PYTHON = [
    event("train", 0, 100, step_num=4), event("train", 100, 100, step_num=5),
    event("lower_sharding_computation", 110, 10), event("backend_compile_and_load", 120, 30),
    event("$compiler.py:292 backend_compile_and_load", 120, 30),
]  # fmt: skip
CLIENT = [event("PjRtCpuClient::Compile", 122, 26), event("LowerXlaSharedPass", 123, 2)]
WORK = [op(10, 40, 0), op(10, 45, 1), op(160, 30, 0), op(160, 35, 1)]


def write(folder: Path, *lines: Any) -> Path:
    return XSpace().plane("/host:CPU", list(lines)).started(UNIX_NS).write(folder / "a.xplane.pb")


def test_what_jax_marks_is_counted_once_and_the_client_s_own_not_again(tmp_path: Path) -> None:
    path = write(tmp_path, ("python", PYTHON), ("tf_PjRtCompilerThreadPool/1", CLIENT), ("tf_XLAEigen/1", WORK))
    (run,) = open_traces([path]).runs
    assert traced_compilation(run) == (TracedCompilation(0, 5, 1, 40_000),)


def test_a_program_without_jax_shows_what_its_client_compiled(tmp_path: Path) -> None:
    path = write(tmp_path, ("python", PYTHON[:2]), ("tf_PjRtCompilerThreadPool/1", CLIENT), ("tf_XLAEigen/1", WORK))
    (run,) = open_traces([path]).runs
    assert traced_compilation(run) == (TracedCompilation(0, 5, 1, 26_000),)


def test_compiling_is_neither_work_of_a_device_nor_part_of_its_extent(tmp_path: Path) -> None:
    late = [*PYTHON, event("backend_compile_and_load", 500, 100)]
    first, second = read(write(tmp_path, ("python", late), ("tf_XLAEigen/1", WORK)), t0_unix_ns=UNIX_NS)
    assert first.spans.busy(Kind.COMPUTE).total_ns == 70_000
    assert (first.start_ns, first.end_ns) == (10_000, 190_000)
    assert first.counts.device == 2
    assert [window.spans.busy(Kind.HOST).total_ns for window in (first, second)] == [140_000, 0]


def test_a_trace_in_which_nothing_was_compiled_has_no_such_span(tmp_path: Path) -> None:
    path = write(tmp_path, ("python", PYTHON[:2]), ("tf_XLAEigen/1", WORK))
    assert not any((window.spans.kind == Kind.HOST).any() for window in read(path))
