"""What a trace recorded of an allocator, and what it is not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from drawn import experiment, timeline

from meshscope.analysis.memory_doubts import memory_doubts
from meshscope.analysis.traced_memory import TracedMemory, traced_memory, traced_memory_words
from meshscope.run import Run
from meshscope.spans import Allocations


def recorded(*totals: list[int], device_kind: str = "gpu") -> Run:
    """One rank with a window for each list of totals."""
    drawn = timeline("0 compute ####", device_kind=device_kind)
    (window,) = drawn.windows
    windows = tuple(
        replace(
            window.shifted(at * 1000),
            allocations=Allocations(np.arange(len(total)), np.array(total)) if total else None,
        )
        for at, total in enumerate(totals)
    )
    return replace(drawn, experiment=experiment(""), windows=windows)


def test_the_allocator_is_told_over_all_windows_of_a_rank() -> None:
    assert traced_memory(recorded([5000, 9000, 4000], [], [6000, 3000])) == (
        TracedMemory(0, is_device=True, changes=5, first_bytes=5000, most_bytes=9000, last_bytes=3000),
    )


def test_the_most_of_a_gpu_is_the_peak_of_what_was_traced_and_not_of_the_run() -> None:
    said = traced_memory_words(traced_memory(recorded([5000, 9000, 4000]))[0])
    assert "5.00 kB after the first of 3 changes, 9.00 kB at most and 4.00 kB after the last" in said
    assert said.endswith("the peak of what was traced, which the run's may exceed")


def test_totals_of_the_host_count_from_the_profilers_start_and_are_no_peak() -> None:
    said = traced_memory_words(traced_memory(recorded([100, 300, 200], device_kind="cpu"))[0])
    assert "since the profiler began came to 300 B at most and 200 B after the last of 3 changes" in said
    assert "no peak" in said


def test_memory_is_not_denied_where_a_trace_recorded_it() -> None:
    ((what, why),) = memory_doubts(recorded([100, 300]))
    assert what == "memory"
    assert "within them are told as allocations" in why
    assert memory_doubts(recorded([])) == (("memory", "a trace alone does not say"),)
    assert traced_memory(recorded([])) == ()
