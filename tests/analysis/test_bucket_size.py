"""Steps with DDP buckets of another size, on made ranks whose all-reduces cost what they say."""

from __future__ import annotations

import numpy as np
import pytest
from drawn import run
from made_spans import Made, collective, host, kernel, launch, window

from meshscope.analysis.bucket_size import Cost, fitted
from meshscope.analysis.critical_path import critical_paths, doubts
from meshscope.kinds import ANNOTATION
from meshscope.run import Run
from meshscope.spans import Window

MB = 1 << 20
US = 1000
LATENCY, PER_MB = 10 * US, 100 * US
"""What an all-reduce costs on the made ranks."""


def cost(size_mb: int) -> int:
    return LATENCY + PER_MB * size_mb


def ddp_rank(rank: int, sizes_mb: tuple[int, ...], ready_us: tuple[int, ...], computed_us: int) -> Window:
    """A backward pass from 0 whose buckets are ready on the device as given, and an optimizer after the last."""
    begun = launch(-90 * US, -89 * US)
    spans: list[Made] = [
        host(-100 * US, 0, "DistributedDataParallel.forward", rule=ANNOTATION),
        kernel(-80 * US, 0, begun),
        host(0, computed_us * US, "autograd::engine::evaluate_function: MmBackward0", lane="autograd"),
    ]
    at, end = 0, 0
    for size, ready in zip(sizes_mb, ready_us, strict=True):
        by = launch(at, at + 1, lane="autograd")
        spans.append(kernel(at + 2, ready * US, by))
        asked = launch(ready * US - 1, ready * US, lane="autograd")
        begin = max(ready * US, end)
        end = begin + cost(size)
        spans.append(collective(begin, end, asked, size_bytes=size * MB))
        at = ready * US
    if at < computed_us * US:
        spans.append(kernel(at + 2, computed_us * US, launch(at, at + 1, lane="autograd")))
    last = max(end, computed_us * US)
    spans.append(host(computed_us * US, last, "cudaStreamSynchronize"))
    spans.append(kernel(last + 5 * US, last + 50 * US, launch(last + 1 * US, last + 2 * US), "adam"))
    spans.append(host(last, last + 60 * US, "Optimizer.step#SGD.step", rule=ANNOTATION))
    return window(spans, rank=rank, world=2, steps=[(-100 * US, last + 60 * US)])


def ranks(*about: object) -> Run:
    return run(windows=[ddp_rank(rank, *about) for rank in (0, 1)])  # type: ignore[arg-type]


def by_size(here: Run) -> dict[int, int]:
    (found,) = critical_paths(here)
    return {one.bucket_bytes // MB: one.total_ns for one in found.what_ifs if one.bucket_bytes is not None}


def test_smaller_buckets_leave_less_behind_the_backward_pass() -> None:
    # The bucket of 20 MB is ready with the last gradient, at 4000 µs: 2010 µs stick out. Its gradients came evenly from
    # 1500 µs on, one MB each 125 µs.
    here = ranks((4, 8, 20), (500, 1500, 4000), 4000)
    (found,) = critical_paths(here)
    assert {size: found.of_ns - ns for size, ns in by_size(here).items()} == {
        1: (2010 - 110) * US,  # the last MB follows the one before in time
        2: (2010 - 210) * US,
        5: (2010 - 470) * US,  # 30 MB are ready at 3750 and through at 4260, then the last two
        10: (2010 - 970) * US,  # the third ten are ready at 3750 and through at 4760, then the last two
        25: (2010 - 2345) * US,  # 25 MB are ready at 3125 and through at 5635, then the last seven
    }


def test_no_size_beats_communication_that_is_hidden() -> None:
    here = ranks((4, 8, 20), (500, 1500, 4000), 4000)
    (found,) = critical_paths(here)
    hidden = next(one.total_ns for one in found.what_ifs if one.name == "communication_hidden")
    assert min(by_size(here).values()) >= hidden


@pytest.mark.parametrize(
    ("sizes_mb", "why"),
    [((8, 8, 8), "too few sizes"), ((8, 9, 10), "too few sizes")],
)
def test_sizes_that_tell_no_bandwidth_tell_no_bucket(sizes_mb: tuple[int, ...], why: str) -> None:
    here = ranks(sizes_mb, (500, 1500, 4000), 4000)
    assert by_size(here) == {}
    assert why in dict(doubts(here))["what_if.bucket_size"]


def test_one_rank_tells_no_bucket() -> None:
    here = run(windows=[ddp_rank(0, (4, 8, 20), (500, 1500, 4000), 4000)])
    assert by_size(here) == {}
    assert "no all-reduce of known size is matched" in dict(doubts(here))["what_if.bucket_size"]


def test_the_fit_is_the_line_through_the_medians() -> None:
    sizes = np.array([1, 1, 1, 4, 8]) * MB
    found = fitted(sizes, np.array([110, 110, 9000, 410, 810]) * US)
    assert isinstance(found, Cost)
    assert found.latency_ns == pytest.approx(10 * US)
    assert found.ns_per_byte == pytest.approx(100 * US / MB)


@pytest.mark.parametrize("transfer", [[800, 400, 100], [100, 100, 100], [1, 400, 20]])
def test_times_that_do_not_follow_the_size_are_no_line(transfer: list[int]) -> None:
    assert "does not follow" in str(fitted(np.array([1, 4, 8]) * MB, np.array(transfer) * US))
