"""A against B: no more is said than the steps support, and no less."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from measured import MS, measured, noisy, work, works

from meshscope.analysis.change import Change, Quantity, change, is_level, judgement
from meshscope.analysis.difference import FEWEST
from meshscope.analysis.figures import Figures
from meshscope.analysis.pairing import changes
from meshscope.errors import InputError


def pair(a: Figures, b: Figures) -> Change:
    return change([a], [b])


def quantity(found: Change, metric: str) -> Quantity:
    return next(quantity for quantity in found.quantities if quantity.metric == metric)


def gpu(seed: int, *, factor: float = 1.0, between: float = 0.01, **about: Any) -> Figures:
    """A run of steps that follow one another, off by what differs between runs of the same thing."""
    off = math.exp(np.random.default_rng(seed + 10_000).normal(0, between))
    return measured(noisy(seed, median_ms=50 * off * factor), **about)


def cpu(seed: int, *, wait_ms: float = 0.5, others: float = 0.1, slow: bool = False, **about: Any) -> Figures:
    """A run on CPU ranks of the kind that is 18 % slower from start to end for no reason of its own."""
    rest = noisy(seed, median_ms=59.0 if slow else 50.0)
    count = len(rest)
    known: dict[str, Any] = {
        "device_kind": "cpu",
        "data_wait_ns": (round(wait_ms * MS),) * count,
        "others_cores": (others,) * count,
        "idle_cores": (0.02,) * count,
    }
    return measured([ms + wait_ms for ms in rest], **(known | about))


def test_of_runs_of_the_same_thing_at_most_one_pair_in_twenty_is_called_different() -> None:
    verdicts = [pair(gpu(2 * at), gpu(2 * at + 1)).verdict for at in range(100)]
    assert verdicts.count("faster") + verdicts.count("slower") <= 2
    assert verdicts.count("no difference") >= 98


def test_of_runs_a_fifth_slower_nineteen_in_twenty_are_called_slower() -> None:
    verdicts = [pair(gpu(2 * at), gpu(2 * at + 1, factor=1.2)).verdict for at in range(60)]
    assert verdicts.count("slower") >= 57
    back = [pair(gpu(2 * at + 1, factor=1.2), gpu(2 * at)).verdict for at in range(20)]
    assert back.count("faster") >= 19


def test_a_cpu_run_that_happens_to_be_slow_throughout_is_not_called_slower() -> None:
    found = pair(cpu(1), cpu(2, slow=True))
    assert quantity(found, "step_time").change > 0.15
    assert found.verdict == "cannot say"
    assert "would not show" in found.why


@pytest.mark.parametrize("slow", [False, True])
def test_a_sleep_of_a_fifth_shows_in_the_waiting_whatever_the_machine_does(slow: bool) -> None:
    found = pair(cpu(1, slow=slow), cpu(2, wait_ms=10.5))
    assert found.verdict == "slower"
    assert "waits 10.0 ms longer for its data" in found.why
    assert quantity(found, "step_time").low > 0
    assert pair(cpu(2, wait_ms=10.5), cpu(1)).verdict == "faster"


def test_cores_that_stay_idle_show_a_sleep_that_no_batch_was_waited_for() -> None:
    def asleep(seed: int, idle_cores: float, more_ms: float) -> Figures:
        steps = [ms + more_ms for ms in noisy(seed)]
        return cpu(seed, step_ns=tuple(round(ms * MS) for ms in steps), data_wait_ns=(-1,) * 60,
                   idle_cores=(idle_cores,) * 60)  # fmt: skip

    found = pair(asleep(1, 0.02, 0), asleep(2, 0.35, 10))
    assert found.verdict == "slower"
    assert "leaves the cores idle" in found.why


def test_waiting_that_grew_while_the_steps_became_shorter_is_no_slower_step() -> None:
    assert pair(cpu(1, slow=True, wait_ms=0.5), cpu(2, wait_ms=5.0)).verdict == "no difference"


def test_steps_during_which_others_used_the_cores_are_left_out() -> None:
    crowded = [ms * (8 if at < 30 else 1) for at, ms in enumerate(noisy(2))]
    others = (1.4,) * 30 + (0.1,) * 30
    found = pair(cpu(1), cpu(2, step_ns=tuple(round(ms * MS) for ms in crowded), others_cores=others))
    assert found.verdict == "no difference"
    assert quantity(found, "step_time").b == pytest.approx(50 * MS, rel=0.03)
    assert any("30 of 60 steps (B)" in note for note in found.basis)


def test_a_machine_that_others_used_all_the_time_says_nothing() -> None:
    found = pair(cpu(1), cpu(2, others=1.4, slow=True))
    assert found.verdict == "cannot say"
    assert found.why == "other programs used 1.4 of 2 cores while B was measured"
    assert math.isnan(quantity(found, "step_time").low)


def test_a_recording_twice_is_no_difference_whatever_its_steps_scatter() -> None:
    for of in (noisy(1), [50.0] * 3, [50.0, 400.0] * 20):
        copy = measured(of, works=works(work("gemm", [3.0] * 5)), title="copy")
        found = pair(measured(of, works=works(work("gemm", [3.0] * 5))), copy)
        assert (found.verdict, found.why, found.basis) == ("no difference", "the same recording twice", ())
        assert {(one.change, one.low, one.high, one.verdict) for one in found.quantities} == {
            (0, 0, 0, "no difference")
        }
        assert not any(one.how for one in found.works)


def test_a_recording_of_which_one_step_differs_by_a_nanosecond_is_another() -> None:
    one = measured(noisy(1))
    other = replace(one, step_ns=(one.step_ns[0] + 1, *one.step_ns[1:]))
    assert not pair(one, other).is_same
    assert pair(one, other).why.startswith("a step is as long (")
    assert not change([one], [one, other]).is_same
    assert change([one, other], [other, one]).is_same


def test_runs_of_which_nothing_was_timed_are_not_called_the_same() -> None:
    nothing = measured([])
    found = pair(nothing, nothing)
    assert (found.verdict, found.is_same) == ("cannot say", False)


def width(found: Change) -> float:
    step = quantity(found, "step_time")
    return step.high - step.low


def test_a_change_that_nearly_shows_is_neither_told_nor_denied() -> None:
    assert [is_level(change, 0.33) for change in (0.0, -0.16, -0.23, 0.3)] == [True, True, False, False]
    assert not is_level(0.0, 0.6), "an interval from −60 % to +60 % says nothing"


def test_a_copy_is_no_repeat() -> None:
    one, other = measured(noisy(1)), measured(noisy(2))
    with pytest.raises(InputError, match="Two of B's repeats are one recording"):
        changes([one], [other, replace(other, title="copy")])
    assert changes([one], [other, measured(noisy(3))]).changes


def test_what_one_side_does_not_tell_is_a_line_and_no_list() -> None:
    differs = pair(gpu(1), gpu(2, options={}, versions={}, host="", seen_ranks=(3,))).differs
    assert "host: here → not told" in differs
    assert "ranks that are here: not told → rank 3" in differs
    assert "options that only A tells: layers, lr" in differs
    assert "versions that only A tells: torch" in differs


def test_repeats_narrow_the_interval() -> None:
    one = change([gpu(1)], [gpu(2)])
    four = change([gpu(at) for at in range(4)], [gpu(at) for at in range(4, 8)])
    assert width(four) < 0.7 * width(one)
    assert any("in 4 runs" in note for note in four.basis)


def test_repeats_that_scatter_widen_it() -> None:
    apart = change([gpu(1, between=0), gpu(2, between=0, factor=1.5)], [gpu(3), gpu(4)])
    near = change([gpu(1), gpu(2)], [gpu(3), gpu(4)])
    assert width(apart) > 4 * width(near)


@pytest.mark.parametrize(
    ("about", "why"),
    [
        ({"global_batch": 16}, "other global batch: 8 and 16"),
        ({"model": "125m"}, "other model: tiny and 125m"),
        ({"options": {"layers": "4"}}, "other model: layers 2 and 4"),
        ({"ranks": 4}, "other number of ranks: 2 and 4"),
        (
            {"ranks": 4, "global_batch": 16, "options": {"layers": "4"}},
            "other global batch: 8 and 16; other number of ranks: 2 and 4; other model: layers 2 and 4",
        ),
        ({"device_kind": "tpu"}, "other kind of device: gpu and tpu"),
        ({"outcome": "failed"}, "B failed before its last step"),
        ({"outcome": "lost"}, "B broke off before its last step"),
    ],
)
def test_what_is_not_the_same_job_is_not_compared(about: dict[str, Any], why: str) -> None:
    found = pair(gpu(1), gpu(2, **about))
    assert (found.verdict, found.why) == ("cannot say", why)
    assert quantity(found, "step_time").verdict == "cannot say"


def test_too_few_steps_are_counted() -> None:
    found = pair(gpu(1), measured([50.0] * (FEWEST - 1)))
    assert (found.verdict, found.why) == ("cannot say", "B has 11 unprofiled steps past warm-up; 12 are needed")


def test_a_trace_has_no_unprofiled_step() -> None:
    found = pair(measured([], strategy="", finished_steps=0), measured([], strategy="", finished_steps=0))
    assert "a native trace shows only steps that were being profiled" in found.why
    found = pair(measured([]), gpu(1))
    assert found.why == "A has no unprofiled step past warm-up"


def test_what_was_changed_is_listed() -> None:
    found = pair(gpu(1), gpu(2, options={"layers": "2", "lr": "0.2"}, versions={"torch": "2.14"}, host="there"))
    assert set(found.differs) == {"lr: 0.1 → 0.2", "torch: 2.13 → 2.14", "host: here → there"}
    bigger = gpu(2, ranks=4, global_batch=16, options={"layers": "4", "lr": "0.1", "steps": "90"})
    differs = {"layers: 2 → 4", "options that only B tells: steps", "ranks: 2 → 4", "global batch: 8 → 16"}
    assert set(pair(gpu(1), bigger).differs) == differs


def test_throughput_is_the_batch_over_the_step_time() -> None:
    found = pair(measured([50.0] * 40), measured([100.0] * 40))
    rate = quantity(found, "throughput")
    assert (rate.a, rate.b, rate.verdict) == (pytest.approx(160), pytest.approx(80), "less")
    assert rate.change == pytest.approx(-0.5)
    assert rate.low < rate.change < rate.high


def test_steps_that_tell_no_samples_have_no_throughput() -> None:
    found = quantity(pair(gpu(1, samples_per_step=math.nan), gpu(2, samples_per_step=math.nan)), "throughput")
    assert (found.verdict, found.why) == ("cannot say", "the steps do not say how many samples they took")


@pytest.mark.parametrize(
    ("a", "b", "verdict"), [(100, 130, "more"), (100, 80, "less"), (100, 100, "no difference"), (-1, 100, "cannot say")]
)
def test_memory_is_compared_by_its_peak(a: int, b: int, verdict: str) -> None:
    found = pair(gpu(1, peak_bytes=a, peak_how="measured"), gpu(2, peak_bytes=b, peak_how="measured"))
    assert quantity(found, "memory").verdict == verdict


def test_peaks_of_different_instruments_are_not_compared() -> None:
    found = pair(gpu(1, peak_bytes=10, peak_how="exact"), gpu(2, peak_bytes=90, peak_how="derived"))
    assert quantity(found, "memory").why == "the peaks were come by differently: derived, exact"


def parts(exposed_ms: list[float]) -> dict[str, tuple[float, ...]]:
    found = tuple(ms * MS for ms in exposed_ms)
    return {"span": (50.0 * MS,) * len(found), "compute": found, "collective": found, "exposed": found,
            "idle": (0.0,) * len(found)}  # fmt: skip


def test_exposed_time_is_compared_over_profiled_steps() -> None:
    found = pair(gpu(1, parts_ns=parts([5.0, 5.1, 4.9, 5.0])), gpu(2, parts_ns=parts([9.0, 9.1, 8.9, 9.0])))
    assert quantity(found, "exposed").verdict == "more"
    assert quantity(found, "exposed").change == pytest.approx(0.8)
    assert quantity(found, "idle").verdict == "no difference"


def test_one_profiled_step_is_no_interval() -> None:
    found = pair(gpu(1, parts_ns=parts([5.0])), gpu(2, parts_ns=parts([9.0])))
    assert quantity(found, "exposed").why == "1 profiled step; 3 are needed on each side"


def test_works_are_sorted_by_their_effect_on_a_step() -> None:
    a = works(work("mm", [10, 10.1, 9.9]), work("old", [1, 1, 1]), work("same", [5, 5, 5]))
    b = works(work("mm", [20, 20.1, 19.9]), work("new", [3, 3, 3]), work("same", [5, 5, 5]))
    spans = {"parts_ns": parts([1.0, 1.0, 1.0])}
    found = pair(gpu(1, works=a, **spans), gpu(2, works=b, **spans)).works
    assert [(row.name, row.how, round(row.effect_ns / MS)) for row in found] == [
        ("mm", "slower", 10),
        ("new", "new", 3),
        ("old", "gone", -1),
    ]


def test_calls_that_only_some_steps_have_are_no_change() -> None:
    a = works(work("sum", [1, 3, 1], count=[1, 66, 1]))
    b = works(work("sum", [1, 1, 1], count=[1, 1, 1]))
    assert pair(gpu(1, works=a), gpu(2, works=b)).works[0].how == ""
    more = works(work("sum", [2, 2, 2], count=[70, 70, 70]))
    assert pair(gpu(1, works=a), gpu(2, works=more)).works[0].how == "more calls"


def test_what_may_have_been_left_out_is_not_called_new() -> None:
    a, b = works(work("mm", [10] * 3)), works(work("mm", [10] * 3), work("tiny", [0.5] * 3))
    found = pair(gpu(1, works=a, works_left_ns=0.6 * MS), gpu(2, works=b)).works
    assert "tiny" not in [row.name for row in found]


def test_a_fault_that_was_injected_on_one_side_is_named_as_what_differs() -> None:
    found = pair(gpu(1), gpu(2, factor=1.2, faults=("straggler 60 ms",)))
    assert found.differs[0] == "injected on purpose: none → straggler 60 ms"
    assert not any("injected" in note for note in found.basis)


def test_a_fault_that_was_injected_on_both_sides_is_said_first() -> None:
    found = pair(gpu(1, faults=("same key",)), gpu(2, faults=("same key",)))
    assert not any("injected" in what for what in found.differs)
    assert found.basis[0] == "Both sides ran with injected same key."


def test_between_frameworks_collectives_are_matched_and_kernels_are_not() -> None:
    a = works(work("all_reduce", [10, 10, 10], kind="collective"), work("aten::mm", [20, 20, 20]))
    b = works(work("all_reduce", [30, 30, 30], kind="collective"), work("dot.17", [20, 20, 20]),
              work("all_gather", [5, 5, 5], kind="collective"))  # fmt: skip
    found = pair(gpu(1, works=a), gpu(2, works=b, framework="jax", strategy="pmap", title="pmap"))
    assert [(row.name, row.how) for row in found.works] == [("all_reduce", "slower"), ("all_gather", "new")]
    assert any("PyTorch and JAX name the same kernels differently" in note for note in found.basis)


def test_two_strategies_of_one_framework_are_compared_kernel_by_kernel() -> None:
    a, b = works(work("mm", [10, 10, 10])), works(work("mm", [30, 30, 30]))
    found = pair(gpu(1, works=a), gpu(2, works=b, strategy="fsdp", title="fsdp"))
    assert (found.title, found.works[0].name, found.works[0].how) == ("ddp → fsdp", "mm", "slower")
    assert not any("name the same kernels differently" in note for note in found.basis)


def test_a_judgement_calls_the_sides_what_it_is_told_to() -> None:
    crowded = cpu(2, others=1.4, slow=True)
    found = judgement([cpu(1)], [crowded], called=("ddp", "fsdp"))
    assert found.why == "other programs used 1.4 of 2 cores while fsdp was measured"
    short = measured([50.0] * 3)
    assert judgement([short], [gpu(2)], called=("ddp", "fsdp")).why.startswith("ddp has 3 unprofiled steps")
