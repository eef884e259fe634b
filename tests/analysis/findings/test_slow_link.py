"""Slow links: told by what calls carry after their last rank has come, and by nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from asked import codes, only, said
from meeting import MS, run_of, window

from meshscope.analysis.looked_for import JUDGED, UNTOLD, looked_for
from meshscope.run import Run

SIZE_BYTES = 2_500_000
STEP_NS = 400 * MS


def reduced(
    took_ms: Sequence[int], *, late_ms: int = 0, size_bytes: int = SIZE_BYTES, kind: str = "gpu", cores: int = 2
) -> Run:
    """Two ranks; an all-reduce in each step of 400 ms takes as long as given from when rank 1, maybe late, has come."""
    count = len(took_ms)
    begun = [step * STEP_NS for step in range(count)]
    ends = [at + (late_ms + took) * MS for at, took in zip(begun, took_ms, strict=True)]
    bounds = np.array([(at, at + STEP_NS) for at in begun], dtype=np.int64)
    windows = []
    for rank in (0, 1):
        starts = [at + rank * late_ms * MS for at in begun]
        about = {"steps": list(range(count)), "spans": {"size_bytes": [size_bytes] * count}}
        made = window(rank, starts, ends, **about, world=2, host="one")
        windows.append(replace(made, step_ns=bounds, end_ns=count * STEP_NS, device_kind=kind))
    return run_of(windows, strategy="ddp", ranks=2, device_kind=kind, cores=cores)


def test_calls_below_a_gigabit_cost_what_they_are_exposed_for_beyond_it() -> None:
    """2.5 MB in 100 ms are 25 MB/s among two ranks; at 125 MB/s they would take 20 ms: 80 of 400 ms are lost."""
    found = only("slow-link", reduced([100] * 3))
    assert found.ranks == ()
    assert found.cost_ns == pytest.approx(80 * MS)
    assert found.cost_frac == pytest.approx(0.2)
    assert "6 calls of a megabyte or more move 25.0 MB/s over each link in the mean" in said(found)
    assert "100.0 % came after the last rank had come" in said(found)


def test_waiting_for_a_late_rank_is_no_slow_link() -> None:
    """The 100 ms are rank 1's lateness; what then moves in 15 ms does so at 167 MB/s."""
    assert "slow-link" not in codes(reduced([15] * 3, late_ms=100))


def test_lateness_is_left_out_of_what_a_slow_link_takes() -> None:
    found = only("slow-link", reduced([100] * 3, late_ms=100))
    assert found.cost_ns == pytest.approx(80 * MS)
    assert "of 900 ms in them, added up over ranks, 66.7 %" in said(found)


@pytest.mark.parametrize(
    "clean",
    [
        reduced([15] * 3),
        reduced([100] * 2),  # Four calls are chance.
        reduced([100] * 3, size_bytes=1_000_000),  # Small calls tell of latency.
        reduced([100] * 3, kind="cpu", cores=1),
    ],
    ids=["fast", "few", "small", "crowded"],
)
def test_fast_few_small_and_crowded_calls_are_no_finding(clean: Run) -> None:
    assert "slow-link" not in codes(clean)


def test_cpu_ranks_with_a_core_each_can_have_one() -> None:
    assert "slow-link" in codes(reduced([100] * 3, kind="cpu"))


def test_too_few_large_calls_are_not_good_news() -> None:
    told = {calls: _looked_for(reduced([15] * calls)) for calls in (2, 3)}
    assert told[2] == (UNTOLD, "fewer than 6 matched calls of a megabyte or more")
    assert told[3] == (JUDGED, "")


def _looked_for(of: Run) -> tuple[str, str]:
    return next((one.state, one.why) for one in looked_for(of) if one.code == "slow-link")
