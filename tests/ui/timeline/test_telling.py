"""All there is to say of one span: what told its kind, how its numbers are made, what was dropped beside it."""

from __future__ import annotations

from dataclasses import replace

import drawn
import made_spans
import numpy as np
from meeting import later, met, run_of
from staged_timeline import linked, subject

from meshscope.kinds import Kind
from meshscope.run import Run
from meshscope.spans import Counts
from meshscope.ui.timeline.telling import told


def said(run: Run, kind: Kind, number: int = 0, window: int = 0) -> str:
    about = subject(run)
    spans = about.lanes.windows[window].spans
    row = int(np.flatnonzero(spans.kind == kind)[number])
    return "\n".join(one.text for one in told(about.lanes, window, row, about.waits))


def test_a_collective_says_how_its_wait_its_transfer_and_its_exposure_are_made() -> None:
    """Rank 0's lasts from 60 to 140, computes till 100; rank 1 comes at 100."""
    text = said(linked(), Kind.COLLECTIVE)
    for words in (
        "Taken for collective all_reduce",
        "by the category that the trace itself gives it",
        "80 ns = 140 ns (end) − 60 ns (start)",
        "waits 40 ns: until rank 1, the last one, has come",
        "transfers 40 ns = 80 ns − 40 ns",
        "40 ns = 80 ns − 40 ns in which rank 0 computes",
        "Moves 4.00 kB",
        "algorithm bandwidth 100 GB/s = 4\u202f000 B / 40 ns",
        "Asked for by ncclLaunch",
        "which began 10 ns before this began, on main and lasted 10 ns",
        "From made-0.json",
        "none dropped, none repaired",
    ):
        assert words in text, text


def test_a_rule_is_shown_with_the_pattern_that_it_looks_for() -> None:
    kernel = replace(made_spans.collective(0, 10), rule="NCCL or RCCL kernel")
    other = replace(made_spans.kernel(0, 10), rule="everything else")
    recorded = replace(made_spans.collective(10, 20), rule="Collective name")
    run = drawn.run(windows=[made_spans.window([kernel, other, recorded])])
    assert "the first that finds its name: (?<![a-z])[nr]ccl" in said(run, Kind.COLLECTIVE)
    assert "the trace records which collective" in said(run, Kind.COLLECTIVE, 1)
    assert "no other rule finds its name" in said(run, Kind.COMPUTE)


def test_what_was_dropped_and_repaired_is_said_of_the_whole_file() -> None:
    window = made_spans.window([made_spans.kernel(0, 10)])
    counts = Counts(read=9, device=1, dropped={"no duration": 2}, repaired={"cut at its parent": 1})
    run = drawn.run(windows=[replace(window, counts=counts, is_complete=False)])
    text = said(run, Kind.COMPUTE)
    assert "9 events read of it, no whole step; the file is cut off" in text
    assert "dropped: 2 (no duration)" in text
    assert "repaired: 1 (cut at its parent)" in text
    assert "whether this span is one of the repaired is not kept" in text


def test_a_clock_that_is_ahead_is_said() -> None:
    arrival_ns = np.array([[0, 10_000_000, 20_000_000], [1_000_000, 11_000_000, 21_000_000]])
    first, second = met(arrival_ns, np.full(3, 2_000_000))
    text = said(run_of([first, later(second, 11_560_000_000)]), Kind.COLLECTIVE, window=1)
    assert "drawn by the common clock: that of rank 1 is" in text


def test_work_without_a_launch_and_a_launch_with_work_say_so() -> None:
    assert "The trace links it to no launch" in said(linked(), Kind.COMPUTE, 1)
    assert "Asks for 1 span of work" in said(linked(), Kind.LAUNCH)
