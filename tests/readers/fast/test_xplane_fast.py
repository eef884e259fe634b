"""The walker over xplane files gives the rows that protobuf's messages give, of every file and whatever its damage."""

from __future__ import annotations

import random
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_traces import UNIX_NS, XSpace

from meshscope.errors import TraceError
from meshscope.readers import xplane
from meshscope.spans import SpanTable, Window

pytest.importorskip("numba", reason="the fast extra is not installed")

from meshscope import fast as door
from meshscope.readers.fast.xplane import walk
from meshscope.readers.xplane_messages import message

US = 1_000_000


def read(path: Path, monkeypatch: pytest.MonkeyPatch, switch: str) -> tuple[Window, ...] | str:
    monkeypatch.setenv(door.SWITCH, switch)
    try:
        return xplane.read(path)
    except TraceError as error:
        return error.message


def differences(base: Any, fast: Any) -> list[str]:
    if isinstance(base, str) or isinstance(fast, str):
        return [] if base == fast else ["refusal"]
    found = [] if len(base) == len(fast) else ["windows"]
    for one, other in zip(base, fast, strict=False):
        for field in fields(SpanTable):
            a, b = getattr(one.spans, field.name), getattr(other.spans, field.name)
            if not (np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b):
                found.append(field.name)
        if not np.array_equal(one.step_ns, other.step_ns):
            found.append("step_ns")
        bare = [replace(w, spans=None, step_ns=None) for w in (one, other)]  # type: ignore[arg-type]
        found += [f.name for f in fields(Window) if getattr(bare[0], f.name) != getattr(bare[1], f.name)]
    return found


