"""What sums up many ranks and devices, and what is worked out once for all of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from drawn import run as run_of
from drawn import steps, timeline

from meshscope.analysis.breakdown import Breakdown, breakdown, mean
from meshscope.analysis.devices import device_groups, devices
from meshscope.analysis.noise import CHANCE, least_mean, least_means, t_quantile
from meshscope.analysis.overlap import overlap_by_rank
from meshscope.analysis.parts import per_pair, per_run
from meshscope.recording.entries import Sampled
from meshscope.run import Run

HALF_HIDDEN = """
    0 compute     ####....####
    0 all_reduce  ..####......
    0 step        ############
    1 compute     ####........
    1 all_reduce  ....########
    1 step        ############
"""


def test_the_mean_of_ranks_adds_up_as_each_of_them_does() -> None:
    parts = [one.per_step for one in breakdown(timeline(HALF_HIDDEN))]
    known = [part for part in parts if part is not None]
    found = mean(known)
    # Rank 0: 40 of collective, 20 hidden, 20 idle of 120; rank 1: 80 of collective, none hidden, none idle.
    assert (found.span_ns, found.exposed_ns, found.hidden_ns, found.idle_ns) == (120, 50, 10, 10)
    assert found.hidden_ns + found.exposed_ns == found.collective_ns
    assert found.busy_ns + found.idle_ns == found.span_ns
    assert mean([Breakdown(wait_ns=3), Breakdown()]).wait_ns is None


def test_a_collective_is_told_rank_by_rank_most_exposed_first() -> None:
    found = overlap_by_rank(timeline(HALF_HIDDEN), "all_reduce")
    assert [(one.ranks, one.busy_ns, one.exposed_ns) for one in found] == [((1,), 80, 80), ((0,), 40, 20)]
    assert overlap_by_rank(timeline(HALF_HIDDEN), "broadcast") == ()


def read() -> Run:
    """Three devices read at two times, one of them never for its power; a host beside them."""
    entries = [
        Sampled(t_ns=at, device=f"gpu {gpu}", values={"utilization_frac": busy} | ({"power_w": 300.0} if gpu else {}))
        for at, each in ((10, (0.9, 0.8, 0.1)), (20, (0.9, 0.7, 0.2)))
        for gpu, busy in enumerate(each)
    ]
    return run_of([*entries, Sampled(t_ns=20, device="host", values={"utilization_frac": math.nan})])


def test_devices_of_a_kind_are_one_group_with_who_differs_most_first() -> None:
    found = devices(read())
    assert [(one.device, one.field) for one in found.fields] == [
        ("gpu 0", "utilization_frac"),
        ("gpu 1", "power_w"),
        ("gpu 1", "utilization_frac"),
        ("gpu 2", "power_w"),
        ("gpu 2", "utilization_frac"),
    ]
    busy, power = device_groups(found.fields, 10)
    assert [one.device for one in busy.members] == ["gpu 2", "gpu 0", "gpu 1"]
    assert (busy.kind, busy.minimum, busy.median, busy.maximum) == ("gpu", 0.2, 0.7, 0.9)
    assert busy.value.tolist() == pytest.approx([0.6, 0.6])
    assert len(power.members) == 2


def test_readings_out_of_order_come_in_the_order_of_time() -> None:
    table = read().samples
    backwards = type(table)(
        table.time_ns[::-1], table.device[::-1], table.field[::-1], table.value[::-1], table.devices, table.fields
    )
    time_ns, value = backwards.series("gpu 2", "utilization_frac")
    assert (time_ns.tolist(), value.tolist()) == ([10, 20], [0.1, 0.2])
    assert not len(backwards.series("gpu 9", "utilization_frac")[0])


def test_the_rows_of_a_rank_are_found_by_its_number() -> None:
    table = run_of(steps([10, 20, 30], ranks=3)).steps
    assert table.of(1).step.tolist() == [0, 1, 2]
    assert set(table.of(2).rank.tolist()) == {2}
    assert len(table.of(7)) == 0


def test_what_each_of_many_rows_is_at_least_is_what_it_is_by_itself() -> None:
    rows = np.random.default_rng(3).normal(5, 1, (4, 11))
    parts = [np.array([part.mean() for part in np.array_split(row, 4)]) for row in rows]
    quantile = t_quantile(1 - 2 * CHANCE / 4, 3)
    by_hand = [part.mean() - quantile * part.std(ddof=1) / 2 for part in parts]
    assert least_means(rows, parts=4, tries=4) == pytest.approx(by_hand)
    assert least_mean(rows[2], parts=4, tries=4) == pytest.approx(by_hand[2])
    assert least_means(rows[:, :2], parts=4, tries=4).tolist() == [-math.inf] * 4


def test_no_answer_is_remembered_as_one_and_a_pair_is_asked_anew_when_its_second_changes() -> None:
    asked: list[object] = []
    given = read()

    def nothing(run: Run) -> None:
        asked.append(run)

    once = per_run(nothing)
    assert (once(given), once(given), len(asked)) == (None, None, 1)

    def both(run: Run, number: int) -> int:
        asked.append(run)
        return number

    pair = per_pair(both)
    assert [pair(given, number) for number in (1, 1, 2, 2)] == [1, 1, 2, 2]
    assert len(asked) == 3
