"""What numbers are made of, from drawings: formulas that work out, the spans behind them, and what cannot be said."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from drawn import run, steps, timeline, windows

from meshscope.analysis.efficiency import efficiency
from meshscope.analysis.explaining import explainable, explanations, groups
from meshscope.analysis.explaining.figure import OPERATIONS, SUM, Figure, made, total
from meshscope.analysis.explaining.number import Case
from meshscope.analysis.explaining.words import exact, formulas, paragraphs, shown
from meshscope.errors import InputError
from meshscope.recording.entries import MemoryMeasured, RankStarted, Sampled, TraceWritten
from meshscope.run import Run
from meshscope.spans import Allocations, Counts

TWO_STEPS = """
    0 step        aaaaaaaaaabbbbbbbbbb
    0 compute     ####......######....
    0 all_reduce  ..####........####..
"""
MS = 1_000_000


def asked(of: Run, name: str, *, rank: int | None = None, step: int | None = None) -> tuple[Case, ...]:
    (found,) = explanations((of,), name, rank=rank, step=step)
    return found.cases


def only(of: Run, name: str, *, rank: int | None = None, step: int | None = None) -> Case:
    (case,) = asked(of, name, rank=rank, step=step)
    return case


def value(case: Case) -> float:
    assert case.figure is not None, case.why
    return case.figure.value


def test_exposed_time_is_collectives_less_what_is_hidden_over_the_steps() -> None:
    # collective 40 + 40, of which 20 + 20 under compute: 40 over 2 steps.
    case = only(timeline(TWO_STEPS), "exposed")
    assert case.figure is not None
    assert (case.of, case.figure.value, case.json) == ("rank 0", 20, "ranks[rank=0].per_step.exposed_ns")
    assert formulas(case.figure) == [
        "20 ns exposed = 40 ns exposed in complete steps / 2 steps, rounded",
        "40 ns exposed in complete steps = 80 ns collectives in complete steps − 40 ns hidden in complete steps",
    ]


def test_the_spans_behind_it_say_how_much_of_each_counts() -> None:
    case = only(timeline(TWO_STEPS), "exposed")
    assert case.evidence is not None
    assert (case.evidence.what, case.evidence.count) == ("collective spans", 2)
    assert [(one.start_ns, one.duration_ns, one.share_ns) for one in case.evidence.largest] == [
        (20, 40, 20),
        (140, 40, 20),
    ]
    (rule,) = case.evidence.rules
    assert (rule.kind, rule.collective, rule.count, rule.joined_ns) == ("collective", "all_reduce", 2, 40)


def test_a_span_with_no_part_in_a_number_is_not_behind_it() -> None:
    hidden_whole = """
        0 step        aaaaaaaaaa
        0 compute     ######....
        0 all_reduce  ..##...##.
    """
    case = only(timeline(hidden_whole), "exposed")
    assert case.evidence is not None
    assert (value(case), case.evidence.count) == (20, 1)
    assert case.evidence.largest[0].start_ns == 70


def test_one_step_is_told_alone() -> None:
    uneven = """
        0 step        aaaaaaaaaabbbbbbbbbb
        0 compute     ####......##########
        0 all_reduce  ..####......####....
    """
    of = timeline(uneven)
    assert value(only(of, "exposed")) == 10
    first, second = only(of, "exposed", step=0), only(of, "exposed", step=1)
    assert (value(first), value(second)) == (20, 0)
    assert first.json == ""
    assert first.notes[0] == "of step 0 alone, not the mean"
    assert second.evidence is not None
    assert second.evidence.count == 0


def test_ranks_are_told_apart_and_one_can_be_asked_for() -> None:
    of = timeline("""
        0 step        aaaaaaaaaa
        0 compute     ####......
        1 step        aaaaaaaaaa
        1 compute     ######....
    """)
    assert [(case.of, value(case)) for case in asked(of, "compute")] == [("rank 0", 40), ("rank 1", 60)]
    assert [case.rank for case in asked(of, "compute", rank=1)] == [1]


def test_idle_time_is_made_of_the_stretches_without_work_and_what_ended_them() -> None:
    case = only(timeline(TWO_STEPS), "idle")
    assert case.evidence is not None
    assert value(case) == 30  # 40 in the first step, 20 in the second
    assert [(one.start_ns, one.duration_ns) for one in case.evidence.largest] == [(60, 40), (180, 20)]


def test_the_five_shares_add_up_to_one() -> None:
    of = timeline(TWO_STEPS)
    parts = [value(only(of, f"share.{what}", rank=0)) for what in ("compute", "hidden", "exposed", "copy", "idle")]
    assert parts == [0.3, 0.2, 0.2, 0.0, 0.3]


def test_without_a_whole_step_it_is_over_whole_windows_and_says_so() -> None:
    case = only(timeline("0 compute ####....####\n0 all_reduce ..####......"), "exposed")
    assert (value(case), case.json) == (20, "ranks[rank=0].breakdown.exposed_ns")
    assert "no step lies wholly in a window, so this is over whole windows" in case.notes
    assert not [note for note in only(timeline(TWO_STEPS), "exposed").notes if "whole windows" in note]


def test_a_rank_without_a_whole_step_beside_others_that_have_one_cannot_say() -> None:
    of = run(windows=(*windows(TWO_STEPS), *windows("1 compute ####")))
    known, unknown = asked(of, "compute")
    assert value(known) == 50
    assert (unknown.figure, unknown.why) == (None, "no profiled step lies wholly in a window of this rank")


def test_a_trace_without_device_work_says_why() -> None:
    nothing = windows("0 host ####", device_kind="none", cannot_say=(("breakdown", "only host activity"),))
    case = only(run(windows=nothing), "busy")
    assert (case.figure, case.why) == (None, "only host activity")


def test_what_was_dropped_and_repaired_in_the_traces_stands_beside() -> None:
    (window,) = windows(TWO_STEPS)
    counts = Counts(read=9, device=4, dropped={"no duration": 2}, repaired={"nested": 1})
    case = only(run(windows=(replace(window, counts=counts),)), "hidden")
    assert case.events is not None
    assert (case.events.read, case.events.dropped, case.events.repaired) == (9, {"no duration": 2}, {"nested": 1})


def test_windows_of_one_rank_are_added_up_and_called_by_when_they_began() -> None:
    later = tuple(window.shifted(1_000) for window in windows(TWO_STEPS))
    case = only(run(windows=(*windows(TWO_STEPS), *later)), "breakdown.compute")
    assert case.figure is not None
    assert case.figure.how == SUM
    assert [(part.name, part.value) for part in case.figure.of] == [
        ("rank 0 from 0.000000 s", 100),
        ("rank 0 from 0.000001 s", 100),
    ]


def test_step_time_is_the_median_of_measured_steps_and_says_which_were_left_out() -> None:
    of = run(steps([90, 80, 70, 72, 71, 99], profiled=[5], ranks=1))
    case = only(of, "ms/step")
    assert case.figure is not None
    assert value(case) == 71 * MS  # of 70, 72 and 71
    assert case.notes[0] == "3 measured steps of 6 (2–4); left out: 1 that profiling touched, 2 of warm-up or compiling"
    assert case.figure.of[0].how == "median"
    assert [part.name for part in case.figure.of[0].of] == ["step 2", "step 3", "step 4"]


def test_one_step_says_when_each_rank_ended() -> None:
    case = only(run(steps([90, 80, 70], ranks=2)), "step_time", step=1)
    assert value(case) == 81 * MS  # rank 1 begins and ends 1 ms later
    assert "rank 1" in case.notes[0]


def test_speedup_is_against_the_single_run_that_stands_beside() -> None:
    ddp, single = run(steps([50] * 6)), run(steps([100] * 6, ranks=1), strategy="single", is_baseline=True, ranks=1)
    (found,) = explanations((ddp, single), "×1", of="ddp")
    # 32 samples in 51 ms on two ranks, 16 in 100 ms on one.
    assert value(found.cases[0]) == pytest.approx(32 / 51 / (16 / 100))
    (alone,) = explanations((ddp,), "speedup")
    assert "no run of the same framework on one device" in alone.cases[0].why


def test_a_derived_peak_is_what_was_there_and_what_the_allocator_grew() -> None:
    (window,) = windows(TWO_STEPS, device_kind="cpu")
    grown = Allocations(np.array([0, 5]), np.array([30, 10]))
    entry = MemoryMeasured(t_ns=1, rank=0, device=0, step=1, source="trees", categories={"parameters": 70},
                           how={"parameters": "exact"}, peak_bytes=100, peak_how="derived")  # fmt: skip
    of = replace(run([entry]), windows=(replace(window, allocations=grown),))
    case = only(of, "memory.peak")
    assert case.figure is not None
    assert [(part.name, part.value) for part in case.figure.of] == [
        ("alive before the window and not cleared in it", 70),
        ("most that the allocator grew in the window", 30),
    ]


def test_a_measured_peak_is_not_taken_apart() -> None:
    entry = MemoryMeasured(t_ns=1, rank=0, device=0, step=1, source="CUDA", categories={}, how={},
                           peak_bytes=100, peak_how="measured")  # fmt: skip
    case = only(run([entry]), "memory.peak")
    assert case.figure == Figure("peak of rank 0", 100, "bytes")


def test_what_profiling_cost_counts_the_slowest_rank_of_each_window() -> None:
    traces = [
        TraceWritten(t_ns=9, rank=rank, path=f"{rank}", format="kineto", first_step=3, end_step=4, size_bytes=1,
                     stop_ns=stop_ns)
        for rank, stop_ns in ((0, 5 * MS), (1, 7 * MS))
    ]  # fmt: skip
    case = only(run([*steps([10] * 6, profiled=[3]), *traces]), "profiler")
    assert case.figure is not None
    longer, held = case.figure.of[0].of
    assert (held.name, held.value) == ("starting and stopping", 7 * MS)
    (window,) = held.of
    assert [(part.name, part.value) for part in window.of] == [("rank 0", 5 * MS), ("rank 1", 7 * MS)]
    assert longer.value == 0


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("exposd", "exposed"), ("busbw", "collectives.all_reduce.busbw"), ("PEAK_BYTE", "memory.peak")],
)
def test_an_unknown_name_is_answered_with_the_nearest(name: str, nearest: str) -> None:
    with pytest.raises(InputError) as refused:
        explanations((timeline(TWO_STEPS),), name)
    assert name in refused.value.message
    assert f"Did you mean {nearest}" in refused.value.hint


def test_a_name_like_no_other_gets_no_guess() -> None:
    with pytest.raises(InputError) as refused:
        explanations((timeline(TWO_STEPS),), "qqqqqq")
    assert refused.value.hint == "Without a NUMBER, explain lists all of them."


@pytest.mark.parametrize(
    ("name", "narrowed", "said"),
    [
        ("exposed", {"rank": 7}, "no rank 7"),
        ("exposed", {"step": 9}, "no step 9"),
        ("throughput", {"rank": 0}, "cannot be told of one rank"),
        ("memory.peak", {"step": 0}, "no step 0 for memory.peak"),
        ("exposed", {"of": "fsdp"}, "no run called fsdp"),
    ],
)
def test_what_is_not_there_and_what_cannot_be_narrowed_is_refused(
    name: str, narrowed: dict[str, int], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        explanations((timeline(TWO_STEPS),), name, **narrowed)  # type: ignore[arg-type]


def test_every_number_has_a_name_of_its_own_and_a_sentence() -> None:
    known = [number for _, numbers in explainable((timeline(TWO_STEPS),)) for number in numbers]
    assert len({number.name for number in known}) == len(known)
    assert all(number.definition.endswith(".") and number.excludes for number in known)
    assert len({group.place for group in groups()}) == len(groups())


def test_a_sum_of_one_is_that_one_by_the_name_of_the_sum() -> None:
    assert total("all", [Figure("rank 0", 5)]) == Figure("all", 5)
    both = total("all", [Figure("rank 0", 5), Figure("rank 1", 6)])
    assert (both.value, both.how) == (11, SUM)


@pytest.mark.parametrize(
    ("how", "values", "result"),
    [
        ("sum", [1, 2, 3], 6),
        ("difference", [9, 2, 3], 4),
        ("quotient", [3, 4], 0.75),
        ("rounded quotient", [7, 2], 4),
        ("quotient per second", [3, 2], 1.5e9),
        ("median", [1, 9, 2, 4], 3.0),
        ("half the interquartile range", [0, 1, 2, 3, 4], 1.0),
        ("largest", [3, 8, 5], 8),
        ("last", [3, 8, 5], 5),
    ],
)
def test_operations(how: str, values: list[float], result: float) -> None:
    assert OPERATIONS[how](values) == result


def test_many_parts_are_told_by_the_largest_and_the_rest_together() -> None:
    figure = made("all", SUM, *(Figure(f"part {at}", at) for at in range(1, 10)))
    (line,) = formulas(figure)
    assert line.startswith("45 ns all = 9 ns part 9 + 8 ns part 8")
    assert line.endswith("+ 3 smaller ones (6 ns)")


def test_values_are_written_in_full_and_as_tables_have_them() -> None:
    assert exact(18_193_512, "ns") == "18\u202f193\u202f512 ns"
    assert exact(1, "steps") == "1 step"
    assert exact(-5, "ns") == "−5 ns"
    assert exact(0.125, "frac") == "0.125"
    assert [shown(2.5e6, "ns"), shown(0.125, "frac"), shown(3_000_000, "bytes/s")] == ["2.50 ms", "12.5 %", "3.00 MB/s"]


def test_names_from_a_trace_cannot_steer_a_terminal() -> None:
    (window,) = windows(TWO_STEPS)
    hostile = replace(window.spans, names=("evil\x1b[31m" + "x" * 300,), name=np.zeros(len(window.spans), np.int32))
    (found,) = explanations((run(windows=(replace(window, spans=hostile, source="a\x1b]0;b"),)),), "compute")
    text = "\n".join(said.text for said in paragraphs(found))
    assert "\x1b" not in text
    assert "evil�[31m" in text
    assert "x" * 100 not in text


def test_the_newest_reading_of_a_sensor_is_told_as_such() -> None:
    sampled = [Sampled(t_ns=at * 1_000_000_000, device="gpu 0", values={"power_w": 100.0 + at}) for at in range(9)]
    case = only(run(sampled), "devices.power_w.last")
    assert case.figure is not None
    assert formulas(case.figure) == ["108 w last of power_w = the newest of 9 values"]
    assert value(only(run(sampled), "devices.power_w.mean")) == 104


def test_mfu_is_the_models_arithmetic_over_time_ranks_and_the_peak() -> None:
    options = {"layers": 2, "width": 64, "vocab": 512, "seq": 128, "precision": "bf16"}
    name = "NVIDIA A100-SXM4-80GB"
    started = [RankStarted(t_ns=0, rank=r, device=r, device_name=name, device_kind="gpu", pid=1) for r in (0, 1)]
    of = run([*started, *steps([9] * 5)], options=options, sequence_length=128, global_batch=32)
    case = only(of, "mfu")
    assert case.figure is not None
    parameters = 2 * (12 * 64**2 + 2 * 64) + (512 + 128 + 1) * 64
    flop = (6 * parameters + 6 * 2 * 64 * 128) * 32 * 128
    # 9 ms on each rank, the second of which begins and ends 1 ms later.
    assert value(case) == pytest.approx(flop / 0.010 / 2 / 312e12)
    assert value(case) == efficiency(of).mfu_frac
    assert value(only(of, "of_measured")) == efficiency(of).measured_frac
