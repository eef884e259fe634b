"""The exposed share of each collective by the name of its spans."""

from __future__ import annotations

import math

from drawn import run, timeline

from meshscope.analysis.exposed_names import exposed_fracs

HALF_HIDDEN = """
    0 compute     ####....####
    0 all_reduce  ..####......
"""


def test_the_share_beside_no_compute_is_that_of_the_collectives_own_time() -> None:
    (frac,) = exposed_fracs(timeline(HALF_HIDDEN)).values()
    assert math.isclose(frac, 0.5)


def test_without_collectives_there_is_no_share() -> None:
    assert exposed_fracs(run([])) == {}
