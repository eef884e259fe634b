"""Snapshots whose file ends early: the state at the end is exact or refused, and no half history has a peak."""

from __future__ import annotations

import gzip
import pickle
from pathlib import Path

import pytest
from made_records import MIB, block, call, segment, write_snapshot

from meshscope.errors import TraceError
from meshscope.readers.memory_snapshot import CUT, read
from meshscope.readers.stream import BAD_TRAILER
from meshscope.records import MemoryRecord

SEGMENTS = [segment(block(0, 6 * MIB), block(6 * MIB, 2 * MIB, "inactive")), segment(block(0, 4 * MIB), device=1)]
FIRST = [call("alloc", 5 * MIB, 1), call("free_requested", 4 * MIB, 2)]
SECOND = [call("alloc", MIB, 3), call("alloc", 9 * MIB, 4), call("free_requested", 9 * MIB, 5), call("alloc", MIB, 6)]


def records(path: Path) -> list[MemoryRecord]:
    return [record for record in read(path) if isinstance(record, MemoryRecord)]


def records_or_none(path: Path) -> list[MemoryRecord] | None:
    try:
        return records(path)
    except TraceError:
        return None


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "snapshot.pickle"


def whole(path: Path, protocol: int = 4) -> bytes:
    write_snapshot(path, SEGMENTS, FIRST, SECOND)
    content = pickle.dumps(pickle.loads(path.read_bytes()), protocol)  # made here
    path.write_bytes(content)
    return content


@pytest.mark.parametrize("protocol", [2, 4])
def test_a_cut_anywhere_costs_the_peak_of_its_device_or_the_file_and_no_number_is_wrong(
    path: Path, protocol: int
) -> None:
    content = whole(path, protocol)
    first, second = records(path)
    assert (first.peak_bytes, second.peak_bytes) == (10 * MIB, 12 * MIB)
    seen = set()
    read_before = 0
    for end in range(len(content)):
        path.write_bytes(content[:end])
        found = records_or_none(path)
        if found is None:
            assert not seen, f"{end}: what a shorter file gives, a longer one gives too"
            continue
        one, other = found
        assert (one.end_bytes, one.reserved_bytes) == (first.end_bytes, first.reserved_bytes)
        assert (other.end_bytes, other.figures) == (second.end_bytes, second.figures)
        assert one.peak_bytes in (None, first.peak_bytes)
        assert other.peak_bytes in (None, second.peak_bytes)
        assert one.counts.dropped == {CUT: 1}
        assert not one.is_complete
        assert not other.is_complete
        assert one.counts.read >= read_before
        read_before = one.counts.read
        seen.add((one.peak_bytes, other.peak_bytes, sum(one.actions.values()), sum(other.actions.values())))
    # The last call at hand may go on, so it waits for what follows it.
    assert {(None, None, 0, 0), (None, None, 1, 0), (10 * MIB, None, 2, 0), (10 * MIB, None, 2, 3)} <= seen
    assert (10 * MIB, 12 * MIB, 2, 4) in seen


def test_half_a_history_has_no_peak_and_says_what_is_missing(path: Path) -> None:
    content = whole(path)
    path.write_bytes(content[:-60])
    _, cut = records(path)
    assert (cut.peak_bytes, cut.preexisting_bytes, cut.allocations, cut.history) == (None, None, None, {})
    why = dict(cut.cannot_say)["memory.peak_bytes"]
    assert "the file ends inside this device's history" in why
    assert "the newest are missing" in why


def test_a_cut_among_the_segments_is_refused_for_the_rest_of_the_memory_is_unknown(path: Path) -> None:
    content = whole(path)
    path.write_bytes(content[: content.index(b"device_traces")])
    with pytest.raises(TraceError, match="stops in the middle") as told:
        read(path)
    assert "dump it again" in told.value.hint


def test_a_history_of_more_calls_than_a_pickle_adds_at_once(path: Path) -> None:
    """Python's pickler adds a thousand at a time: those that are in the list, and those that were on their way."""
    write_snapshot(path, [segment(block(0, MIB))], [call("alloc", MIB, n) for n in range(2500)])
    content = path.read_bytes()
    counts = []
    for cut in (2, 3, 5, 9):
        path.write_bytes(content[: len(content) - len(content) // cut])
        (record,) = records(path)
        counts.append(record.actions["alloc"])
        assert record.peak_bytes is None
    assert counts == sorted(counts)
    assert 1000 < counts[0] < 1400
    assert counts[-1] > 2000


def test_a_packed_file_that_ends_early_is_as_one_that_is_not_packed(tmp_path: Path, path: Path) -> None:
    content = whole(path)
    packed = gzip.compress(content)
    path.write_bytes(packed[:-8])
    assert [record.peak_bytes for record in records(path)] == [10 * MIB, 12 * MIB]
    assert records(path)[0].counts.dropped == {BAD_TRAILER: 1}
    path.write_bytes(packed[: len(packed) * 3 // 4])
    first, second = records(path)
    assert (first.end_bytes, first.counts.dropped) == (6 * MIB, {CUT: 1})
    assert second.peak_bytes is None


@pytest.mark.shared
def test_a_real_one_cut_in_its_history_keeps_its_state(shared: Path, path: Path) -> None:
    (source,) = shared.glob("traces/mem-snapshot-*/*.pickle")
    content = source.read_bytes()
    (expected,) = records(source)
    for percent in (30, 60, 99):
        path.write_bytes(content[: len(content) * percent // 100])
        (record,) = records(path)
        assert (record.end_bytes, record.reserved_bytes) == (expected.end_bytes, expected.reserved_bytes)
        assert record.peak_bytes is None
