"""How the host feeds the device, worked by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence

from drawn import run
from made_spans import Made, host, kernel, launch, window

from meshscope.analysis.launches import Launches, launches
from meshscope.kinds import ANNOTATION


def of(*spans: Made, steps: Sequence[tuple[int, int]] = ()) -> Launches:
    (found,) = launches(run(windows=[window(spans, steps=steps)]))
    return found


def test_latency_is_from_the_call_to_the_start() -> None:
    one, two, three = launch(0, 4), launch(10, 16), launch(20, 25)
    found = of(one, two, three, kernel(5, 30, one), kernel(30, 60, two), kernel(60, 90, three))
    assert (found.latency.median_ns, found.latency.max_ns) == (20, 40)
    assert (found.call.median_ns, found.call.max_ns) == (5, 6)
    # Before the first and the second call nothing was queued; before the third, the second kernel was.
    assert (found.depth_median, found.depth_max, round(found.empty_frac, 3)) == (0, 1, 0.667)
    assert (found.works, found.linked, found.calls) == (3, 3, 3)


def test_a_graph_is_one_call_of_many_kernels() -> None:
    graph = launch(0, 10, "cudaGraphLaunch")
    found = of(graph, kernel(20, 30, graph), kernel(30, 40, graph), kernel(41, 50))
    assert (found.works, found.linked, found.calls) == (3, 2, 1)


def test_short_kernels_are_counted_and_weighed() -> None:
    one = launch(0, 4)
    found = of(one, kernel(5, 1_005, one), kernel(20_000, 20_000 + 9_000), kernel(50_000, 50_000 + 40_000))
    assert (found.short, found.kernels) == (2, 3)
    assert math.isclose(found.short_frac, 10_000 / 50_000)


def paced(count: int, *, gap_ns: int = 5_000, length_ns: int = 5_000) -> list[Made]:
    """Kernels of one length, each launched when the one before has been over for ``gap_ns`` (the call takes none)."""
    spans: list[Made] = []
    for number in range(count):
        at = number * (gap_ns + length_ns)
        call = launch(at, at)
        spans += [call, kernel(at, at + length_ns, call)]
    return spans


def test_a_device_that_waits_for_operators_is_host_bound() -> None:
    one, two = launch(0, 1), launch(80, 90)
    found = of(one, kernel(1, 10, one), host(10, 80), two, kernel(90, 101, two))
    assert (found.bound, found.bound_ns) == ("host", 80), "one gap is no pace"
    assert math.isclose(found.bound_frac, 80 / 100)


def test_many_gaps_before_short_kernels_are_launch_bound() -> None:
    found = of(*paced(10))
    # Ten kernels of 5 µs with nine gaps of as much.
    assert (found.bound, found.bound_ns, found.bound_frac) == ("launch", 45_000, 45 / 95)
    assert of(*paced(10, length_ns=20_000)).bound == "host"


def test_a_pause_between_short_kernels_is_no_launch_bound() -> None:
    late = launch(2_095_000, 2_095_000)
    found = of(*paced(10), late, kernel(2_095_000, 2_100_000, late))
    # The pause of 2 ms outweighs the pace, which takes 45 µs of 2.1 ms: 2.1 %.
    assert (found.bound, found.bound_ns) == ("host", 2_045_000)
    both = of(*paced(100), late, kernel(2_095_000, 2_100_000, late))
    # 99 gaps of 5 µs are 495 µs of 2.1 ms; the pause of 1.1 ms is longer, and is not the pace's. What the host was late
    # for is both.
    assert (both.bound, both.bound_ns) == ("host", 1_595_000)


def test_what_is_idle_behind_the_steps_is_not_counted_in_them() -> None:
    spans, late = paced(10), launch(500_000, 500_000)
    found = of(*spans, late, kernel(500_000, 505_000, late), steps=[(0, 50_000), (50_000, 100_000)])
    # Ten gaps of 5 µs in the two steps; behind them 400 µs more, in one gap with the last of these.
    assert (found.bound, found.steps, found.step_bound_ns) == ("launch", 2, 50_000)
    assert found.bound_ns == 450_000


def test_a_device_that_waits_for_its_batch_is_input_bound() -> None:
    one, two = launch(0, 1), launch(80, 81)
    loading = host(10, 80, "enumerate(DataLoader)#x", rule=ANNOTATION)
    assert of(one, kernel(1, 10, one), loading, two, kernel(81, 101, two)).bound == "input"


def test_a_device_that_is_fed_in_time_is_bound_by_nothing() -> None:
    one, two = launch(0, 1), launch(1, 2)
    found = of(one, two, kernel(1, 50, one), kernel(52, 101, two))
    assert (found.bound, found.bound_frac) == ("", 0)


def test_a_launch_after_its_kernel_is_counted_apart() -> None:
    one, two = launch(0, 1), launch(60, 61)
    found = of(one, two, kernel(1, 50, one), kernel(52, 101, two))
    assert (found.linked, found.contradicting) == (1, 1)


def test_a_trace_without_launches_has_no_rows() -> None:
    assert launches(run(windows=[window([kernel(0, 9)])])) == ()
