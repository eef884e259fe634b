"""Recompilations, the profiler's own cost, incomplete traces and numbers that cannot be."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from asked import codes, only, said
from drawn import run, steps, timeline
from made_spans import kernel, launch
from made_spans import window as made_window

from meshscope.recording.entries import Compiled, RankStarted, TraceWritten
from meshscope.records import MemoryRecord
from meshscope.run import Run
from meshscope.spans import Counts

MS = 1_000_000
PICTURE = "0 compute ####\n1 compute ####"


def again(step: int, duration_ns: int = 50 * MS, *, is_again: bool = True) -> Compiled:
    return Compiled(
        t_ns=step, rank=0, name="train_step", stage="compile", duration_ns=duration_ns, step=step,
        is_recompilation=is_again, reason="now f32[4] and before f32[3]",
    )  # fmt: skip


def test_programs_that_are_compiled_again_and_again_are_a_storm_with_the_reason() -> None:
    found = only("recompilation-storm", run([*steps([100.0] * 20), *(again(step) for step in (5, 6, 7))]))
    assert found.cost_ns == 150 * MS
    assert found.of == "the 2.04 s of training"
    assert "3 recompilations took 150 ms, 7.4 % of the 2.04 s of training, in steps 5–7" in said(found)
    assert "train_step: now f32[4] and before f32[3] (3 times)" in said(found)


def test_two_recompilations_first_compilations_and_quick_ones_are_no_storm() -> None:
    assert codes(run([*steps([100.0] * 20), again(5), again(6)])) == []
    assert codes(run([*steps([100.0] * 20), *(again(step, is_again=False) for step in range(5))])) == []
    assert codes(run([*steps([100.0] * 20), *(again(step, MS) for step in range(5))])) == []


def test_a_storm_names_the_inputs_that_changed_and_counts_the_reasons_it_leaves_out() -> None:
    entries = [replace_changed(again(step), f"tokens int32[{step},128] → int32[8,128]") for step in range(4, 9)]
    found = only("recompilation-storm", run([*steps([100.0] * 20), *entries], framework="jax"))
    assert "train_step: tokens int32[4,128] → int32[8,128] (1 time)" in said(found)
    assert "and for 2 other reasons" in said(found)
    assert "drop_last" in found.fix
    assert "jax_compilation_cache_dir" in found.fix


def replace_changed(entry: Compiled, changed: str) -> Compiled:
    return msgspec.structs.replace(entry, changed=(changed,))


def test_tracing_and_lowering_are_part_of_what_a_storm_costs() -> None:
    """Three times 5 ms of compiling are less than a hundredth of 2 s, and with 10 ms of tracing each more."""
    short = [again(10 * step, 5 * MS) for step in (5, 6, 7)]
    short = [msgspec.structs.replace(entry, step=entry.t_ns // 10) for entry in short]
    traces = [
        msgspec.structs.replace(entry, t_ns=entry.t_ns - 1, stage="trace", duration_ns=10 * MS, is_recompilation=False)
        for entry in short
    ]
    assert codes(run([*steps([100.0] * 20), *short])) == []
    found = only("recompilation-storm", run([*steps([100.0] * 20), *short, *traces]))
    assert found.cost_ns == 45 * MS


def test_recompilations_of_the_first_two_steps_are_no_storm() -> None:
    assert codes(run([*steps([100.0] * 20), *(again(step) for step in (0, 1, 1, 2, 3))])) == []


def test_a_storm_on_one_torch_rank_is_that_ranks() -> None:
    storm = [again(step) for step in (5, 6, 7)]
    quiet = msgspec.structs.replace(again(-1, is_again=False), rank=1)
    assert only("recompilation-storm", run([*steps([100.0] * 20), *storm, quiet])).ranks == (0,)
    same = [msgspec.structs.replace(entry, rank=1) for entry in storm]
    assert only("recompilation-storm", run([*steps([100.0] * 20), *storm, *same])).ranks == ()


def profiled(windows: int, stop_ms: int, *, count: int = 120) -> Run:
    firsts = [20 + 20 * number for number in range(windows)]
    written = [
        TraceWritten(
            t_ns=1, rank=0, path=f"{first}", format="kineto", first_step=first, end_step=first + 2, size_bytes=1,
            stop_ns=stop_ms * MS,
        )
        for first in firsts
    ]  # fmt: skip
    inside = {step for first in firsts for step in (first, first + 1, first + 2)}
    return run([*steps([100.0] * count, ranks=1, profiled=inside), *written])


def cost_of(made: Run) -> list[str]:
    """Without the finding that the announced files are not there."""
    return [code for code in codes(made) if code != "trace-incomplete"]


def test_a_profiler_that_takes_a_tenth_of_the_training_is_too_expensive() -> None:
    found = only("profiler-expensive", profiled(4, 400))
    assert found.cost_frac == pytest.approx(1.6 / 12.1, rel=0.02)
    assert "4 windows, the longest of which held a rank for 400 ms to write" in said(found)


def test_a_cheap_profiler_a_short_run_and_the_first_two_windows_are_no_finding() -> None:
    assert cost_of(profiled(4, 100)) == []
    assert cost_of(profiled(1, 900, count=40)) == []
    assert cost_of(profiled(2, 900)) == []


def test_two_windows_that_take_a_quarter_of_the_training_are_too_expensive_all_the_same() -> None:
    assert cost_of(profiled(2, 2000)) == ["profiler-expensive"]


def test_files_that_were_cut_refused_or_hold_dropped_events_make_a_trace_incomplete() -> None:
    whole = timeline(PICTURE)
    cut = replace(whole, windows=tuple(replace(window, is_complete=False) for window in whole.windows))
    assert "rank 1: drawn was cut short" in said(only("trace-incomplete", cut))
    refused = replace(whole, refused=(("rank2.json", "It is empty.", "Copy it."),))
    assert "rank2.json could not be read: It is empty." in said(only("trace-incomplete", refused))
    counts = Counts(read=100, device=50, dropped={"no end": 2})
    dropped = replace(whole, windows=tuple(replace(window, counts=counts) for window in whole.windows))
    assert "2 events of 100 were dropped, 2.0 % of them: 2 no end" in said(only("trace-incomplete", dropped))
    assert "copying them again changes nothing" in only("trace-incomplete", dropped).advice
    torn = only("trace-incomplete", replace(whole, skipped_lines=3))
    assert "3 lines of the journal" in said(torn)
    # No profiler wrote the journal: what stops one is no advice about it.
    assert "prof.stop" in only("trace-incomplete", cut).fix
    assert "prof.stop" not in torn.fix
    assert "journal" in torn.fix
    record = MemoryRecord(kind="", source="s.pickle", is_complete=False)
    assert "s.pickle was cut short" in said(only("trace-incomplete", replace(run(strategy=""), records=(record,))))


def test_ranks_without_a_trace_beside_others_are_missing_and_one_rank_alone_is_a_choice() -> None:
    both = run(windows=[replace(window, world=4) for window in timeline(PICTURE).windows], strategy="")
    found = only("trace-incomplete", both)
    assert "of ranks 2–3 no trace was read, beside 2 ranks of 4" in said(found)
    assert "Put the files of all ranks into one folder" in found.advice
    assert codes(run(windows=[replace(timeline("0 compute ####").windows[0], world=4)], strategy="")) == []


def test_whole_traces_of_all_ranks_are_no_finding_nor_is_a_dropped_event_in_a_thousand() -> None:
    assert codes(timeline(PICTURE)) == []
    counts = Counts(read=1000, device=50, dropped={"no end": 1})
    assert codes(run(windows=[replace(window, counts=counts) for window in timeline(PICTURE).windows])) == []


def claimed(step_ms: float) -> Run:
    options = {"layers": 24, "width": 2048, "vocab": 50304, "seq": 1024, "precision": "bf16"}
    started = [
        RankStarted(t_ns=0, rank=rank, device=rank, device_name="NVIDIA A100-SXM4-80GB", device_kind="gpu", pid=rank)
        for rank in range(2)
    ]
    return run([*started, *steps([step_ms] * 12)], options=options, global_batch=64, sequence_length=1024, ranks=2)


def test_more_flops_than_the_device_has_are_impossible_and_shown_with_their_arithmetic() -> None:
    found = only("impossible-number", claimed(180))
    assert found.is_grave
    assert "TFLOP per rank in the median step of 181 ms" in said(found)
    assert "A100" in said(found)


def test_what_a_device_can_do_is_no_finding() -> None:
    assert codes(claimed(3000)) == []


def test_waiting_for_a_batch_longer_than_the_step_took_is_impossible() -> None:
    found = only("impossible-number", run(steps([10.0] * 4, ranks=1, data_wait_ns=20 * MS)))
    assert "4 steps of a rank waited for the batch longer than the step took" in said(found)


def started(*, contradicting: int) -> Run:
    """Ten kernels, of which some start before their launch."""
    spans = []
    for number in range(10):
        at = number * 100
        call = launch(at + 50, at + 51) if number < contradicting else launch(at, at + 1)
        spans += [call, kernel(at + 10, at + 100, call)]
    return run(windows=[made_window(spans)], strategy="")


def test_kernels_that_start_before_their_launch_are_impossible_times_but_spoil_no_result() -> None:
    found = only("impossible-number", started(contradicting=3))
    assert (found.title, found.rank, found.is_grave) == ("impossible times of launches", 0, False)
    assert "rank 0: 3 kernels (30.0 % of those launched) start before their launch" in said(found)


def test_one_such_kernel_is_an_accident() -> None:
    assert "impossible-number" not in codes(started(contradicting=1))