def check(path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    base, fast = read(path, monkeypatch, "0"), read(path, monkeypatch, "1")
    assert differences(base, fast) == []
    return fast


def op(name: str, start_us: int, dur_us: int, device: Any = 0, **more: Any) -> tuple[str, int, int, dict[str, Any]]:
    stats = {"hlo_op": name, "hlo_module": "jit_step", "run_id": -5, "device_ordinal": device, **more}
    return name, start_us * US + 7, dur_us * US, stats


def made() -> XSpace:
    waits = [("Rendezvous", 41 * US, 2 * US, {"name": "key{global_devices=[0, 1], num=2}"})]
    steps = [("train", number * 100 * US, 90 * US, {"step_num": number}) for number in range(3)]
    host = [
        ("python", [*steps, ("$frame", 0, US, {}), ("train", 0, US, {"step_num": "four"})]),
        ("tf_XLAEigen/1", [op("dot.1", 0, 10), op("all-reduce.2", 40, 5), *waits, op("dot.1", 60, 3, 1)]),
        ("tf_XLAEigen/2", [op("call.3", 0, 9), op("add", 1, 2), op("while.4", 0, 50, 1), op("odd", 3, 1, "one")]),
        ("empty", []),
    ]
    gpu = [
        (
            "Stream #17(Kernel)",
            [("gemm", 0, 9 * US, {"hlo_op": "fusion.1"}), ("k", US, US, {"hlo_op": "all-gather.3"})],
        ),
        ("Stream #8(MemcpyD2H)", [("MemcpyD2H", 5 * US, 2 * US, {"bytes": 99})]),
        ("Steps", [("4", 0, 20 * US, {})]),
    ]
    tpu = [("XLA Ops", [("%all-reduce-start.1 = f32[]", 0, US, {}), ("%all-reduce-done.1 = f32[]", 3 * US, US, {})])]
    return (
        XSpace().plane("/device:GPU:0", gpu, timestamp_ns=5).plane("/device:TPU:1", tpu)
        .plane("/host:CPU", host).started(UNIX_NS)
    )  # fmt: skip


def host_only() -> XSpace:
    lines = [("tf_XLAEigen/1", [op("dot.1", 0, 10), op("all-reduce.2", 40, 5), op("dot.1", 60, 3, 1)])]
    return XSpace().plane("/host:CPU", lines).started(UNIX_NS)


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


@pytest.mark.parametrize("space", [made(), host_only()])
def test_made_planes_are_the_same_and_are_walked(
    space: XSpace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    windows = check(space.write(tmp_path / "a.xplane.pb"), monkeypatch)
    assert all(len(window.spans) for window in windows)


def test_a_plain_line_is_walked_over_without_protobuf() -> None:
    line = message("Line")(name=b"a")
    for number in range(3):
        line.events.add(metadata_id=number, offset_ps=10, duration_ps=1 << 40).stats.add(metadata_id=7, int64_value=-1)
    content = line.SerializeToString()
    walked = walk(content)
    assert walked.used_bytes == len(content)
    assert [column.tolist() for column in walked.events.columns()] == [[0, 1, 2], [10] * 3, [1 << 40] * 3]
    assert [content[first:last] for first, last in walked.others] == [b"\x12\x01a"]


def test_a_file_that_ends_at_any_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = host_only().content()
    path = tmp_path / "a.xplane.pb"
    for end in range(1, len(content)):
        path.write_bytes(content[:end])
        check(path, monkeypatch)


def test_a_plane_that_no_bytes_are_missing_from_but_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every byte of one plane changed in turn, its length kept."""
    content = host_only().content()
    path = tmp_path / "a.xplane.pb"
    for at in range(3, len(content)):
        for flip in (0x01, 0x80, 0x07):
            path.write_bytes(content[:at] + bytes([content[at] ^ flip]) + content[at + 1 :])
            check(path, monkeypatch)


@settings(max_examples=300)
@given(seed=st.integers(0, 2**32), damages=st.integers(1, 5))
def test_damaged_bytes_anywhere(seed: int, damages: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    random_ = random.Random(seed)
    content = bytearray(made().content())
    for _ in range(damages):
        at = random_.randrange(len(content))
        if random_.random() < 0.7:
            content[at] = random_.randrange(256)
        else:
            content[at : at + random_.randrange(3)] = random_.randbytes(random_.randrange(3))
    path = tmp_path_factory.getbasetemp() / "damaged.xplane.pb"
    path.write_bytes(content)
    with pytest.MonkeyPatch.context() as monkeypatch:
        check(path, monkeypatch)


LENGTHS = st.integers(0, 2**64 - 1)
unknown = st.one_of(
    st.builds(lambda field, value: varint(field << 3) + varint(value), st.integers(1, 40), LENGTHS),
    st.builds(lambda field, raw: varint(field << 3 | 1) + raw, st.integers(1, 40), st.binary(min_size=8, max_size=8)),
    st.builds(lambda field, raw: varint(field << 3 | 5) + raw, st.integers(1, 40), st.binary(min_size=4, max_size=4)),
    st.builds(
        lambda field, raw: varint(field << 3 | 2) + varint(len(raw)) + raw, st.integers(1, 40), st.binary(max_size=9)
    ),
    st.builds(lambda field: varint(field << 3 | 3) + varint(field << 3 | 4), st.integers(1, 40)),
    st.sampled_from(
        [b"\x08\x80\x80\x00", b"\x80", b"\x00", b"\x07", b"\x0b", b"\xff" * 11, b"\x88\x80\x80\x80\x80\x00\x01"]
    ),
)

fields_ = st.lists(unknown, max_size=3)


@settings(max_examples=400)
@given(in_plane=fields_, in_line=fields_, in_event=fields_)
def test_fields_that_nobody_knows_and_known_ones_of_another_type(
    in_plane: list[bytes], in_line: list[bytes], in_event: list[bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever stands in an event, a line or a plane beside what is read there."""
    stat = b"\x08\x01\x3a" + varint(1) + b"\x01"
    event = b"\x08\x01\x10\xe8\x07\x18\xd0\x0f\x22" + varint(len(stat)) + stat + b"".join(in_event)
    line = b"\x12\x0aStream #17" + b"\x22" + varint(len(event)) + event + b"".join(in_line)
    entry = b"\x08\x01\x12\x06\x12\x04gemm"
    plane = b"\x12\x0d/device:GPU:0" + b"\x1a" + varint(len(line)) + line + b"\x22" + varint(len(entry)) + entry
    plane += b"".join(in_plane)
    path = tmp_path_factory.getbasetemp() / "fields.xplane.pb"
    path.write_bytes(b"\x0a" + varint(len(plane)) + plane)
    with pytest.MonkeyPatch.context() as monkeypatch:
        check(path, monkeypatch)


@pytest.mark.shared
def test_every_file_of_the_corpus(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = sorted(shared.glob("traces/*/*.pb"))
    assert len(paths) >= 4
    for path in paths:
        check(path, monkeypatch)
