"""Devices that wait for their host: for batches, for launches, or for what it does in between."""

from __future__ import annotations

import pytest
from asked import codes, only, said
from drawn import run, steps
from made_spans import Made, collective, host, kernel, launch, window

from meshscope.analysis.looked_for import looked_for
from meshscope.kinds import ANNOTATION
from meshscope.run import Run

MS = 1_000_000


def of(*spans: Made) -> Run:
    return run(windows=[window(spans)], strategy="")


def test_steps_that_wait_for_their_batches_are_input_bound_on_the_rank_that_waits() -> None:
    slow = [
        one
        if one.rank
        else type(one)(**{name: getattr(one, name) for name in one.__struct_fields__} | {"data_wait_ns": 25 * MS})
        for one in steps([100.0] * 20)
    ]
    found = only("input-bound", run(slow))
    assert found.rank == 0
    # A step of the run lasts from the end of the one before, on the last rank, to its own end there: 101 ms.
    assert found.cost_frac == pytest.approx(25 / 101)
    assert found.of == "the median step of 101 ms"
    assert "a tenth of the step or more in 18 of 18" in said(found)


def test_one_process_that_fetches_for_all_its_devices_is_named_and_no_rank() -> None:
    one_process = [one for one in steps([100.0] * 20, data_wait_ns=25 * MS) if one.rank == 0]
    found = only("input-bound", run(one_process, strategy="pmap", framework="jax", ranks=2))
    assert found.ranks == ()
    assert "the process, which fetches for all ranks, waits for its batches for 25.0 % of 18 steps" in said(found)
    assert "rank 0" not in said(found)


def test_short_waits_and_few_steps_are_not() -> None:
    assert codes(run(steps([100.0] * 20, data_wait_ns=4 * MS))) == []
    assert codes(run(steps([100.0] * 9, data_wait_ns=25 * MS))) == []
    assert codes(run(steps([100.0] * 20, data_wait_ns=-1))) == []


def test_a_device_that_is_idle_for_the_loader_is_input_bound_by_its_trace() -> None:
    one, two = launch(0, 1), launch(80, 81)
    loading = host(10, 80, "enumerate(DataLoader)#x", rule=ANNOTATION)
    found = only("input-bound", of(one, kernel(1, 10, one), loading, two, kernel(81, 101, two)))
    assert found.ranks == (0,)
    assert found.cost_frac == pytest.approx(0.7)


def launched(length_ns: int, *, apart_ns: int, count: int = 10) -> Run:
    """Kernels of one length, each launched only ``apart_ns`` after the one before has ended."""
    spans: list[Made] = []
    at = 0
    for _ in range(count):
        call = launch(at, at + 100)
        spans += [call, kernel(at + 100, at + 100 + length_ns, call), host(at + 100, at + 100 + length_ns + apart_ns)]
        at += 100 + length_ns + apart_ns
    return of(*spans)


def test_short_kernels_that_are_launched_late_are_launch_bound() -> None:
    found = only("launch-bound", launched(5_000, apart_ns=5_000))
    assert found.cost_frac == pytest.approx(0.5, abs=0.03)
    assert "100.0 % of its 10 kernels last less than 10.0 µs" in said(found)
    assert 'mode="reduce-overhead"' in found.fix


def test_a_pause_of_the_host_is_no_launch_bound_however_short_the_kernels() -> None:
    """320 µs of short kernels one behind the other, then a second of Python, four times."""
    spans: list[Made] = []
    for step in range(4):
        at = step * 1_000 * MS
        for number in range(40):
            call = launch(at + number * 8_000, at + number * 8_000 + 1_000)
            begin = at + 400_000 + number * 8_000
            spans += [call, kernel(begin, begin + 8_000, call)]
    paused = run(windows=[window(spans, steps=[(at * 1_000 * MS, (at + 1) * 1_000 * MS) for at in range(4)])])
    assert codes(paused) == ["host-bound"]


