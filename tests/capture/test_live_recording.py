"""One live run per framework: what a recording holds."""

from __future__ import annotations

import gzip
import itertools
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from meshscope.capture.request import Windows
from meshscope.recording.entries import (
    Checked,
    Compiled,
    Ended,
    MemoryMeasured,
    Phase,
    RankEnded,
    RankStarted,
    Sampled,
    StepDone,
    TraceWritten,
    WindowAsked,
)
from meshscope.recording.layout import read_experiment

pytestmark = pytest.mark.live


def _of(entries: list, kind: type) -> list:
    return [entry for entry in entries if isinstance(entry, kind)]


def test_a_torch_run_leaves_a_whole_recording(record: Callable) -> None:
    live = record("toy", ranks=2, steps=22, windows=Windows(wait=6))
    ended = live.wait()

    assert (ended.outcome, live.exit_code()) == ("done", 0), live.log()
    entries = live.entries("toy")
    assert _of(entries, Ended)[-1].outcome == "done"
    _every_rank_took_every_step(entries, ranks=2, steps=22)
    _windows_are_traced_by_every_rank(live.folder / "toy", entries)
    _only_steps_near_a_window_are_profiled(entries)
    _memory_is_told_apart(entries)
    _fingerprints_agree(entries)
    assert read_experiment(live.folder / "toy").threads_per_rank >= 1
    assert {e.device for e in _of(entries, Sampled)} >= {"host", "rank 0", "rank 1"}
    assert [e.exit_code for e in _of(entries, RankEnded)] == [0, 0]
    assert "rank 1 of 2 trains" in (live.folder / "toy" / "logs" / "rank1.txt").read_text()


def _every_rank_took_every_step(entries: list, ranks: int, steps: int) -> None:
    done = _of(entries, StepDone)
    for rank in range(ranks):
        own = [e for e in done if e.rank == rank]
        assert [e.step for e in own] == list(range(steps))
        assert all(before.end_ns <= after.start_ns for before, after in itertools.pairwise(own))
    assert {(e.samples, e.tokens) for e in done} == {(4, 32)}
    assert all(e.cpu_ns > 0 for e in done)
    assert all(e.loss is not None and e.data_wait_ns >= 0 for e in done)
    assert [e.phase for e in _of(entries, Phase) if e.rank == 0][:2] == ["importing", "training"]


def _windows_are_traced_by_every_rank(recording: Path, entries: list) -> None:
    asked = {(e.first_step, e.end_step) for e in _of(entries, WindowAsked)}
    assert len(asked) >= 2
    traces = _of(entries, TraceWritten)
    assert {(t.rank, t.first_step, t.end_step) for t in traces} == {(r, *window) for r in (0, 1) for window in asked}
    for trace in traces:
        events = json.loads(gzip.decompress((recording / trace.path).read_bytes()))["traceEvents"]
        steps = {e["name"] for e in events if str(e.get("name", "")).startswith("ProfilerStep#")}
        assert steps == {f"ProfilerStep#{n}" for n in range(trace.first_step, trace.end_step)}
        assert any(e.get("name") == "gloo:all_reduce" for e in events)
        assert any(e.get("name") == "[memory]" for e in events) == trace.has_memory
    assert sorted(t.has_memory for t in traces if t.rank == 0)[-2:] != [True, True]


def _only_steps_near_a_window_are_profiled(entries: list) -> None:
    touched = {n for e in _of(entries, WindowAsked) for n in range(e.first_step - 1, e.end_step + 1)}
    assert {e.step for e in _of(entries, StepDone) if e.is_profiled} == touched


def _memory_is_told_apart(entries: list) -> None:
    newest = [m for m in _of(entries, MemoryMeasured) if m.rank == 1][-1]
    weights = 64 * 64 * 4
    assert newest.categories["parameters"] == weights
    assert newest.categories["gradients"] == 2 * weights, "this DDP keeps its buckets beside the gradients"
    assert 2 * weights <= newest.categories["optimizer"] <= 2 * weights + 64
    assert newest.categories["activations"] > 0
    assert newest.peak_bytes >= 5 * weights
    assert newest.how["parameters"] == "exact"
    assert newest.peak_how == "derived"


def _fingerprints_agree(entries: list) -> None:
    checks = _of(entries, Checked)
    assert {c.step for c in checks} == {0, 10, 20}
    for step in (0, 10, 20):
        first, second = (c for c in checks if c.step == step)
        assert first.parameters == second.parameters
        assert first.gradients == second.gradients != 0
        assert first.batch_shape == second.batch_shape == (4, 64)
    assert len({c.parameters for c in checks}) == 3


def test_a_jax_run_leaves_a_whole_recording(record: Callable) -> None:
    live = record("jax-toy", ranks=2, steps=20, windows=Windows(wait=5))
    ended = live.wait()

    assert (ended.outcome, live.exit_code()) == ("done", 0), live.log()
    entries = live.entries("jax-toy")
    starts = _of(entries, RankStarted)
    assert [(s.rank, s.device_kind) for s in starts] == [(0, "cpu"), (1, "cpu")]
    assert len({s.pid for s in starts}) == 1
    assert [e.step for e in _of(entries, StepDone)] == list(range(20))
    assert {e.cpu_ns for e in _of(entries, StepDone)} == {-1}  # one process: its time is that of all its devices
    _each_window_is_an_xplane(live.folder / "jax-toy", entries)
    _the_changed_batch_is_compiled_again(entries)
    memory = _of(entries, MemoryMeasured)
    assert [(m.rank, m.categories["parameters"]) for m in memory] == [(0, 64 * 64 * 2), (1, 64 * 64 * 2)]
    assert memory[0].how == {"parameters": "exact", "optimizer": "exact", "temporaries": "compiler"}
    assert "gradients" not in memory[0].categories
    checks = _of(entries, Checked)
    assert {c.rank for c in checks} == {0, 1}
    assert len({c.rng for c in checks}) == 2  # the toy's devices have a key each
    assert [e.rank for e in _of(entries, RankEnded) if e.exit_code == 0] == [0, 1]


def _each_window_is_an_xplane(recording: Path, entries: list) -> None:
    asked = [(e.first_step, e.end_step) for e in _of(entries, WindowAsked)]
    traces = _of(entries, TraceWritten)
    assert [(t.first_step, t.end_step) for t in traces] == sorted(asked)
    assert len(traces) >= 2
    for trace in traces:
        content = (recording / trace.path).read_bytes()
        assert len(content) == trace.size_bytes
        assert b"profile_start_time" in content
        assert b"train" in content
    profiled = {e.step for e in _of(entries, StepDone) if e.is_profiled}
    assert profiled == {n for first, end in asked for n in range(first, end)}


def _the_changed_batch_is_compiled_again(entries: list) -> None:
    compiles = [c for c in _of(entries, Compiled) if c.stage == "compile"]
    assert any(c.name == "the toy step" and c.step == -1 for c in compiles)
    again = [c for c in compiles if c.is_recompilation and c.step == 3]
    assert len(again) == 1
    assert "f32[9,64]" in again[0].reason
    assert 3 in {e.step for e in _of(entries, StepDone) if e.is_compiling}
