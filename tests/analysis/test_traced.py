"""The row and the sentence of a run that only its traces tell of."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from drawn import timeline
from meeting import met, run_of

from meshscope.analysis.traced import sentence, traced, unfinished


def test_one_collective_is_credited_with_exposed_time_only_where_all_of_it_is_in_that_one() -> None:
    said = sentence(traced(timeline("0 step aaaa\n0 compute ##..\n0 all_reduce ..##")))
    assert "exposed in all-reduce 50.0 % " in said.replace(",", " ")
    both = timeline("0 step aaaaaaaaaa\n0 compute #####.....\n0 all_reduce .....####.\n0 all_gather .........#")
    assert "exposed 50.0 % (mostly in all-reduce)" in sentence(traced(both))
    hidden = timeline("0 step aaaa\n0 compute ####\n0 all_reduce ..##")
    assert "exposed 0.0 %, idle" in sentence(traced(hidden))
    level = timeline("0 step aaaaaaaa\n0 compute ####....\n0 all_reduce ....##..\n0 all_gather ......##")
    assert "exposed in collectives 50.0 %" in sentence(traced(level))


def test_the_mean_is_said_to_be_over_the_ranks_that_have_a_whole_step() -> None:
    run = timeline("0 step aaaa\n0 compute ####\n1 step aaaa\n1 compute ####\n2 step aaaa\n2 compute ####")
    cut = replace(run.windows[2], steps=(), step_ns=np.empty((0, 2), dtype=np.int64), is_complete=False)
    found = traced(replace(run, windows=(*run.windows[:2], cut)))
    assert (found.of_ranks, found.ranks) == (2, 3)
    assert "mean of 2 of 3 ranks and 1 step:" in sentence(found)
    assert "mean of 3 ranks and 1 step:" in sentence(traced(run))


def test_the_sentence_tells_the_waiting_and_who_is_late() -> None:
    arrival_ns = np.tile(np.arange(20) * 200_000, (4, 1))
    arrival_ns[2] += 60_000
    found = traced(run_of(met(arrival_ns, 20_000)))
    assert found.late == (2,)
    assert found.wait_ns is not None
    assert found.mean is not None
    waits = found.wait_ns / found.mean.span_ns
    assert sentence(found).endswith(f"; {waits * 100:.1f} % is waiting, late: rank 2.")
    # Three of four ranks wait 60 of the 80 µs that their collective takes.
    assert found.wait_ns == pytest.approx(found.mean.collective_ns * (3 * 60) / (3 * 80 + 20), rel=1e-3)


def test_while_more_is_to_be_read_nobody_is_called_late() -> None:
    arrival_ns = np.tile(np.arange(20) * 200_000, (4, 1))
    arrival_ns[2] += 60_000
    said = sentence(unfinished(traced(run_of(met(arrival_ns, 20_000)))))
    assert "late" not in said
    assert "waiting" not in said
