"""Idle time in the report: that of the mean step, as on the screen, and said to be of all where there is none."""

from __future__ import annotations

from typing import Any

from drawn import run
from made_spans import host, kernel, launch, window

from meshscope.analysis.breakdown import breakdown
from meshscope.analysis.lanes import lanes
from meshscope.reports.idle_json import idle_json
from meshscope.reports.idle_text import idle_lines
from meshscope.run import Run

MS = 1_000_000


def made(**about: Any) -> Run:
    """Device work from 10 to 90 ms, of which 30 idle; the host begins at 0 and records until 100."""
    first, second, late = launch(0, MS), launch(45 * MS, 50 * MS), host(95 * MS, 100 * MS, "aten::zeros")
    spans = [first, kernel(10 * MS, 20 * MS, first), second, kernel(50 * MS, 90 * MS, second), late]
    return run(windows=[window(spans, **about)])


def test_idle_time_is_that_of_the_mean_step_and_says_what_lies_at_its_ends() -> None:
    stepped = made(steps=[(0, 100 * MS)])
    said = " ".join(" ".join(idle_lines(stepped)).split())
    # 30 between the kernels (25 until the launch, 5 in it), 10 before the first (1 in its launch, 9 queued) and 10
    # after the last.
    assert "idle: rank 0 for 50.0 ms of its mean step of 100 ms; of that idle time 50.0 % the host runs" in said
    assert (
        "20.0 % comes before the first or after the last device work of the step's trace, 18.0 % the next work" in said
    )
    (rank,) = breakdown(stepped)
    (row,) = idle_json(stepped)[0]["idle"]
    assert rank.per_step is not None
    assert row["per_step"] == {
        "steps": 1, "span_ns": 100 * MS, "idle_ns": rank.per_step.idle_ns,
        "causes": {"python": 25 * MS, "launch": 6 * MS, "queued": 9 * MS, "ends": 10 * MS},
    }  # fmt: skip
    assert (row["span_ns"], row["idle_ns"]) == (80 * MS, 30 * MS)


def test_without_a_step_it_is_over_all_that_was_traced_and_says_so() -> None:
    said = " ".join(" ".join(idle_lines(made())).split())
    assert "idle: rank 0 for 30.0 ms of the 80.0 ms over all that was traced; of that idle time 83.3 %" in said
    (row,) = idle_json(made())[0]["idle"]
    assert "per_step" not in row


def test_launches_are_of_all_that_was_traced_also_where_there_are_steps() -> None:
    said = " ".join(" ".join(idle_lines(made(steps=[(0, 100 * MS)]))).split())
    assert "launches over all that was traced: rank 0, " in said


def test_idle_time_within_the_marks_of_a_step_is_recorded_for_the_timeline_too() -> None:
    """Behind the last device event the profiler went on to the step's end: that is idle, and not unknown."""
    found = lanes(made(steps=[(0, 100 * MS)]))
    assert found is not None
    assert found.profiled[0].within(0, 100 * MS) == 100 * MS
    beyond = lanes(made())
    assert beyond is not None
    assert beyond.profiled[0].within(0, 120 * MS) == 100 * MS
