"""Errors of predictions, worked by hand."""

from __future__ import annotations

import math

import pytest

from meshscope.advisor.figures import Figure
from meshscope.advisor.predictions import Predicted, widened
from meshscope.advisor.scoring import errors, measured_memory_gib, score


def test_errors_are_shares_of_what_was_measured():
    found = errors([(11.0, 10.0), (8.0, 10.0), (10.0, 10.0)])
    assert found.mean_frac == pytest.approx(0.1)
    assert found.worst_frac == pytest.approx(0.2)
    assert found.bias_frac == pytest.approx(-0.1 / 3)
    assert found.p90_frac == pytest.approx(0.18)


def test_nothing_to_compare_has_no_error():
    assert math.isnan(errors([]).mean_frac)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("max allocated; max reserved 70.88 GiB", (66.0, 70.88)),
        ("peak reserved, max over ranks", (0.0, 66.0)),
        ("analytic breakdown by the paper", (0.0, 0.0)),
        ("GB claimed peak", (0.0, 0.0)),
    ],
)
def test_memory_is_compared_with_what_the_row_says_it_is(kind: str, expected: tuple[float, float]):
    assert measured_memory_gib({"mem_gib_per_gpu": "66", "mem_kind": kind}) == expected


def test_a_source_s_score_counts_what_was_refused_and_what_lay_inside():
    row = {"source_key": "s", "step_time_s": "10"}
    told = [
        Predicted("a", "s", Figure(11.0, 9.0, 12.0, "interpolated"), None, impossible=False),
        Predicted("b", "s", Figure(14.0, 13.0, 15.0, "interpolated"), None, impossible=False),
        Predicted("c", "s", None, None, impossible=False, cannot_say="no"),
        Predicted("d", "s", Figure(1.0, 0.5, 2.0, "interpolated"), None, impossible=True),
    ]
    found = score("s", [(row, each) for each in told], {})
    assert (found.rows, found.timed) == (4, 3)
    assert found.covered_frac == pytest.approx(2 / 3)
    assert found.inside_frac == pytest.approx(1 / 2)
    assert found.time.mean_frac == pytest.approx(0.25)
    assert found.worst_run == "b"


def test_doubts_add_up_as_squares():
    plain = Figure(10.0, 10 / 1.3, 13.0, "interpolated")
    assert widened(plain, ()) == plain
    assert widened(plain, ("layout",)).high == pytest.approx(15.0)
