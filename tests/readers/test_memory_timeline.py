"""Memory timelines of torch.profiler: the rows, and the sizes that are added up already."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from made_records import write_timeline
from made_traces import UNIX_NS

from meshscope.errors import TraceError
from meshscope.readers.memory_timeline import read
from meshscope.readers.records import record_reader_of
from meshscope.records import MemoryRecord

ROWS: list[list[int | None]] = [
    [-1, 1, 1000, 0],
    [-1, 1, 500, 7],
    [UNIX_NS, 2, 300, 4],
    [UNIX_NS + 10, 3, -300, 4],
    [UNIX_NS + 10, 3, 300, 5],
    [UNIX_NS + 20, 2, 50, None],
    [UNIX_NS + 30, 4, -300, 5],
    [UNIX_NS + 40, 4, -50, 3],
]


def record_of(path: Path) -> MemoryRecord:
    reader = record_reader_of(path)
    assert reader is not None
    assert reader.format == "torch memory timeline"
    (record,) = reader.read(path)
    assert isinstance(record, MemoryRecord)
    return record


def test_the_peak_is_what_was_there_and_what_came_before_it_was_freed(tmp_path: Path) -> None:
    record = record_of(write_timeline(tmp_path / "memory_timeline.raw.json.gz", ROWS))
    assert (record.preexisting_bytes, record.peak_bytes, record.end_bytes) == (1500, 1850, 1500)
    assert record.categories == {"parameters": 1000, "unknown": 550, "gradients": 300}
    assert record.actions == {"preexisting": 2, "create": 2, "increment_version": 2, "destroy": 2}
    assert (record.start_ns, record.end_ns, record.has_unix_time) == (UNIX_NS, UNIX_NS + 40, True)
    assert record.allocations is not None
    assert record.allocations.total_bytes.tolist() == [1800, 1800, 1850, 1550, 1500]


def test_times_in_microseconds_are_told_from_their_size(tmp_path: Path) -> None:
    rows = [[t if t == -1 else t // 1000, *rest] for t, *rest in ROWS]  # type: ignore[operator]
    assert record_of(write_timeline(tmp_path / "t.raw.json", rows)).start_ns == UNIX_NS


def test_times_from_nowhere_begin_at_zero(tmp_path: Path) -> None:
    record = record_of(write_timeline(tmp_path / "t.raw.json", [[7, 2, 10, 0], [9, 2, 10, 0]]))
    assert (record.start_ns, record.end_ns, record.has_unix_time) == (0, 2, False)
    assert "t0_unix_ns" in dict(record.cannot_say)


def test_sizes_by_category_are_read_as_they_stand(tmp_path: Path) -> None:
    sizes = [[0, 1000, 0, 0, 0, 0, 0, 0, 0], [0, 1000, 200, 0, 0, 900, 0, 0, 5], [0, 1000, 200, 0, 0, 0, 0, 0, 0]]
    path = tmp_path / "memory_timeline.json"
    path.write_text(json.dumps([[UNIX_NS // 1000 + t for t in range(3)], sizes]))
    record = record_of(path)
    assert (record.peak_bytes, record.end_bytes, record.preexisting_bytes) == (2105, 1200, None)
    assert record.categories == {"parameters": 1000, "optimizer": 200, "activations": 900, "unknown": 5}
    assert (record.start_ns, record.end_ns) == (UNIX_NS, UNIX_NS + 2000)


def test_a_timeline_cut_short_gives_the_rows_before_the_cut(tmp_path: Path) -> None:
    path = write_timeline(tmp_path / "t.raw.json", ROWS)
    path.write_bytes(path.read_bytes()[:-30])
    record = record_of(path)
    assert not record.is_complete
    assert (record.peak_bytes, record.end_bytes) == (1850, 1550)
    assert record.counts.dropped == {"the file ends inside an event": 1}


def test_rows_that_are_none_are_counted(tmp_path: Path) -> None:
    odd = [*ROWS, ["x", 2, 3, 4], [1, 2, 3], [UNIX_NS, 9, 100, 0]]
    record = record_of(write_timeline(tmp_path / "t.raw.json", odd))  # type: ignore[arg-type]  # on purpose
    assert record.end_bytes == 1500
    assert record.counts.dropped == {"row that is no event": 2, "row of an unknown action": 1}


def test_the_picture_is_refused_with_what_to_export(tmp_path: Path) -> None:
    path = tmp_path / "memory_timeline.html"
    path.write_text("<html><head><title>GPU Memory Timeline HTML</title></head><body><img src='data:'></body>")
    with pytest.raises(TraceError, match="picture") as told:
        read(path)
    assert "raw.json.gz" in told.value.hint


@pytest.mark.parametrize("text", ["[[1, 2], 3]", "[[]]", "[[1,2,3,4", "[[1.5]]"])
def test_numbers_that_are_no_timeline_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "t.raw.json.gz"
    path.write_bytes(gzip.compress(text.encode()))
    with pytest.raises(TraceError) as told:
        read(path)
    assert told.value.hint
