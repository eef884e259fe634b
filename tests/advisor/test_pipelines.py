"""Schedules of a pipeline against the arithmetic that is printed of them (arXiv 2104.04473, section 2.2)."""

from __future__ import annotations

import pytest

from meshscope.advisor.pipelines import Durations, schedule


def even(stages: int, forward_s: float = 1.0, backward_s: float = 2.0, handover_s: float = 0.0) -> Durations:
    return Durations((forward_s,) * stages, (backward_s,) * stages, handover_s)


@pytest.mark.parametrize(("stages", "micro_batches"), [(1, 5), (2, 2), (4, 4), (4, 32), (8, 13)])
def test_even_stages_stand_still_for_one_micro_batch_per_other_stage(stages: int, micro_batches: int):
    found = schedule(even(stages), micro_batches)
    assert found.end_s == pytest.approx((micro_batches + stages - 1) * 3)
    assert found.bubble_s == pytest.approx(((stages - 1) * 3,) * stages)


@pytest.mark.parametrize(("stages", "virtual", "micro_batches"), [(2, 2, 4), (4, 2, 8), (4, 5, 16), (8, 3, 64)])
def test_chunks_divide_the_bubble(stages: int, virtual: int, micro_batches: int):
    found = schedule(even(stages), micro_batches, virtual)
    assert found.end_s == pytest.approx((micro_batches * virtual + stages - 1) * 3)


def test_micro_batches_that_fill_no_round_are_played_without_chunks():
    assert schedule(even(4), 6, 2).end_s == schedule(even(4), 6).end_s


def test_the_slowest_stage_sets_the_pace():
    uneven = Durations((1.0, 1.0, 2.0), (2.0, 2.0, 4.0))
    more = schedule(uneven, 21).end_s - schedule(uneven, 20).end_s
    assert more == pytest.approx(6)


@pytest.mark.parametrize("virtual", [1, 2])
@pytest.mark.parametrize("handover_s", [0.0, 0.3])
def test_counting_what_repeats_gives_what_playing_it_gives(virtual: int, handover_s: float):
    uneven = Durations((1.0, 0.9, 0.9, 1.2), (2.0, 1.9, 1.9, 2.5), handover_s)
    counted, played = schedule(uneven, 48, virtual), schedule(uneven, 48, virtual, is_folded=False)
    assert counted.end_s == pytest.approx(played.end_s)
    assert counted.bubble_s == pytest.approx(played.bubble_s)
