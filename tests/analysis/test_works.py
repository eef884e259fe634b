"""Kernels, operators and collectives by name, step by step; and what a comparison keeps of a run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from drawn import run, steps, timeline, windows

from meshscope.analysis.figures import figures
from meshscope.analysis.works import Work, works
from meshscope.kinds import Kind
from meshscope.recording.entries import RankStarted, Sampled
from meshscope.run import Run
from meshscope.spans import span_table

TWO_STEPS = """
    0 step        aaaaaaaaaabbbbbbbbbb
    0 all_reduce  .###........##......
    1 step        aaaaaaaaaabbbbbbbbbb
    1 all_reduce  .#..........####....
"""


def test_a_work_is_the_mean_over_ranks_of_each_step() -> None:
    found = works(timeline(TWO_STEPS))
    assert found.steps == (0, 1)
    assert found.works == (Work("collective", "all_reduce", (1.0, 1.0), (20.0, 30.0)),)


def test_a_step_that_only_some_ranks_saw_is_left_out() -> None:
    first, second = windows(TWO_STEPS)
    second = replace(second, steps=second.steps[:1], step_ns=second.step_ns[:1])
    assert works(run(windows=[first, second])).steps == (0,)


def test_without_a_complete_step_the_windows_are_what_is_counted() -> None:
    found = works(timeline("0 all_reduce .###..##"))
    assert (found.steps, found.has_steps) == ((-1,), False)
    assert found.works == (Work("collective", "all_reduce", (2.0,), (50.0,)),)


def test_a_run_without_a_trace_has_no_works() -> None:
    found = works(run())
    assert (found.steps, found.works, found.has_steps) == ((), (), False)


def nested(device_kind: str) -> Run:
    """``linear`` calls ``addmm`` twice on one lane; another lane runs ``copy`` meanwhile."""
    (window,) = windows("0 step aaaaaaaaaa", device_kind=device_kind)
    spans = span_table(
        start_ns=[0, 10, 40, 5], end_ns=[90, 30, 60, 95], lane=[0, 0, 0, 1], name=[0, 1, 1, 2], rank=0,
        kind=[int(Kind.COMPUTE)] * 4, names=("linear", "addmm", "copy"), lanes=("main", "other"),
    )  # fmt: skip
    return run(windows=[replace(window, spans=spans)])


def test_an_operators_time_is_its_own_without_that_of_those_it_calls() -> None:
    found = {work.name: (work.count, work.total_ns) for work in works(nested("cpu")).works}
    assert found == {"linear": ((1.0,), (50.0,)), "addmm": ((2.0,), (40.0,)), "copy": ((1.0,), (90.0,))}


def test_kernels_of_a_device_call_nothing() -> None:
    found = {work.name: work.total_ns for work in works(nested("gpu")).works}
    assert found["linear"] == (90.0,)


def test_figures_hold_the_steps_that_are_measured() -> None:
    found = figures(run(steps([9, 9, 50, 51, 90, 52], profiled=[4]), windows=windows(TWO_STEPS), global_batch=32))
    assert len(found.step_ns) == 3
    assert found.samples_per_step == 32
    assert found.parts_ns["exposed"] == (20.0, 30.0)
    assert found.parts_ns["idle"] == (80.0, 70.0)
    assert found.finished_steps == 6


def loaded(utilization_frac: float, rank_cores: float) -> Run:
    """Two ranks that use ``rank_cores`` each on a host of four cores."""
    done = steps([100.0] * 20)
    beats = [Sampled(t_ns=at, device="host", values={"utilization_frac": utilization_frac})
             for at in range(0, 2_400_000_000, 100_000_000)]  # fmt: skip
    own = [replace_device(beat, f"rank {rank}", rank_cores) for beat in beats for rank in (0, 1)]
    ranks = [
        RankStarted(t_ns=0, rank=rank, device=rank, device_name="EPYC", device_kind="cpu", pid=1) for rank in (0, 1)
    ]
    return run([*done, *beats, *own, *ranks], device_kind="cpu", cores=4, host_cores=4)


def replace_device(beat: Sampled, device: str, cores: float) -> Sampled:
    return Sampled(t_ns=beat.t_ns, device=device, values={"cpu_cores": cores})


def test_what_others_used_is_the_host_less_the_ranks() -> None:
    found = figures(loaded(0.9, 1.2))
    assert np.allclose(found.others_cores, 0.9 * 4 - 2 * 1.2, atol=1e-3)
    assert np.allclose(found.idle_cores, 0.4, atol=1e-3)


def test_ranks_that_use_more_than_the_host_say_nothing_of_others() -> None:
    assert np.isnan(figures(loaded(0.2, 1.5)).others_cores).all()


def test_without_readings_nothing_is_known_of_others() -> None:
    assert np.isnan(figures(run(steps([50.0] * 9))).others_cores).all()
