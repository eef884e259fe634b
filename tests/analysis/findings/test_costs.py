"""What is lost, counted in the steps where it lies in them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from meeting import MS, met, run_of

from meshscope.analysis.findings.rule import per_step
from meshscope.intervals import Intervals
from meshscope.spans import Window

STEPS = np.arange(6) * 200 * MS
"""Six steps of 200 ms; half of each is lost."""

LOST = Intervals(STEPS + 50 * MS, STEPS + 150 * MS)


def ranks(*, more_ns: int = 0, is_stepped: bool = True) -> list[Window]:
    made = met(np.tile(STEPS + 100 * MS, (2, 1)), 100 * MS, steps=range(6))
    bounds = np.stack((STEPS, STEPS + 200 * MS), axis=1)
    return [
        replace(
            one,
            start_ns=0,
            end_ns=1_200 * MS + more_ns,
            steps=one.steps if is_stepped else (),
            step_ns=bounds[: 6 if is_stepped else 0],
        )
        for one in made
    ]


@pytest.mark.parametrize("more_ns", [0, 1_200 * MS])
def test_a_window_that_goes_on_behind_its_steps_changes_nothing(more_ns: int) -> None:
    windows = ranks(more_ns=more_ns)
    behind = Intervals(np.array([1_300 * MS]), np.array([1_350 * MS]))
    found = per_step(dict.fromkeys(windows, LOST | behind), run_of(windows))
    assert (found.cost_ns, found.cost_frac) == (100 * MS, 0.5)
    assert found.of == "the mean profiled step of 200 ms"


def test_a_rank_that_loses_nothing_halves_the_mean() -> None:
    windows = ranks()
    nothing = Intervals(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
    assert per_step({windows[0]: LOST, windows[1]: nothing}, run_of(windows)).cost_ns == 50 * MS


def test_without_steps_it_is_of_what_was_traced() -> None:
    windows = ranks(more_ns=1_200 * MS, is_stepped=False)
    found = per_step(dict.fromkeys(windows, LOST), run_of(windows))
    assert (found.cost_ns, found.cost_frac, found.of) == (600 * MS, 0.25, "the 2.40 s traced of a rank")
