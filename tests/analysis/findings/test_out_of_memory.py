"""Memory that ran out: what filled it, and what to cut."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from asked import codes, only, said
from drawn import run

from meshscope.analysis.out_of_memory import FRAGMENTED, FULL, LIMITED, OTHERS, UNTOLD, out_of_memory, segment_bytes
from meshscope.recording.entries import MemoryMeasured, RankEnded, Sampled
from meshscope.records import STEP_PARTS, Alive, Failure, MemoryRecord
from meshscope.run import Run

MIB, GIB = 1 << 20, 1 << 30

MESSAGE = (
    "OutOfMemoryError: CUDA out of memory. Tried to allocate {asked}. GPU 0 has a total capacity of 80.00 GiB of which "
    "{free} is free. {others}Including non-PyTorch memory, this process has 75.00 GiB memory in use. Of the allocated "
    "memory {allocated} is allocated by PyTorch, and {pieces} is reserved by PyTorch but unallocated."
)


def alive(*parts: tuple[int, str]) -> Alive:
    return Alive(
        moment="failure",
        time_ns=0,
        size_bytes=np.array([size for size, _ in parts], dtype=np.int64),
        site=np.arange(len(parts), dtype=np.int32),
        note=np.full(len(parts), -1, dtype=np.int32),
        part=np.array([STEP_PARTS.index(part) for _, part in parts], dtype=np.int8),
        is_older=np.zeros(len(parts), dtype=np.bool_),
        sites=tuple(f"train.py:{line} f" for line in range(len(parts))),
    )


def failed(*parts: tuple[int, str], pool_free: int = 0, free: int = 0, asked: int = 4 * GIB, **about: object) -> Run:
    allocated = sum(size for size, _ in parts)
    failure = Failure(
        time_ns=0, times=1, asked_bytes=asked, device_free_bytes=free, allocated_bytes=allocated,
        reserved_bytes=allocated + pool_free, pool_free_bytes=pool_free, largest_free_bytes=pool_free // 2,
        is_newest=True, alive=alive(*parts), **about,  # type: ignore[arg-type]
    )  # fmt: skip
    record = MemoryRecord(kind="snapshot", source="s.pickle", rank=1, failure=failure)
    return replace(run(strategy=""), records=(record,))


def died(why: str, *more: MemoryMeasured, rank: int = 0, exit_code: int = 1, framework: str = "torch") -> Run:
    return run([*more, RankEnded(t_ns=9, rank=rank, exit_code=exit_code, why=why)], framework=framework)


def words(asked: str = "4.00 GiB", free: str = "1.00 GiB", others: str = "", pieces: str = "1.00 GiB") -> str:
    return MESSAGE.format(asked=asked, free=free, others=others, allocated="70.00 GiB", pieces=pieces)


def test_what_filled_the_device_is_told_by_site_and_by_part() -> None:
    found = only("out-of-memory", failed((48 * GIB, "forward"), (16 * GIB, "optimizer"), free=GIB))
    assert (found.rank, found.is_grave) == (1, True)
    assert "rank 1 asked for 4.29 GB; the device had 1.07 GB free" in said(found)
    assert "train.py:0 f: 51.5 GB (75.0 %, 1 allocation); train.py:1 f: 17.2 GB (25.0 %, 1 allocation)" in said(found)
    assert "forward 75.0 %, optimizer 25.0 %" in said(found)
    assert "checkpoint" in found.fix
    assert "expandable_segments" not in found.fix


def test_expandable_segments_are_advised_where_the_pieces_come_to_what_was_asked_for() -> None:
    found = only("out-of-memory", failed((60 * GIB, "forward"), pool_free=3 * GIB, free=GIB))
    assert "what was free comes to 4.29 GB: enough, in one piece" in said(found)
    assert found.fix.startswith("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True")


@pytest.mark.parametrize(
    "made",
    [
        failed((60 * GIB, "forward"), pool_free=3 * GIB - 1, free=GIB),
        failed((60 * GIB, "forward"), pool_free=9 * GIB, free=GIB, is_expandable=True),
    ],
)
def test_they_are_not_where_it_would_not_have_fitted_or_segments_grow_already(made: Run) -> None:
    (told,) = out_of_memory(made)
    assert told.cause == FULL
    assert "expandable" not in only("out-of-memory", made).fix


@pytest.mark.parametrize(
    ("parts", "fix"),
    [
        (((40 * GIB, "optimizer"), (10 * GIB, "forward")), "ZeroRedundancyOptimizer"),
        (((40 * GIB, "elsewhere"), (10 * GIB, "forward")), "checkpoint"),  # not told what it is: cut the batch first
    ],
)
def test_the_line_to_paste_cuts_the_largest_term(parts: tuple[tuple[int, str], ...], fix: str) -> None:
    assert fix in only("out-of-memory", failed(*parts)).fix


def test_room_on_the_device_means_that_a_limit_forbids_it() -> None:
    (told,) = out_of_memory(failed((8 * GIB, "forward"), free=40 * GIB))
    assert told.cause == LIMITED
    assert "set_per_process_memory_fraction" in only("out-of-memory", failed((8 * GIB, "forward"), free=40 * GIB)).fix


@pytest.mark.parametrize(("asked", "taken"), [(1, 2), (MIB, 2), (MIB + 1, 20), (10 * MIB, 10), (10 * MIB + 1, 12)])
def test_what_the_driver_is_asked_for_follows_torchs_allocator(asked: int, taken: int) -> None:
    assert segment_bytes(asked) == taken * MIB


def test_a_rank_that_died_of_it_says_so_itself_and_its_categories_tell_the_term() -> None:
    sizes = {"parameters": 4 * GIB, "gradients": 4 * GIB, "optimizer": 16 * GIB, "activations": 10 * GIB}
    measured = MemoryMeasured(t_ns=1, rank=0, device=0, step=1, source="trees", categories=sizes, how={})
    found = only("out-of-memory", died(words(), measured))
    assert "rank 0 asked for 4.29 GB; the device had 1.07 GB free of 85.9 GB" in said(found)
    assert "of 76.2 GB reserved by the allocator, 75.2 GB were allocated" in said(found)
    assert "parameters 4.29 GB, gradients 4.29 GB, optimizer 17.2 GB, activations 10.7 GB" in said(found)
    assert "ZeroRedundancyOptimizer" in found.fix


def test_other_processes_are_named_where_it_would_have_fitted_without_them() -> None:
    made = died(words(others="Process 7 has 6.00 GiB memory in use. "))
    assert out_of_memory(made)[0].cause == OTHERS
    assert "other processes held 6.44 GB" in said(only("out-of-memory", made))
    assert "nvidia-smi" in only("out-of-memory", made).fix
    assert out_of_memory(died(words(others="Process 7 has 2.00 GiB memory in use. ")))[0].cause == FULL
    assert out_of_memory(died(words(pieces="3.00 GiB")))[0].cause == FRAGMENTED


def test_xla_tells_only_what_it_asked_for() -> None:
    made = died("XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4294967296 bytes.",
                framework="jax")  # fmt: skip
    assert out_of_memory(made)[0].cause == UNTOLD
    found = only("out-of-memory", made)
    assert "rank 0 asked for 4.29 GB (its last words)" in said(found)
    assert "jax.checkpoint" in found.fix


def test_the_hosts_memory_is_no_devices() -> None:
    why = "RuntimeError: DefaultCPUAllocator: can't allocate memory: you tried to allocate 4000000000 bytes."
    found = only("out-of-memory", died(why))
    assert "host" in found.advice
    assert "expandable" not in found.fix


def test_the_capacity_is_the_sensors_where_a_log_is_beside_the_snapshot() -> None:
    made = failed((GIB, "forward"))
    log = run([Sampled(t_ns=1, device="gpu 0", values={"memory_total_bytes": 80e9})], strategy="")
    shown = said(only("out-of-memory", replace(log, records=made.records)))
    assert "free of 80.0 GB" in shown
    assert "contexts and other processes held 78.9 GB" in shown


def test_nothing_is_said_of_other_deaths_of_ranks_that_ended_well_or_of_a_history_without_a_failure() -> None:
    assert "out-of-memory" not in codes(died("ValueError: memory of an elephant"))
    assert "out-of-memory" not in codes(died(words(), exit_code=0))
    assert "out-of-memory" not in codes(
        died("it was ended by SIGKILL (by the kernel when memory runs out)", exit_code=-9)
    )
    healthy = MemoryRecord(kind="snapshot", source="s", rank=0, alive=alive((GIB, "forward")))
    assert "out-of-memory" not in codes(replace(run(strategy=""), records=(healthy,)))


@pytest.mark.parametrize(
    ("about", "line"),
    [
        ({"global_batch": 32}, "meshscope run ddp … --accumulate 2 --checkpoint-activations"),
        ({"global_batch": 32, "options": {"accumulate": 8, "checkpoint_activations": True}},
         "meshscope run ddp … --accumulate 16"),
        ({"global_batch": 34}, "meshscope run ddp … --checkpoint-activations"),
        ({"global_batch": 32, "options": {}}, "# compute activations again"),
    ],
)  # fmt: skip
def test_a_run_of_our_own_is_told_its_own_options(about: dict[str, object], line: str) -> None:
    """Two ranks: a batch of 34 cannot be halved once more."""
    known = {"options": {"accumulate": 1}} | about
    made = run([RankEnded(t_ns=9, rank=0, exit_code=1, why=words())], **known)
    fix = only("out-of-memory", made).fix.splitlines()
    assert any(one.startswith(line) for one in fix)
    assert ("this run again" in fix[0]) == bool(known["options"])


def test_a_replica_that_is_full_of_state_is_told_to_be_sharded() -> None:
    sizes = {"parameters": 4 * GIB, "gradients": 4 * GIB, "optimizer": 16 * GIB, "activations": GIB}
    measured = MemoryMeasured(t_ns=1, rank=0, device=0, step=1, source="trees", categories=sizes, how={})
    made = run([measured, RankEnded(t_ns=9, rank=0, exit_code=1, why=words())], options={"accumulate": 1})
    assert "meshscope run fsdp …" in only("out-of-memory", made).fix