def test_idle_time_in_steps_is_not_thinned_by_what_is_traced_behind_them() -> None:
    """Four steps of 100 ms, each half idle for a synchronization; then 400 ms of work that is no step's."""
    spans: list[Made] = []
    for step in range(4):
        at = step * 100 * MS
        call = launch(at, at + 10)
        spans += [call, kernel(at + 10, at + 50 * MS, call), host(at + 20, at + 99 * MS, "cudaStreamSynchronize")]
    more = launch(400 * MS, 400 * MS + 10)
    spans += [more, kernel(400 * MS + 10, 800 * MS, more)]
    found = only(
        "host-bound", run(windows=[window(spans, steps=[(at * 100 * MS, (at + 1) * 100 * MS) for at in range(4)])])
    )
    assert found.cost_ns == pytest.approx(49 * MS, rel=0.001)
    assert found.cost_frac == pytest.approx(0.49, rel=0.001)
    assert "49.0 ms of the mean profiled step of 100 ms" in said(found)
    assert "of its 50.0 ms of idle time in its mean step: sync 98.0 %" in said(found)


def test_long_kernels_that_are_launched_late_are_host_bound() -> None:
    found = only("host-bound", launched(50_000, apart_ns=50_000))
    assert "had not launched the next kernel" in said(found)
    assert codes(launched(50_000, apart_ns=50_000)) == ["host-bound"]


def test_a_device_that_is_fed_in_time_is_neither() -> None:
    calls = [launch(at * 100, at * 100 + 50) for at in range(5)]
    fed = [kernel(1_000 + at * 20_000, 1_000 + (at + 1) * 20_000, call) for at, call in enumerate(calls)]
    assert codes(of(*calls, *fed)) == []


def test_a_host_that_synchronizes_before_each_launch_is_host_bound_and_told_to_read_less() -> None:
    one, two = launch(0, 1), launch(90, 91)
    wait = host(1, 88, "cudaStreamSynchronize")
    found = only("host-bound", of(one, kernel(1, 20, one), wait, two, kernel(91, 111, two)))
    assert "a synchronization" in said(found)
    assert ".item()" in found.advice


def test_a_host_that_allocates_is_host_bound_and_told_to_keep_its_memory() -> None:
    one, two = launch(0, 1), launch(90, 91)
    found = only("host-bound", of(one, kernel(1, 20, one), host(20, 88, "cudaMalloc"), two, kernel(91, 111, two)))
    assert found.fix.startswith("PYTORCH_ALLOC_CONF=expandable_segments:True")


def test_a_rank_that_is_late_because_its_host_is_is_one_finding() -> None:
    """In each of four steps of 100 ms rank 1's host is 60 ms in an operator before it launches anything, and rank 0
    waits for it from the 10th millisecond to the 65th."""
    spans: dict[int, list[Made]] = {0: [], 1: []}
    for step in range(4):
        at = step * 100 * MS
        for rank, asked in ((0, 5), (1, 65)):
            call, first = launch(at + asked * MS - MS, at + asked * MS - MS // 2), launch(at, at + MS // 2)
            spans[rank] += [
                first,
                kernel(at + MS, at + 4 * MS, first),
                host(at + 4 * MS, at + asked * MS - MS),
                call,
                collective(at + asked * MS, at + 95 * MS, call, "all_reduce"),
            ]
    bounds = [(step * 100 * MS, (step + 1) * 100 * MS) for step in range(4)]
    windows = [window(spans[rank], rank=rank, steps=bounds, world=2, host="one") for rank in (0, 1)]
    made = run(windows=windows, strategy="")
    found = only("straggler", made)
    assert found.rank == 1
    assert found.cost_ns == pytest.approx(60 * MS)
    assert "its host is why it comes late: its device is idle for" in said(found)
    assert "torch.compile" in found.fix
    assert "host-bound" not in codes(made)
    assert {one.code: one.state for one in looked_for(made)}["host-bound"] == "found"


def test_a_host_is_not_judged_by_what_comes_after_the_last_work_of_a_trace() -> None:
    """One kernel of 10 ms in a step of 100: 90 % of it lies behind the last work, and nobody says what that is."""
    call = launch(0, MS)
    made = run(windows=[window([call, kernel(MS, 11 * MS, call)], steps=[(0, 100 * MS)])], strategy="")
    told = {one.code: (one.state, one.why) for one in looked_for(made)}
    assert told["host-bound"][0] == "cannot say"
    assert "idle before its first or after its last traced work" in told["host-bound"][1]
