"""Snapshots of torch's CUDA allocator: the state at the end, and the history that led there."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from made_records import MIB, UNIX_US, block, call, segment, write_snapshot

from meshscope.errors import TraceError
from meshscope.readers.memory_snapshot import read
from meshscope.readers.records import record_reader_of
from meshscope.records import MemoryRecord


def snapshot(path: Path, *args: Any, **how: Any) -> tuple[MemoryRecord, ...]:
    write_snapshot(path, *args, **how)
    found = record_reader_of(path)
    assert found is not None
    assert found.format == "torch memory snapshot"
    records = read(path)
    assert all(isinstance(record, MemoryRecord) for record in records)
    return records  # type: ignore[return-value]  # just asserted


def why(record: MemoryRecord, what: str) -> str:
    return " | ".join(reason for name, reason in record.cannot_say if name == what)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "snapshot.pickle"


def test_what_was_held_at_the_start_is_the_end_less_what_the_history_adds_up_to(path: Path) -> None:
    held = segment(block(0, 6 * MIB), block(6 * MIB, 2 * MIB), block(8 * MIB, 2 * MIB, "inactive"))
    history = [
        call("alloc", 3 * MIB, 10), call("alloc", 2 * MIB, 20), call("free_requested", 3 * MIB, 30),
        call("free_completed", 3 * MIB, 31),
    ]  # fmt: skip
    (record,) = snapshot(path, [held], history)
    assert (record.end_bytes, record.reserved_bytes) == (8 * MIB, 10 * MIB)
    assert (record.preexisting_bytes, record.peak_bytes) == (6 * MIB, 11 * MIB)
    assert record.actions == {"alloc": 2, "free_completed": 1, "free_requested": 1}
    assert "begins with 6.29 MB held" in why(record, "memory.peak_bytes")
    assert (record.start_ns, record.end_ns) == ((UNIX_US + 10) * 1000, (UNIX_US + 31) * 1000)
    assert record.allocations is not None
    assert record.allocations.total_bytes.tolist() == [9 * MIB, 11 * MIB, 8 * MIB]


def test_a_history_that_accounts_for_all_that_is_held_began_with_nothing(path: Path) -> None:
    """The blocks are larger than what was asked for: that is rounding, and was not there before."""
    held = segment(block(0, 2 * MIB, requested=2 * MIB - 100))
    history = [call("alloc", 5 * MIB, 1), call("free_requested", 5 * MIB, 2), call("alloc", 2 * MIB - 100, 3)]
    (record,) = snapshot(path, [held], history)
    assert (record.preexisting_bytes, record.peak_bytes) == (0, 5 * MIB)
    assert "begins" not in why(record, "memory.peak_bytes")
    assert "100 B in all at the end" in why(record, "memory.peak_bytes")


def test_without_a_history_the_peak_is_not_known_and_the_state_is(path: Path) -> None:
    (record,) = snapshot(path, [segment(block(0, MIB), block(MIB, MIB, "inactive"))], [])
    assert (record.peak_bytes, record.preexisting_bytes, record.allocations) == (None, None, None)
    assert (record.end_bytes, record.reserved_bytes) == (MIB, 2 * MIB)
    assert "_record_memory_history" in why(record, "memory.peak_bytes")
    assert not record.has_unix_time


def test_a_history_of_something_else_gives_no_peak(path: Path) -> None:
    (record,) = snapshot(path, [segment(block(0, MIB))], [call("alloc", 5 * MIB, 1)])
    assert (record.peak_bytes, record.preexisting_bytes) == (None, None)
    assert "not of them" in why(record, "memory.peak_bytes")


def test_every_device_has_a_record_of_its_own(path: Path) -> None:
    segments = [segment(block(0, MIB)), segment(block(0, 4 * MIB), device=1)]
    first, second = snapshot(path, segments, [], [call("alloc", 2 * MIB, 5)])
    assert (first.device, first.end_bytes, first.peak_bytes) == (0, MIB, None)
    assert (second.device, second.end_bytes, second.preexisting_bytes) == (1, 4 * MIB, 2 * MIB)


def test_free_memory_is_told_by_what_could_be_done_with_it(path: Path) -> None:
    segments = [
        segment(block(0, MIB), block(MIB, 3 * MIB, "inactive"), block(4 * MIB, MIB), block(5 * MIB, MIB, "inactive")),
        segment(block(0, 20 * MIB, "inactive")),
        segment(block(0, MIB, "active_pending_free"), block(MIB, MIB)),
        segment(block(0, 2 * MIB), is_expandable=True),
        segment(block(0, 2 * MIB), segment_pool_id=(0, 3)),
    ]
    (record,) = snapshot(path, segments)
    figures = record.figures
    assert figures["free_bytes"] == record.reserved_bytes - record.end_bytes == 25 * MIB  # type: ignore[operator]
    assert figures["largest_free_bytes"] == 20 * MIB
    assert figures["unused_segment_bytes"] == 20 * MIB
    assert figures["inactive_split_bytes"] == 4 * MIB
    assert figures["pending_free_bytes"] == MIB
    assert (figures["expandable_bytes"], figures["private_pool_bytes"]) == (2 * MIB, 2 * MIB)


def test_segments_taken_and_mapped_and_failures_are_told_apart_from_allocations(path: Path) -> None:
    history = [
        call("segment_alloc", 20 * MIB, 1), call("segment_map", 2 * MIB, 2), call("alloc", MIB, 3),
        call("oom", 90 * MIB, 4, device_free=7), call("segment_unmap", 2 * MIB, 5), call("segment_free", 20 * MIB, 6),
        call("snapshot", 0, 7),
    ]  # fmt: skip
    (record,) = snapshot(path, [segment(block(0, MIB))], history)
    assert record.history["peak_net_segment_bytes"] == 22 * MIB
    assert record.history["net_segment_bytes"] == 0
    assert record.history["largest_failed_bytes"] == 90 * MIB
    assert (record.history["peak_net_alloc_bytes"], record.actions["oom"]) == (MIB, 1)


def test_what_a_stream_still_uses_is_active_and_not_allocated(path: Path) -> None:
    history = [
        call("alloc", 4 * MIB, 1), call("free_requested", 4 * MIB, 2), call("alloc", 4 * MIB, 3),
        call("free_completed", 4 * MIB, 4),
    ]  # fmt: skip
    (record,) = snapshot(path, [segment(block(0, 4 * MIB))], history)
    assert record.history["peak_net_alloc_bytes"] == 4 * MIB
    assert record.history["peak_net_active_bytes"] == 8 * MIB


def test_the_programs_own_words_are_the_categories_at_the_peak(path: Path) -> None:
    history = [
        call("alloc", 3 * MIB, 1, addr=1, note="weights"), call("alloc", 2 * MIB, 2, addr=2, note="loss"),
        call("free_requested", 2 * MIB, 3, addr=2), call("alloc", 4 * MIB, 4, addr=3),
        call("free_requested", 4 * MIB, 5, addr=3),
    ]  # fmt: skip
    (record,) = snapshot(path, [segment(block(0, 3 * MIB))], history)
    assert record.categories == {"weights": 3 * MIB, "not annotated": 4 * MIB}


def test_where_blocks_do_not_tell_what_was_asked_for_rounding_is_not_called_held_before(path: Path) -> None:
    old = segment(block(0, 2 * MIB))
    old.pop("requested_size")
    (record,) = snapshot(path, [old], [call("alloc", 2 * MIB - 100, 1)])
    assert (record.preexisting_bytes, record.peak_bytes) == (100, 2 * MIB)
    assert "of 100 B the history does not tell" in why(record, "memory.peak_bytes")


def test_the_list_that_torch_1_13_pickled_is_read(path: Path) -> None:
    old = segment(block(0, MIB), block(MIB, MIB, "inactive"))
    for name in ("requested_size", "is_expandable", "segment_pool_id"):
        old.pop(name)
    path.write_bytes(pickle.dumps([old]))
    (record,) = read(path)
    assert isinstance(record, MemoryRecord)
    assert (record.end_bytes, record.reserved_bytes, record.peak_bytes) == (MIB, 2 * MIB, None)
    assert "requested_bytes" not in record.figures


def test_the_rank_is_the_file_names(tmp_path: Path) -> None:
    (record,) = snapshot(tmp_path / "mem_rank3.pickle", [segment(block(0, MIB))])
    assert (record.rank, record.rank_from) == (3, "file name")


def test_entries_that_are_none_are_counted_and_cost_nothing_else(path: Path) -> None:
    segments: list[Any] = [segment(block(0, MIB)), "no segment", {"total_size": -1, "allocated_size": 0}]
    history: list[Any] = [call("alloc", MIB, 1), {"action": "alloc", "size": "x"}, None, {"size": 4}]
    (record,) = snapshot(path, segments, history)
    assert (record.end_bytes, record.peak_bytes) == (MIB, MIB)
    assert record.counts.dropped == {
        "segment without sizes": 2, "call of the allocator without an action and a size": 3,
    }  # fmt: skip


@pytest.mark.parametrize("found", [{"a": 1}, [], [1], "text", {"segments": 7}, {"segments": []}])
def test_another_pickle_is_refused_with_what_to_give(path: Path, found: Any) -> None:
    path.write_bytes(pickle.dumps(found))
    with pytest.raises(TraceError) as told:
        read(path)
    assert told.value.hint


def test_one_list_referred_to_a_thousand_times_is_no_snapshot(path: Path) -> None:
    blocks = [block(0, MIB)] * 1000
    held = segment(*blocks)
    with pytest.raises(TraceError, match="over and over"):
        snapshot(path, [held] * 1000)


def test_a_pickle_of_something_else_is_not_taken_for_a_snapshot(path: Path) -> None:
    for content in (pickle.dumps({"weights": [1, 2]}), b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03."):
        path.write_bytes(content)
        assert record_reader_of(path) is None


@pytest.mark.parametrize("protocol", range(6))
def test_a_snapshot_of_any_protocol_is_recognised(path: Path, protocol: int) -> None:
    path.write_bytes(pickle.dumps({"segments": [segment(block(0, MIB))], "device_traces": []}, protocol))
    assert record_reader_of(path) is not None
    assert len(read(path)) == 1


def test_a_snapshot_behind_a_snapshot_is_said_and_the_first_is_told(path: Path) -> None:
    write_snapshot(path, [segment(block(0, 2 * MIB))])
    other = write_snapshot(path.with_name("b.pickle"), [segment(block(0, MIB))])
    path.write_bytes(path.read_bytes() + other.read_bytes())
    (record,) = read(path)
    assert record.end_bytes == 2 * MIB
    assert record.counts.dropped == {"text after the end": 1}
    assert "another snapshot stands behind the first" in why(record, "memory")


def test_zero_bytes_behind_a_snapshot_are_nothing(path: Path) -> None:
    path.write_bytes(write_snapshot(path, [segment(block(0, MIB))]).read_bytes() + bytes(512))
    (record,) = read(path)
    assert record.counts.dropped == {}
    assert "another snapshot" not in why(record, "memory")
