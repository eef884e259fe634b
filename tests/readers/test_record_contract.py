"""What every reader of files without spans keeps to; a new one is tested by existing."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import pytest
from made_records import MIB, block, call, entry, segment, write_flight, write_snapshot, write_timeline
from made_traces import UNIX_NS

from meshscope import readers
from meshscope.errors import TraceError
from meshscope.readers.records import RecordReader, is_named_like_a_record, record_reader_of, record_readers
from meshscope.records import Record

LOG = "timestamp, index, utilization.gpu [%], memory.used [MiB]\n" + "".join(
    f"2026/04/25 16:06:{second:02}.780, 0, {second} %, {second * 100} MiB\n" for second in range(20)
)


def sample(reader: RecordReader, folder: Path) -> Path:
    """A small file of the reader's format. A new format adds its own here."""
    if reader.format == "torch memory snapshot":
        history = [call("alloc", MIB, at) for at in range(5)]
        return write_snapshot(folder / "memory_rank0.pickle", [segment(block(0, 8 * MIB))], history)
    if reader.format == "torch memory timeline":
        return write_timeline(folder / "memory_timeline.raw.json.gz", [[UNIX_NS + t, 2, 9, 0] for t in range(50)])
    if reader.format == "flight recorder dump":
        return write_flight(folder / "nccl_trace_rank_0", [entry(number) for number in range(9)])
    if reader.format == "device log":
        path = folder / "gpu.csv"
        path.write_text(LOG)
        return path
    pytest.fail(f"no sample of format {reader.format}: add one")


@pytest.fixture(params=record_readers(), ids=lambda reader: reader.format)
def reader(request: pytest.FixtureRequest) -> RecordReader:
    found: RecordReader = request.param
    return found


@pytest.fixture
def path(reader: RecordReader, tmp_path: Path) -> Path:
    return sample(reader, tmp_path)


def test_there_are_readers() -> None:
    assert len(record_readers()) >= 4


def test_its_own_format_is_recognised_by_content_and_by_name(reader: RecordReader, path: Path) -> None:
    assert record_reader_of(path) is reader
    assert is_named_like_a_record(path)


def test_no_trace_is_taken_for_a_record(tmp_path: Path) -> None:
    from made_records import write_jax_json
    from made_traces import XSpace, kernel, write_kineto

    space = XSpace().plane("/device:TPU:0", [("XLA Ops", [("%dot = f32[]", 5, 40, {})])])
    for path in (
        write_kineto(tmp_path / "a.json", [kernel("gemm", 0, 1)]),
        space.write(tmp_path / "a.xplane.pb"),
        write_jax_json(tmp_path / "a.trace.json.gz", space),
    ):
        assert record_reader_of(path) is None
        assert readers.reader_of(path)


def test_a_record_counts_what_it_read_and_says_that_it_holds_no_device_work(path: Path, reader: RecordReader) -> None:
    for record in reader.read(path):
        assert record.source == path.name
        assert record.counts.read > 0
        assert record.is_complete
        assert record.end_ns >= record.start_ns
        assert "holds no device work" in dict(record.cannot_say)["breakdown"]


def test_a_record_moves_in_time_as_a_whole(path: Path, reader: RecordReader) -> None:
    for record in reader.read(path):
        later = record.shifted(100)
        assert type(later) is type(record)
        assert (later.start_ns, later.end_ns) == (record.start_ns + 100, record.end_ns + 100)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99])
def test_a_file_cut_anywhere_is_read_or_refused_and_never_a_crash(
    reader: RecordReader, path: Path, share: float
) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    for record in read_or_refused(reader, path):
        assert not record.is_complete


@pytest.mark.parametrize("seed", range(30))
def test_flipped_bytes_are_read_or_refused_and_never_a_crash(reader: RecordReader, path: Path, seed: int) -> None:
    content = bytearray(path.read_bytes())
    for at in np.random.default_rng(seed).integers(0, len(content), 5).tolist():
        content[at] ^= 0x5A
    path.write_bytes(content)
    read_or_refused(reader, path)


def read_or_refused(reader: RecordReader, path: Path) -> tuple[Record, ...]:
    """The records, or none when the reader refuses the file as it should: with words for a person."""
    with contextlib.suppress(TraceError):
        return reader.read(path)
    with pytest.raises(TraceError) as told:
        reader.read(path)
    assert told.value.message
    assert told.value.hint
    return ()
