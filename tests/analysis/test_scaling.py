"""Scaling curves: by hand, each in one thing only; and no ranking of runs that differ in size."""

from __future__ import annotations

import math
from typing import Any

import pytest
from drawn import run, steps

from meshscope.analysis.comparison import comparison
from meshscope.analysis.contenders import contenders
from meshscope.analysis.gap_words import winning
from meshscope.analysis.scaling import BATCH, STRONG, WEAK, Curve, scaling
from meshscope.analysis.scaling_words import in_short, measured_by, titled
from meshscope.recording.entries import Ended
from meshscope.run import Run


def swept(ranks: int, batch: int, step_ms: float, outcome: str = "done", name: str = "", **about: Any) -> Run:
    """A run whose steps take ``step_ms`` from the first rank's start to the last one's end."""
    made = steps([step_ms - (ranks - 1)] * 14, ranks=ranks, samples=batch // ranks)
    ended = [Ended(t_ns=10**12, outcome=outcome)] if outcome else []
    about = {"workload": "ddp", "strategy": name or f"ddp ranks {ranks} batch {batch}"} | about
    return run([*made, *ended], ranks=ranks, global_batch=batch, **about)


def curves(*runs: Run) -> dict[tuple[str, int], Curve]:
    return {(curve.kind, curve.fixed): curve for curve in scaling(runs)}


def test_strong_scaling_is_throughput_per_rank_over_that_of_the_fewest_ranks() -> None:
    found = curves(swept(4, 8, 40), swept(1, 8, 80), swept(2, 8, 50))
    assert list(found) == [(STRONG, 8)]
    points = found[STRONG, 8].points
    assert [point.ranks for point in points] == [1, 2, 4]
    # 8 samples in 80, 50 and 40 ms.
    assert [point.samples_per_s for point in points] == pytest.approx([100, 160, 200])
    assert [point.speedup for point in points] == pytest.approx([1, 1.6, 2])
    assert [point.efficiency_frac for point in points] == pytest.approx([1, 0.8, 0.5])
    said = in_short(found[STRONG, 8])
    assert said == (
        "strong scaling of ddp, global batch 8: 1 rank 100 % · 2 ranks 80 % · 4 ranks 50 % "
        "(efficiency is throughput per rank, as a share of that of 1 rank)."
    )


def test_weak_scaling_keeps_the_batch_of_each_rank() -> None:
    found = curves(swept(1, 8, 80), swept(2, 16, 100))
    assert list(found) == [(WEAK, 8)]
    assert [point.efficiency_frac for point in found[WEAK, 8].points] == pytest.approx([1, 0.8])
    assert titled(found[WEAK, 8]) == "weak scaling of ddp, 8 samples per rank"


def test_over_batches_ranks_stay_and_there_is_no_parallel_efficiency() -> None:
    found = curves(swept(2, 16, 60), swept(2, 8, 50))
    (curve,) = found.values()
    assert (curve.kind, curve.fixed) == (BATCH, 2)
    assert [point.global_batch for point in curve.points] == [8, 16]
    assert curve.points[1].speedup == pytest.approx((16 / 60) / (8 / 50))
    assert all(math.isnan(point.efficiency_frac) for point in curve.points)
    assert measured_by(curve) == "× is throughput over that of a global batch of 8"


def test_a_grid_has_each_curve_once() -> None:
    found = curves(*(swept(ranks, batch, 50) for ranks in (1, 2) for batch in (8, 16)))
    assert sorted(found) == [(BATCH, 1), (BATCH, 2), (STRONG, 8), (STRONG, 16), (WEAK, 8)]


def test_a_batch_that_the_ranks_do_not_share_evenly_is_on_no_weak_curve() -> None:
    assert list(curves(swept(1, 3, 50), swept(2, 7, 50))) == []


def test_a_run_that_failed_or_goes_on_is_named_and_no_point() -> None:
    runs = swept(1, 8, 80, "failed"), swept(2, 8, 50), swept(4, 8, 40), swept(8, 8, 40, outcome="")
    curve = curves(*runs)[STRONG, 8]
    assert [point.ranks for point in curve.points] == [2, 4]
    assert [point.efficiency_frac for point in curve.points] == pytest.approx([1, 5 / 8])
    assert curve.left_out == (
        ("ddp ranks 1 batch 8", "failed before its last step"),
        ("ddp ranks 8 batch 8", "has not ended yet"),
    )
    assert measured_by(curve).endswith("of that of 2 ranks")


@pytest.mark.parametrize(
    "about",
    [{"model": "125m"}, {"workload": "fsdp"}, {"faults": ["straggler"]}, {"options": {"precision": "bf16"}},
     {"is_baseline": True}, {"host": "elsewhere"}],
)  # fmt: skip
def test_runs_that_differ_in_more_than_size_are_on_no_curve(about: dict[str, Any]) -> None:
    assert curves(swept(1, 8, 80), swept(2, 8, 50, **about)) == {}


def test_what_only_repeats_a_size_is_no_curve() -> None:
    assert curves(swept(2, 8, 80), swept(2, 8, 50, name="again")) == {}


def test_a_sweep_alone_has_no_leader() -> None:
    runs = swept(1, 8, 80), swept(2, 8, 50)
    found = comparison(runs)
    assert (found.leader, found.verdict) == (
        "",
        "ddp ranks 1 batch 8 and ddp ranks 2 batch 8 differ in ranks or global batch: "
        "they are not ranked against each other.",
    )
    assert winning(contenders(runs)).sentence == found.verdict
    assert winning(contenders(runs)).fastest == ""


def test_strategies_are_ranked_within_a_size() -> None:
    slow = swept(2, 8, 100, name="fsdp ranks 2", workload="fsdp")
    runs = swept(2, 8, 50, name="ddp ranks 2"), slow, swept(1, 8, 20, name="ddp ranks 1")
    found = comparison(runs)
    assert found.leader == "ddp ranks 2", "although one rank was faster"
    assert found.verdict.startswith("With 2 ranks, global batch 8: ddp ranks 2 leads: 2.0× fsdp ranks 2")
    assert found.verdict.endswith("ddp ranks 1 differs from all others in ranks or global batch: it is not ranked.")
    both = comparison((*runs, swept(1, 8, 30, name="fsdp ranks 1", workload="fsdp")))
    assert both.leader == ""
    assert both.verdict.index("With 1 rank, global batch 8: ddp ranks 1 leads") < both.verdict.index("With 2 ranks")


def test_one_device_stands_only_beside_runs_of_its_batch() -> None:
    single = swept(1, 8, 80, name="torch-single batch 8", workload="torch-single", is_baseline=True)
    rows = comparison((swept(2, 8, 40), swept(2, 16, 40), single)).rows
    assert rows[0].speedup == pytest.approx(2)
    assert math.isnan(rows[1].speedup)
