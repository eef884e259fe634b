"""Memory that leaks, is fragmented, or lies on one rank."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from asked import codes, only, said
from drawn import run, steps
from msgspec.structs import replace as changed

from meshscope.recording.entries import Entry, MemoryMeasured, Sampled, StepDone, TraceWritten
from meshscope.records import MemoryRecord

MB = 1_000_000
GB = 1_000_000_000
MS = 1_000_000


def allocated(after: Callable[[int], int], count: int = 42) -> list[StepDone]:
    """One rank's steps, with what it holds after each."""
    found: list[StepDone] = []
    for number in range(count):
        start_ns = number * 100 * MS
        end_ns = start_ns + 100 * MS
        found.append(
            StepDone(t_ns=end_ns, rank=0, step=number, start_ns=start_ns, end_ns=end_ns, allocated_bytes=after(number))
        )
    return found


def test_memory_that_grows_with_every_step_leaks() -> None:
    found = only("memory-leak", run(allocated(lambda step: 500 * MB + 5 * MB * step)))
    assert found.rank == 0
    assert "about 5.00 MB a step" in said(found)


def test_memory_that_reaches_a_level_does_not_leak() -> None:
    assert codes(run(allocated(lambda step: 500 * MB + 5 * MB * min(step, 15)))) == []


def test_memory_whose_growth_slows_down_does_not_leak() -> None:
    # As a process that runs XLA does on CPU: half of what it still lacks in every ten steps.
    assert codes(run(allocated(lambda step: 900 * MB - round(400 * MB * 0.5 ** (step / 10))))) == []


def test_memory_that_jumps_once_does_not_leak() -> None:
    assert codes(run(allocated(lambda step: 500 * MB + (200 * MB if step > 20 else 0)))) == []


def test_memory_that_goes_up_and_down_does_not_leak() -> None:
    assert codes(run(allocated(lambda step: 500 * MB + 100 * MB * (step % 2)))) == []


def test_growth_of_a_few_megabytes_is_not_told() -> None:
    assert codes(run(allocated(lambda step: 500 * MB + step * MB // 10))) == []


def resident(after: Sequence[int]) -> list[Entry]:
    """A reading in the middle of each step."""
    return [
        Sampled(t_ns=number * 100 * MS + 50 * MS, device="rank 0", values={"rss_bytes": float(value)})
        for number, value in enumerate(after)
    ]


def test_a_resident_set_that_grows_while_no_profiler_is_at_work_leaks() -> None:
    entries = [*allocated(lambda _: -1), *resident([400 * MB + 16 * MB * step for step in range(42)])]
    found = only("memory-leak", run(entries, device_kind="cpu"))
    assert "resident memory" in said(found)
    assert "about 16.0 MB a step" in said(found)


def test_of_one_process_that_drives_all_devices_no_rank_is_named() -> None:
    entries = [*allocated(lambda _: -1), *resident([400 * MB + 16 * MB * step for step in range(42)])]
    found = only("memory-leak", run(entries, strategy="pmap", framework="jax", device_kind="cpu"))
    assert found.ranks == ()
    assert said(found).startswith("the process of all ranks: resident memory")


def test_growth_that_every_profile_brings_is_the_profilers() -> None:
    profiled = {step for step in range(42) if step % 4 in (0, 1)}
    made = [changed(one, is_profiled=one.step in profiled) for one in allocated(lambda _: -1)]
    levels = [400 * MB + 40 * MB * (step // 4) for step in range(42)]
    assert codes(run([*made, *resident(levels)], device_kind="cpu")) == []


def test_memory_that_comes_and_goes_with_each_step_does_not_leak_by_what_is_left_out_of_it() -> None:
    # Buffers are freed while a profiler is at work and taken again after it: left out is the way down alone.
    profiled = range(6, 42, 6)
    made = [changed(one, is_profiled=one.step in profiled) for one in allocated(lambda _: -1)]
    levels = [600 * MB if step - 1 in profiled else 640 * MB for step in range(42)]
    assert codes(run([*made, *resident(levels)], device_kind="cpu")) == []


def test_growth_while_a_trace_is_written_is_the_profilers() -> None:
    levels = [400 * MB + 40 * MB * (step // 4) for step in range(42)]
    written: list[Entry] = [
        TraceWritten(t_ns=step * 100 * MS, rank=0, path=f"{step}", format="kineto", first_step=step, end_step=step,
                     size_bytes=1, stop_ns=40 * MS)
        for step in range(0, 42, 4)
    ]  # fmt: skip
    found = run([*allocated(lambda _: -1), *resident(levels), *written], device_kind="cpu")
    assert "memory-leak" not in codes(found)


def counted(reserved_bytes: int, peak_bytes: int) -> list[StepDone]:
    return steps([100.0] * 4, ranks=1, reserved_bytes=reserved_bytes, peak_bytes=peak_bytes)


def test_memory_that_is_reserved_and_never_allocated_is_fragmented() -> None:
    found = only("fragmentation", run(counted(40 * GB, 30 * GB)))
    assert "40.0 GB reserved, of which at most 30.0 GB were allocated at once; 25.0 %" in said(found)


def test_a_little_more_reserved_than_allocated_is_not() -> None:
    assert codes(run(counted(40 * GB, 35 * GB))) == []
    assert codes(run(counted(GB, GB // 2))) == []
    assert codes(run(counted(-1, -1))) == []


def snapshot(split_bytes: int) -> MemoryRecord:
    return MemoryRecord(
        kind="snapshot of the allocator", source="s.pickle", rank=1, reserved_bytes=40 * GB,
        figures={"inactive_split_bytes": split_bytes, "largest_free_bytes": GB},
    )  # fmt: skip


def test_a_snapshot_tells_what_lies_in_split_blocks() -> None:
    found = only("fragmentation", replace(run(strategy=""), records=(snapshot(12 * GB),)))
    assert found.rank == 1
    assert "12.0 GB of the 40.0 GB reserved (30.0 %)" in said(found)
    assert codes(replace(run(strategy=""), records=(snapshot(GB),))) == []


def peak(rank: int, peak_bytes: int) -> MemoryMeasured:
    return MemoryMeasured(
        t_ns=1, rank=rank, device=rank, step=1, source="allocator", categories={}, how={}, peak_bytes=peak_bytes,
        peak_how="measured",
    )  # fmt: skip


def test_a_rank_that_is_fuller_than_the_others_is_an_imbalance() -> None:
    found = only("memory-imbalance", run([peak(0, 20 * GB), peak(1, 20 * GB), peak(2, 30 * GB)]))
    assert found.rank == 2
    assert "50.0 % of that more" in said(found)


def test_ranks_that_hold_nearly_the_same_are_balanced_and_so_are_those_of_megabytes() -> None:
    assert codes(run([peak(0, 20 * GB), peak(1, 21 * GB)])) == []
    assert codes(run([peak(0, 20 * MB), peak(1, 40 * MB)])) == []


def test_a_rank_that_holds_several_devices_counts_with_its_fullest() -> None:
    def told(rank: int, device: int, peak_bytes: int) -> MemoryRecord:
        return MemoryRecord(kind="snapshot of the allocator", source=f"{rank}.pickle", rank=rank, device=device,
                            peak_bytes=peak_bytes, peak_how="replayed")  # fmt: skip

    records = (told(0, 0, 30 * GB), told(0, 1, GB), told(1, 1, 20 * GB), told(2, 2, 20 * GB))
    found = only("memory-imbalance", replace(run(strategy=""), records=records))
    assert found.rank == 0
    assert "rank 0 peaks at 30.0 GB" in said(found)
