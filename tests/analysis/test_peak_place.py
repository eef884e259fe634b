"""The step and the phase of the peak."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from drawn import run, steps
from made_spans import host, kernel, window
from msgspec.structs import replace as changed

from meshscope.analysis.peak_place import COUNTER, TRACED, PeakPlace, peak_places
from meshscope.recording.entries import StepDone
from meshscope.spans import Allocations, Window

ENGINE = "autograd::engine::evaluate_function: MmBackward0"


def traced(peak_ns: int, *, is_marked: bool = True) -> Window:
    """Steps 0 and 1 of 100 ns each: forward until 40, backward until 70, the optimizer until 90, then nothing."""
    marks = [host(start + at, start + end, name) for start in (0, 100) for at, end, name in
             ((5, 40, "aten::mm"), (40, 70, ENGINE), (70, 90, "Optimizer.step#AdamW.step"))]  # fmt: skip
    spans = [*(marks if is_marked else []), kernel(1, 199)]
    made = window(spans, steps=((0, 100), (100, 200)))
    times = np.array(sorted({2, 50, 102, 150, peak_ns}), dtype=np.int64)
    totals = np.where(times == peak_ns, 900, 100)
    return replace(made, allocations=Allocations(times, totals))


@pytest.mark.parametrize(
    ("peak_ns", "step", "phase"),
    [(20, 0, "forward"), (60, 0, "backward"), (80, 0, "optimizer"), (95, 0, "other"), (130, 1, "forward")],
)
def test_the_moment_of_the_most_tells_step_and_phase(peak_ns: int, step: int, phase: str) -> None:
    assert peak_places(run(windows=[traced(peak_ns)])) == (PeakPlace(0, step, phase, TRACED),)


def counted(*peaks: int) -> list[StepDone]:
    made = steps([100.0] * len(peaks), ranks=1)
    return [changed(one, peak_bytes=peak) for one, peak in zip(made, peaks, strict=True)]


def test_the_allocators_count_of_each_step_goes_before_what_was_traced() -> None:
    made = run(counted(5, 9, 7, 9), windows=[traced(60)])
    # The most of step 1's own trace came at 102 ns, in its forward pass.
    assert peak_places(made) == (PeakPlace(0, 1, "forward", COUNTER),)


def test_a_peak_in_a_step_that_was_not_traced_has_no_phase() -> None:
    assert peak_places(run(counted(5, 6, 9), windows=[traced(150)])) == (PeakPlace(0, 2, "", COUNTER),)


def test_a_trace_without_marks_tells_no_phase_and_without_memory_no_step() -> None:
    assert peak_places(run(windows=[traced(60, is_marked=False)])) == (PeakPlace(0, 0, "", TRACED),)
    assert peak_places(run(windows=[replace(traced(60), allocations=None)])) == ()
    assert peak_places(run(steps([100.0], ranks=1))) == ()


def test_xlas_counter_that_stood_at_its_most_in_the_first_step_already_tells_no_step() -> None:
    assert peak_places(run(counted(9, 9, 9), framework="jax")) == ()
    assert peak_places(run(counted(5, 9, 9), framework="jax")) == (PeakPlace(0, 1, "", COUNTER),)


def test_a_step_begins_with_what_was_held_before_it() -> None:
    """All of step 1 frees what step 0 left at its end."""
    made = replace(traced(60), allocations=Allocations(np.array([2, 95, 120]), np.array([100, 900, 50])))
    assert peak_places(run(windows=[made])) == (PeakPlace(0, 0, "other", TRACED),)
    alone = run(counted(1, 9), windows=[made])
    assert peak_places(alone) == (PeakPlace(0, 1, "forward", COUNTER),)
