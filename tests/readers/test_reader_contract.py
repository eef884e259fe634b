"""What every reader keeps to; a new one is tested by existing."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import numpy as np
import pytest
from made_records import write_jax_json
from made_traces import UNIX_NS, XSpace, kernel, span, step, write_kineto

from meshscope import readers
from meshscope.errors import TraceError
from meshscope.readers.reader import Reader
from meshscope.spans import Window


def sample(reader: Reader, folder: Path) -> Path:
    """A small file of the reader's format, with two steps. A new format adds its own here."""
    if reader.format == "kineto":
        events = [
            step(1, 0, 50),
            step(2, 50, 50),
            kernel("gemm", 5, 40),
            kernel("ncclAllReduce", 60, 20),
            span("x", 0, 1),
        ]
        return write_kineto(folder / "sample.json", events)
    if reader.format == "xplane":
        line = ("XLA Ops", [("%dot = f32[]", 5_000, 40_000, {}), ("%all-reduce = f32[]", 60_000, 20_000, {})])
        steps = ("Steps", [("1", 0, 50_000, {}), ("2", 50_000, 50_000, {})])
        space = XSpace().plane("/device:TPU:0", [line, steps]).started(UNIX_NS)
        return space.write(folder / "sample.xplane.pb")
    if reader.format == "JAX trace JSON":
        line = ("XLA Ops", [("%dot = f32[]", 5_000, 40_000, {}), ("%all-reduce = f32[]", 60_000, 20_000, {})])
        steps = ("Steps", [("1", 0, 50_000, {}), ("2", 50_000, 50_000, {})])
        return write_jax_json(folder / "sample.trace.json.gz", XSpace().plane("/device:TPU:0", [line, steps]))
    pytest.fail(f"no sample of format {reader.format}: add one")


@pytest.fixture(params=readers.readers(), ids=lambda reader: reader.format)
def reader(request: pytest.FixtureRequest) -> Reader:
    found: Reader = request.param
    return found


@pytest.fixture
def path(reader: Reader, tmp_path: Path) -> Path:
    return sample(reader, tmp_path)


def test_there_are_readers() -> None:
    assert {"kineto", "xplane"} <= {found.format for found in readers.readers()}


def test_its_own_format_is_recognised_and_no_other_readers(reader: Reader, path: Path) -> None:
    assert readers.reader_of(path) is reader
    assert path.name.endswith(reader.suffixes)


def test_columns_are_of_one_length_and_rows_in_order_of_start(path: Path) -> None:
    for window in readers.read(path):
        spans = window.spans
        columns = ("start_ns", "end_ns", "name", "kind", "lane", "rule")
        assert {len(getattr(spans, name)) for name in columns} == {len(spans)}
        assert bool((np.diff(spans.start_ns) >= 0).all())
        assert bool((spans.end_ns >= spans.start_ns).all())


def test_numbers_point_into_their_tables(path: Path) -> None:
    for window in readers.read(path):
        spans = window.spans
        for column, table in (
            (spans.name, spans.names), (spans.lane, spans.lanes), (spans.dtype, spans.dtypes),
            (spans.group, spans.groups), (spans.collective, spans.collectives), (spans.rule, spans.rules),
            (spans.link, spans),
        ):  # fmt: skip
            assert bool((column >= -1).all())
            assert bool((column < max(len(table), 1)).all())


def test_every_counted_event_and_step_is_in_the_window(path: Path) -> None:
    for window in readers.read(path):
        assert window.counts.read > 0
        assert window.counts.device == 2
        assert window.steps == (1, 2)
        assert window.step_ns.shape == (2, 2)
        assert window.is_complete
        assert window.source == path.name


def test_times_shift_with_the_recordings_start(path: Path) -> None:
    def starts(windows: tuple[Window, ...]) -> list[list[int]]:
        return [window.spans.start_ns.tolist() for window in windows]

    at_zero, later = readers.read(path, t0_unix_ns=UNIX_NS), readers.read(path, t0_unix_ns=UNIX_NS + 7)
    by_ns = [7 if window.has_unix_time else 0 for window in at_zero]
    moved = [[start - by for start in window] for by, window in zip(by_ns, starts(at_zero), strict=True)]
    assert starts(later) == moved


def test_a_file_that_is_not_there_is_told_to_a_person(reader: Reader, tmp_path: Path) -> None:
    with pytest.raises(TraceError) as told:
        reader.read(tmp_path / "nowhere", t0_unix_ns=None, device_kind="")
    assert told.value.hint


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99])
def test_a_file_cut_anywhere_is_read_or_refused_and_never_a_crash(reader: Reader, path: Path, share: float) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    for window in read_or_refused(reader, path):
        assert not window.is_complete or share >= 0.9


@pytest.mark.parametrize("seed", range(20))
def test_flipped_bytes_are_read_or_refused_and_never_a_crash(reader: Reader, path: Path, seed: int) -> None:
    content = bytearray(path.read_bytes())
    for at in np.random.default_rng(seed).integers(0, len(content), 5).tolist():
        content[at] ^= 0x5A
    path.write_bytes(content)
    read_or_refused(reader, path)


def read_or_refused(reader: Reader, path: Path) -> tuple[Window, ...]:
    """The windows, or none when the reader refuses the file as it should: with words for a person."""
    with contextlib.suppress(TraceError):
        return reader.read(path, t0_unix_ns=None, device_kind="")
    with pytest.raises(TraceError) as told:
        reader.read(path, t0_unix_ns=None, device_kind="")
    assert told.value.message
    assert told.value.hint
    return ()


@pytest.mark.parametrize("content", [b"", b"hello", b"\x00" * 64, b"PK\x03\x04", json.dumps("text").encode()])
def test_what_is_no_trace_at_all_is_refused_with_the_known_formats(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file.bin").write_bytes(content)
    with pytest.raises(TraceError) as told:
        readers.read(tmp_path / "file.bin")
    assert told.value.hint
