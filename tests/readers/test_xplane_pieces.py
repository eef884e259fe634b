"""An xplane line is gone through in pieces: where they are cut changes no answer, and a file's size no memory."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_traces import UNIX_NS, XSpace
from same import assert_same

from meshscope import fast
from meshscope.errors import TraceError
from meshscope.readers import read, time_bounds, xplane_content, xplane_events, xplane_lines
from meshscope.readers.stream import Source
from meshscope.readers.xplane_content import Content, content_of
from meshscope.readers.xplane_days import Days, largest
from meshscope.readers.xplane_messages import message
from meshscope.readers.xplane_space import space
from meshscope.readers.xplane_wire import NO_FIELD, events, fields

US = 1_000_000
DAY_NS = time_bounds.DAY_NS
WAYS = [
    "0",
    pytest.param("1", marks=pytest.mark.skipif(not fast.is_ready(), reason="the fast extra is not installed")),
]


def made() -> XSpace:
    """Two threads of two devices with a collective, its waits and a step; a GPU beside them in another file's order."""
    stats = {"hlo_op": "dot.1", "device_ordinal": 0, "program_id": 7}
    comm = stats | {"hlo_op": "all-reduce.2"}
    thread = [
        event
        for step in range(20)
        for event in (
            ("dot.1", step * 100 * US, 10 * US, stats),
            ("all-reduce.2", (step * 100 + 20) * US, 50 * US, comm),
            ("Rendezvous", (step * 100 + 21) * US, 9 * US, {"name": "key{global_devices=[0, 1], num=2}"}),
            ("dot.1", (step * 100 + 80) * US, 5 * US, stats | {"device_ordinal": 1}),
        )
    ]
    steps = [("train", step * 100 * US, 90 * US, {"step_num": step}) for step in range(20)]
    return XSpace().plane("/host:CPU", [("python", steps), ("tf_XLAEigen/1", thread)]).started(UNIX_NS)


def in_pieces(monkeypatch: pytest.MonkeyPatch, size_bytes: int, most: int) -> None:
    monkeypatch.setattr(xplane_lines, "PIECE_BYTES", size_bytes)
    monkeypatch.setattr(xplane_events, "MOST_EVENTS", most)
    monkeypatch.setattr(xplane_lines.Keeping, "takes", lambda self, size: False)


