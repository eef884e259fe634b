"""Damaged xplane files: what is whole keeps its exact numbers, what is not is counted, and no name is guessed."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from made_traces import UNIX_NS, Line, XSpace

from meshscope.analysis.breakdown import Breakdown, measure
from meshscope.errors import TraceError
from meshscope.readers import read, time_bounds, xplane_damage, xplane_lines
from meshscope.readers.damage import CUT_SHORT
from meshscope.readers.xplane_messages import message
from meshscope.spans import Window

US = 1_000_000  # picoseconds
DAY = 86_400 * 1_000_000 * US


def op(name: str, start_us: int, dur_us: int) -> tuple[str, int, int, dict[str, Any]]:
    return name, start_us * US, dur_us * US, {}


GOOD: Line = ("XLA Ops", [op("%dot = f32[]", 0, 10), op("%all-reduce = f32[]", 5, 10), op("%add = f32[]", 20, 10)])
GOOD_NS = Breakdown(30_000, 20_000, 10_000, 0, 5_000, 5_000, 25_000, 5_000)


def read_(path: Path, content: bytes, name: str = "a.xplane.pb") -> tuple[Window, ...]:
    (path / name).write_bytes(content)
    return read(path / name)


def figures(window: Window) -> Breakdown:
    return measure(window).total


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (("%x = f32[]", 5 * US, -3, {}), time_bounds.NEGATIVE),
        (("%x = f32[]", 5 * US, 2 * DAY, {}), time_bounds.TOO_LONG),
        (("%x = f32[]", 2**62, 5, {}), time_bounds.OUT_OF_RANGE),
        (("%x = f32[]", -(2**63), 5, {}), time_bounds.TOO_EARLY),
        (("%x = f32[]", 5 * US, 2**63 - 1, {}), time_bounds.TOO_LONG),
        (("%x = f32[]", 20 * DAY, 5, {}), time_bounds.STRAY),
    ],
)
def test_an_event_with_an_impossible_time_is_dropped_and_the_rest_is_exact(
    tmp_path: Path, event: tuple[str, int, int, dict[str, Any]], reason: str
) -> None:
    lines: list[Line] = [(GOOD[0], [event, *GOOD[1]])]
    space = XSpace().plane("/device:TPU:0", lines).plane("/device:TPU:1", [GOOD]).started(UNIX_NS)
    first, second = read_(tmp_path, space.content())
    assert figures(first) == figures(second) == GOOD_NS
    assert first.counts.dropped == {reason: 1}
    assert (second.counts.dropped, first.counts.read) == ({}, 7)


def test_parts_years_apart_of_which_none_is_the_larger_are_no_answer(tmp_path: Path) -> None:
    torn: Line = ("XLA Ops", [op("%a = f32[]", 0, 5), ("%b = f32[]", 20 * DAY, 5, {})])
    space = XSpace().plane("/device:TPU:0", [torn]).plane("/device:TPU:1", [GOOD]).started(UNIX_NS)
    first, second = read_(tmp_path, space.content())
    assert first.device_kind == "none"
    assert "more than a day apart" in dict(first.cannot_say)["breakdown"]
    assert figures(second) == GOOD_NS
    assert first.start_ns == second.start_ns == UNIX_NS


@pytest.mark.parametrize("timestamp_ns", [2**63 - 1, -(2**63), 2**62])
def test_a_line_with_an_impossible_beginning_is_no_crash(tmp_path: Path, timestamp_ns: int) -> None:
    space = XSpace().plane("/device:TPU:0", [GOOD], timestamp_ns=timestamp_ns).started(UNIX_NS)
    (window,) = read_(tmp_path, space.content())
    assert window.device_kind == "none"
    reason = time_bounds.OUT_OF_RANGE if timestamp_ns > 0 else time_bounds.TOO_EARLY
    assert window.counts.dropped == {reason: 3}


def plane(number: int, *, without: str = "") -> Any:
    content = XSpace().plane(f"/device:TPU:{number}", [GOOD]).content()
    made = message("Plane").FromString(content[_head(content) :])
    entries = [entry for entry in made.event_metadata if not without or without not in entry.value.name.decode()]
    del made.event_metadata[:]
    made.event_metadata.extend(entries)
    return made


def _head(content: bytes) -> int:
    return 1 + next(place for place in range(1, 12) if content[place] < 128)


def framed(part: bytes) -> bytes:
    size, out = len(part), bytearray(b"\x0a")
    while size > 127:
        out.append(size & 127 | 128)
        size >>= 7
    return bytes([*out, size]) + part


def test_an_operation_whose_name_is_lost_is_of_no_kind(tmp_path: Path) -> None:
    (window,) = read_(tmp_path, framed(plane(0, without="all-reduce").SerializeToString()))
    assert window.counts.dropped == {xplane_lines.NAMELESS: 1}
    assert (figures(window).compute_ns, figures(window).collective_ns) == (20_000, 0)


def test_a_file_cut_anywhere_gives_whole_planes_and_never_an_operation_without_its_name(tmp_path: Path) -> None:
    first, second = (framed(plane(number).SerializeToString()) for number in (0, 1))
    content = first + second
    for cut in range(1, len(content)):
        if cut < len(first):
            with pytest.raises(TraceError):
                read_(tmp_path, content[:cut])
            continue
        windows = read_(tmp_path, content[:cut])
        assert [window.device for window in windows] == ([0] if len(windows) == 1 else [0, 1])
        for window in windows:
            assert figures(window) == GOOD_NS
            assert window.is_complete == (cut == len(first))
            assert window.counts.dropped == ({} if cut == len(first) else {CUT_SHORT: 1})


def test_a_cut_among_the_names_of_stats_keeps_the_plane(tmp_path: Path) -> None:
    lines: list[Line] = [("XLA Ops", [(name, at, dur, {"hlo_op": "x"}) for name, at, dur, _ in GOOD[1]])]
    content = XSpace().plane("/device:TPU:0", lines).content()
    (window,) = read_(tmp_path, content[:-3])
    assert figures(window) == GOOD_NS
    assert not window.is_complete
    assert window.counts.dropped == {CUT_SHORT: 1}


def test_a_damaged_line_costs_itself_and_is_doubted(tmp_path: Path) -> None:
    made = plane(0)
    made.lines.add(name=b"Steps").events.add(metadata_id=1)
    content = bytearray(made.SerializeToString())
    at = content.index(b"Steps") + len("Steps")
    content[at : at + 2] = b"\x22\x7f"  # events longer than the line
    first, second = read_(tmp_path, framed(bytes(content)) + framed(plane(1).SerializeToString()))
    assert figures(first) == figures(second) == GOOD_NS
    assert first.counts.dropped == {xplane_damage.NOT_A_PART: 1}
    assert not first.is_complete
    assert "damaged" in dict(first.cannot_say)["hidden_ns"]
    assert second.is_complete
    assert second.counts.dropped == {}


def test_two_planes_of_one_device_are_nobodys_numbers(tmp_path: Path) -> None:
    (window,) = read_(tmp_path, framed(plane(0).SerializeToString()) * 2)
    assert window.device_kind == "none"
    assert "several planes are of device 0" in dict(window.cannot_say)["breakdown"]


def test_a_part_of_a_device_with_a_plane_of_its_own_is_not_the_device(tmp_path: Path) -> None:
    part: Line = ("XLA Ops", [op("%x = f32[]", 0, 500)])
    space = XSpace().plane("/device:TPU:0 SparseCore 0", [part]).plane("/device:TPU:0", [GOOD])
    (window,) = read_(tmp_path, space.content())
    assert figures(window) == GOOD_NS


@pytest.mark.parametrize("name", ["/device:TPU:" + "9" * 30, "/device:TPU:" + "9" * 5000, "/device:TPU:٣"])
def test_a_device_number_that_is_none_is_no_crash(tmp_path: Path, name: str) -> None:
    (window,) = read_(tmp_path, XSpace().plane(name, [GOOD]).content())
    assert window.device_kind == "none"


@pytest.mark.parametrize("name", ["9" * 12, "9" * 5000, "٣", "x"])
def test_a_step_number_that_is_none_is_no_step(tmp_path: Path, name: str) -> None:
    steps: Line = ("Steps", [op(name, 0, 10), op("4", 10, 10)])
    (window,) = read_(tmp_path, XSpace().plane("/device:TPU:0", [GOOD, steps]).content())
    assert 4 in window.steps
    assert all(0 <= step < 2**31 for step in window.steps)


@pytest.mark.parametrize("start", [2**62, 2**63 - 1, -5])
def test_a_start_that_is_no_wall_time_is_not_used(tmp_path: Path, start: int) -> None:
    (window,) = read_(tmp_path, XSpace().plane("/device:TPU:0", [GOOD]).started(start).content())
    assert not window.has_unix_time
    assert window.start_ns == 0


def test_a_packed_file_is_read_and_its_cut_is_told(tmp_path: Path) -> None:
    content = b"".join(framed(plane(number).SerializeToString()) for number in range(40))
    packed = gzip.compress(content, 1)
    assert len(read_(tmp_path, packed, "a.xplane.pb.gz")) == 40
    windows = read_(tmp_path, packed[: len(packed) - 12], "a.xplane.pb.gz")
    assert 0 < len(windows) <= 40
    assert not any(window.is_complete for window in windows)
    assert all(figures(window) == GOOD_NS for window in windows)
