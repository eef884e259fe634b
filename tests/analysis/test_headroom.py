"""What was left at the fullest moment, and of what."""

from __future__ import annotations

from dataclasses import replace

import pytest
from drawn import run, steps
from explained import only, parts, value

from meshscope.analysis.headroom import CGROUP, DEVICE, HOST, POOL, Headroom, headroom, headroom_doubt
from meshscope.recording.entries import MemoryMeasured, Sampled
from meshscope.records import MemoryRecord

GB = 1_000_000_000


def measured(rank: int = 0, **about: object) -> MemoryMeasured:
    return MemoryMeasured(
        t_ns=1, rank=rank, device=rank, step=1, source="trees", categories={}, how={}, **about  # type: ignore[arg-type]
    )  # fmt: skip


def reading(t_ns: int, device: str, **values: float) -> Sampled:
    return Sampled(t_ns=t_ns, device=device, values=values)


def test_the_sensor_of_a_gpu_counts_everybody_at_the_fullest_moment() -> None:
    made = [
        *steps([100.0] * 4, ranks=1, reserved_bytes=50 * GB, peak_bytes=40 * GB),
        measured(pool_bytes=48 * GB, capacity_bytes=79 * GB),
        reading(1, "gpu 0", memory_used_bytes=30e9, memory_total_bytes=80e9),
        reading(2, "gpu 0", memory_used_bytes=60e9, memory_total_bytes=80e9),
        reading(3, "gpu 0", memory_used_bytes=55e9, memory_total_bytes=80e9),
    ]
    (found,) = headroom(run(made))
    assert found == Headroom((0,), DEVICE, 80 * GB, 20 * GB, 50 * GB, 10 * GB)
    assert found.frac == pytest.approx(0.25)


def test_without_a_sensor_what_was_reserved_is_set_against_the_device_and_others_are_not_known() -> None:
    (found,) = headroom(run([measured(pool_bytes=50 * GB, capacity_bytes=80 * GB)]))
    assert found == Headroom((0,), DEVICE, 80 * GB, 30 * GB, 50 * GB, None)


def test_jax_has_room_up_to_the_limit_of_its_pool_whatever_the_pool_has_taken() -> None:
    pool = {"pool_bytes": 60 * GB, "limit_bytes": 60 * GB, "in_use_bytes": 5 * GB}
    made = measured(**pool, peak_bytes=45 * GB, peak_how="measured")
    (found,) = headroom(run([made, reading(1, "gpu 0", memory_used_bytes=61e9, memory_total_bytes=80e9)]))
    assert found == Headroom((0,), POOL, 60 * GB, 15 * GB, 45 * GB, None)


def test_ranks_on_cpu_share_the_host_or_the_cgroup_whichever_leaves_less() -> None:
    made = [measured(0), measured(1), reading(1, "host", memory_used_bytes=10e9, memory_total_bytes=64e9)]
    assert headroom(run(made, device_kind="cpu")) == (Headroom((0, 1), HOST, 64 * GB, 54 * GB, None, None),)
    limited = reading(2, "host", memory_used_bytes=10e9, memory_total_bytes=64e9, cgroup_used_bytes=3e9,
                      cgroup_limit_bytes=8e9)  # fmt: skip
    assert headroom(run([*made, limited], device_kind="cpu")) == (Headroom((0, 1), CGROUP, 8 * GB, 5 * GB, None, None),)


def test_where_nothing_tells_the_capacity_there_is_a_reason_and_no_number() -> None:
    alone = replace(run(strategy=""), records=(MemoryRecord(kind="snapshot", source="s", rank=0, reserved_bytes=GB),))
    assert headroom(alone) == ()
    assert "neither the device's memory nor a limit" in headroom_doubt(alone)
    some = run([measured(0, pool_bytes=GB, capacity_bytes=2 * GB), measured(1, pool_bytes=GB)])
    assert len(headroom(some)) == 1
    assert headroom_doubt(some).startswith("rank 1: neither")
    assert headroom_doubt(run()) == ""


def test_a_snapshot_beside_its_devices_log_has_a_headroom() -> None:
    record = MemoryRecord(kind="snapshot", source="s", rank=3, device=2, reserved_bytes=12 * GB)
    made = run([reading(1, "gpu 2", memory_used_bytes=15e9, memory_total_bytes=16e9)], strategy="")
    assert headroom(replace(made, records=(record,))) == (Headroom((3,), DEVICE, 16 * GB, GB, 12 * GB, 3 * GB),)


def test_headroom_is_explained_by_who_held_the_rest() -> None:
    made = [
        *steps([100.0] * 4, ranks=1, reserved_bytes=50 * GB, peak_bytes=40 * GB),
        measured(pool_bytes=48 * GB, capacity_bytes=79 * GB),
        reading(2, "gpu 0", memory_used_bytes=60e9, memory_total_bytes=80e9),
    ]
    case = only(run(made), "headroom")
    assert (value(case), case.json) == (20 * GB, "headroom[0].free_bytes")
    assert case.figure is not None
    assert [(part.name, part.value) for part in case.figure.of[1].of] == [
        ("by the allocator", 50 * GB),
        ("by others", 10 * GB),
    ]
    assert value(only(run(made), "headroom.share")) == 0.25
    assert list(parts(only(run(made), "headroom.share"))) == ["left", "the device's memory"]