@pytest.mark.parametrize("switch", WAYS)
@pytest.mark.parametrize(("size_bytes", "most"), [(1 << 20, 1), (1 << 20, 7), (1, 1 << 15), (33, 1 << 15), (400, 3)])
def test_where_a_line_is_cut_changes_nothing(
    switch: str, size_bytes: int, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(fast.SWITCH, switch)
    path = made().write(tmp_path / "a.xplane.pb")
    whole = read(path)
    in_pieces(monkeypatch, size_bytes, most)
    assert_same(read(path), whole)
    assert len(whole) == 2
    assert whole[0].counts.read == 100


def test_lines_in_pieces_are_gone_through_in_their_order() -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        in_pieces(monkeypatch, 64, 1 << 15)
        line = space(made().content()).planes[0].lines[1]
        pieces = list(line.pieces())
    assert len(pieces) > 10
    assert sum(map(len, pieces)) == len(line) == 80
    assert np.concatenate([piece.start_ns for piece in pieces]).tolist()[:4] == [0, 20_000, 21_000, 80_000]


def test_a_line_whose_name_and_time_follow_its_events_is_the_same() -> None:
    content = message("Line")(name=b"XLA Ops", timestamp_ns=5)
    content.events.add(metadata_id=1, offset_ps=3000, duration_ps=1000)
    forwards = content.SerializeToString()
    at = forwards.index(b"\x22")
    backwards = forwards[at:] + forwards[:at]
    plane = b"\x12\x0d/device:TPU:0\x1a" + bytes([len(backwards)]) + backwards + b"\x22\x07\x08\x01\x12\x03\x12\x01x"
    (found,) = space(b"\x0a" + bytes([len(plane)]) + plane).planes
    (line,) = found.lines
    (piece,) = line.pieces()
    assert (line.name, piece.start_ns.tolist(), piece.end_ns.tolist()) == ("XLA Ops", [8], [9])


EVENT = st.tuples(st.integers(-9, 9), st.integers(-5, 5), st.integers(0, 2))
BEGIN_NS = st.integers(-(10**15), 10**15)


@given(st.lists(EVENT, min_size=1, max_size=30), st.integers(1, 4), st.tuples(BEGIN_NS, BEGIN_NS, BEGIN_NS))
def test_strays_by_days_are_the_strays_of_all_at_once(
    times: list[tuple[int, int, int]], pieces: int, begins_ns: tuple[int, int, int]
) -> None:
    """Around the bounds of days and of gaps of a day, on lines whose days begin anywhere."""
    start_ns = np.array([day * DAY_NS + beside for day, beside, _ in times], dtype=np.int64)
    line = np.array([line for *_, line in times])
    expected = time_bounds.strays(start_ns, np.ones(len(start_ns), dtype=bool))
    lines = [Days() for _ in begins_ns]
    for number, begin_ns in enumerate(begins_ns):
        for part in np.array_split((start_ns[line == number] - begin_ns) * 1000 + 999, pieces):
            if len(part):
                lines[number].add(part)
    found = [day for one, begin_ns in zip(lines, begins_ns, strict=True) for day in one.since(begin_ns)]
    (first_ns, last_ns), count = largest(found)  # the bounds alone
    assert ((start_ns < first_ns) | (start_ns > last_ns)).tolist() == expected.tolist()
    assert count == int(expected.sum())


def test_groups_are_passed_over_and_what_is_no_field_ends_the_message() -> None:
    name = b"\x12\x01a"
    group = b"\x7b\x08\x05\x3b\x3c\x7c"  # field 15 holds field 1 and, in it, field 7, a group of nothing
    dropped: Counter[str] = Counter()
    content = Content.of(group + name + b"\x7c" + name)
    assert [content.read(one.first, one.last) for one, _ in fields(content, 0, len(content), dropped)] == [b"a"]
    assert dropped == {NO_FIELD: 1}


def test_a_piece_that_ends_inside_an_event_keeps_it_for_the_next() -> None:
    event = b"\x22\x02\x08\x01"
    assert events(event * 3, 9) == (12, 3, [])
    assert events(event * 3 + event[:3], 9) == (12, 3, [])
    assert events(event * 3, 2) == (8, 2, [])
    assert events(event + b"\x18\x05" + event, 9) == (10, 2, [(4, 6)])


def test_a_file_that_grows_shorter_while_it_is_read_is_refused(tmp_path: Path) -> None:
    path = made().write(tmp_path / "a.xplane.pb")
    with content_of(Source(path)) as content:
        path.write_bytes(b"")
        with pytest.raises(TraceError, match="became shorter") as told:
            content.read(0, len(content))
    assert told.value.hint


def test_what_was_packed_is_unpacked_onto_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = read(made().write(tmp_path / "a.xplane.pb"))
    (tmp_path / "a.xplane.pb.gz").write_bytes(gzip.compress(made().content()))
    monkeypatch.setattr(xplane_content, "_SPOOLED_BYTES", 100)
    packed = read(tmp_path / "a.xplane.pb.gz")
    for one, other in zip(packed, whole, strict=True):
        assert_same(one.spans, other.spans)


_HELD = """
import sys
from pathlib import Path
from meshscope.readers import xplane
windows = xplane.read(Path(sys.argv[1]))
status = Path("/proc/self/status").read_text().splitlines()
print(windows[0].counts.read, *(line.split()[1] for line in status if line.startswith("VmHWM")))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is told by /proc")
def test_memory_does_not_grow_with_what_becomes_no_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host thread of 900,000 events, 36 MB, beside one operation. As messages they would be 150 MB."""
    monkeypatch.setenv(fast.SWITCH, "0")
    held_kb = []
    for times in (1, 1500):
        plane = message("Plane")(name=b"/device:TPU:0")
        plane.lines.add(name=b"XLA Ops").events.add(metadata_id=1, duration_ps=5)
        noise = plane.lines.add(name=b"XLA TraceMe")
        for number in range(600):
            noise.events.add(metadata_id=1, offset_ps=number << 40, duration_ps=5).stats.add(
                metadata_id=1, str_value=b"0123456789"
            )
        plane.event_metadata.add(key=1).value.name = b"x"
        once = message("Line")(events=noise.events).SerializeToString()
        shell, tail = plane.SerializeToString(), framed(b"\x1a", once * times)
        path = tmp_path / f"{times}.xplane.pb"
        path.write_bytes(framed(b"\x0a", shell + tail))
        ran = subprocess.run([sys.executable, "-c", _HELD, str(path)], capture_output=True, text=True, check=True)
        count, kb = map(int, ran.stdout.split())
        assert count == 601 + 600 * times
        held_kb.append(kb)
    assert held_kb[1] - held_kb[0] < 40_000


def framed(key: bytes, part: bytes) -> bytes:
    size, head = len(part), bytearray(key)
    while size > 127:
        head.append(size & 127 | 128)
        size >>= 7
    return bytes([*head, size]) + part
