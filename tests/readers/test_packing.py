"""Windows as a file of columns: what comes back is what was written, and nothing that was not is believed."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_traces import XSpace, kernel, memory, span, step, thread_name, write_kineto
from same import assert_same

from meshscope import readers
from meshscope.errors import TraceError
from meshscope.readers.packing import Damaged, pack, unpack
from meshscope.spans import Window

FRONT = struct.Struct("<8sQ20s")


def packed(path: Path, windows: tuple[Window, ...], key: str = "k") -> Path:
    with path.open("wb") as file:
        pack(file, windows, key)
    return path


def unpacked(path: Path, key: str = "k") -> tuple[Window, ...]:
    with path.open("rb") as file:
        return unpack(file, key)


@pytest.fixture
def windows(tmp_path: Path) -> tuple[Window, ...]:
    events = [
        step(3, 0, 90),
        *(kernel(f"gemm{n % 5}", n * 4.0, 3.5, stream=n % 3, correlation=n) for n in range(20)),
        kernel("ncclDevKernel", 82, 6, stream=9, **{"Collective name": "allreduce", "dtype": "Float", "Group size": 2}),
        *(span("aten::mm", n * 4.0, 1.5) for n in range(20)),
        *(memory(n, n * 100, device_type=1) for n in range(4)),
        thread_name(1, "main"),
    ]
    return readers.read(write_kineto(tmp_path / "a.json", events))


def rewritten(path: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """The same file with a changed head, its digest made right: what somebody could write who means harm."""
    whole = path.read_bytes()
    magic, size, _ = FRONT.unpack(whole[: FRONT.size])
    head = json.loads(whole[FRONT.size : FRONT.size + size])
    start = -(-(FRONT.size + size) // 64) * 64
    change(head)
    text = json.dumps(head).encode()
    front = FRONT.pack(magic, len(text), hashlib.blake2b(text, digest_size=20).digest()) + text
    path.write_bytes(front + b"\0" * (-len(front) % 64) + whole[start:])
    return path


def test_windows_come_back_as_they_were(windows: tuple[Window, ...], tmp_path: Path) -> None:
    assert_same(unpacked(packed(tmp_path / "x", windows)), windows)


def test_several_windows_of_one_file_come_back_in_order(tmp_path: Path) -> None:
    made = XSpace()
    for device in (0, 1):
        made.plane(f"/device:GPU:{device}", [("Stream #1", [("gemm", device, 5000, {}), ("all-reduce", 9000, 10, {})])])
    windows = readers.read(made.write(tmp_path / "a.xplane.pb"))
    assert len(windows) == 2
    assert_same(unpacked(packed(tmp_path / "x", windows)), windows)


def test_names_that_are_no_text_and_empty_windows_come_back(windows: tuple[Window, ...], tmp_path: Path) -> None:
    (one,) = windows
    odd = replace(one, spans=replace(one.spans, names=("\ud800", "é\0\n", *one.spans.names[2:])))
    none = replace(one, spans=one.spans.where(np.zeros(len(one.spans), dtype=bool)), allocations=None)
    assert_same(unpacked(packed(tmp_path / "x", (odd, none))), (odd, none))


def test_columns_are_mapped_and_cannot_be_written(windows: tuple[Window, ...], tmp_path: Path) -> None:
    (window,) = unpacked(packed(tmp_path / "x", windows))
    with pytest.raises(ValueError, match="read-only"):
        window.spans.start_ns[0] = 1


def test_what_is_mapped_stays_when_the_file_is_removed(windows: tuple[Window, ...], tmp_path: Path) -> None:
    found = unpacked(packed(tmp_path / "x", windows))
    (tmp_path / "x").unlink()
    assert_same(found, windows)


@pytest.mark.shared
def test_every_trace_of_the_corpus_comes_back_as_it_was(shared: Path, tmp_path: Path) -> None:
    checked = 0
    for path in sorted(shared.glob("traces/*/*")):
        if not path.name.endswith((".json", ".json.gz", ".pb")) or path.name.startswith("reference"):
            continue
        try:
            windows = readers.read(path)
        except TraceError:
            continue
        assert_same(unpacked(packed(tmp_path / "x", windows)), windows, path.name)
        checked += 1
    assert checked >= 45


@given(at=st.integers(0, 2**31), bit=st.integers(0, 7))
def test_no_flipped_bit_changes_an_answer(at: int, bit: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("flipped")
    events = [kernel(f"gemm{n}", n * 4.0, n + 0.5, stream=n % 3, correlation=n) for n in range(9)]
    windows = readers.read(write_kineto(folder / "a.json", events))
    path = packed(folder / "x", windows)
    content = bytearray(path.read_bytes())
    content[at % len(content)] ^= 1 << bit
    path.write_bytes(content)
    try:
        found = unpacked(path)
    except Damaged:
        return
    # Between columns there is padding, which says nothing.
    assert_same(found, windows)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.97])
def test_a_file_that_was_cut_is_damaged(windows: tuple[Window, ...], tmp_path: Path, share: float) -> None:
    path = packed(tmp_path / "x", windows)
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])
    with pytest.raises(Damaged):
        unpacked(path)


def test_another_key_is_damage(windows: tuple[Window, ...], tmp_path: Path) -> None:
    with pytest.raises(Damaged, match="another key"):
        unpacked(packed(tmp_path / "x", windows, key="a"), key="b")


@pytest.mark.parametrize("content", [b"", b"\0" * 4096, b"MESHCOL\x01", b"PK\x03\x04" + b"x" * 999, b"{}" * 300])
def test_a_file_of_another_kind_is_damaged(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(Damaged):
        unpacked(tmp_path / "x")


def _set(*keys: Any, to: Any) -> Callable[[dict[str, Any]], None]:
    def change(head: dict[str, Any]) -> None:
        at: Any = head
        for key in keys[:-1]:
            at = at[key]
        at[keys[-1]] = to

    return change


def _repeat_for_ever(head: dict[str, Any]) -> None:
    for number, place in enumerate(head["columns"]):
        if place[1] and len(place[1]) == 1:
            head["columns"][number] = [place[0], [10**15], 0, 0, 0]


def _nest(head: dict[str, Any]) -> None:
    deep: Any = []
    for _ in range(400):
        deep = [deep]
    head["windows"][0]["steps"] = deep


HOSTILE = {
    "a table that is shorter than the numbers that point into it": _set("windows", 0, "spans", "names", to=["one"]),
    "a rank in words": _set("windows", 0, "rank", to="zero"),
    "no windows": _set("windows", to=None),
    "a window that is none": _set("windows", 0, to=[]),
    "a missing field": lambda head: head["windows"][0].pop("counts"),
    "a column that there is not": _set("windows", 0, "spans", "start_ns", to=999),
    "a negative column": _set("windows", 0, "spans", "start_ns", to=-1),
    "a column of another type": lambda head: head["windows"][0]["spans"].update(
        start_ns=head["windows"][0]["spans"]["name"]
    ),
    "a column that lies outside": _set("columns", 0, 2, to=10**12),
    "a column that lies before": _set("columns", 0, 2, to=-64),
    "a longer column": _set("columns", 0, 1, to=[10**12]),
    "a negative length": _set("columns", 0, 1, to=[-1]),
    "objects for numbers": _set("columns", 0, 0, to="|O"),
    "no type at all": _set("columns", 0, 0, to="nonsense"),
    "rows without end": _repeat_for_ever,
    "steps without bounds": _set("windows", 0, "steps", to=[1, 2, 3]),
    "steps that are lists of lists": _nest,
    "counts in words": _set("windows", 0, "counts", to={"read": "many", "device": 0, "dropped": {}, "repaired": {}}),
}  # fmt: skip


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_head_that_lies_is_damage_and_nothing_else(
    windows: tuple[Window, ...], tmp_path: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    with pytest.raises(Damaged):
        unpacked(rewritten(packed(tmp_path / "x", windows), change))


def test_the_unchanged_head_written_anew_is_believed(windows: tuple[Window, ...], tmp_path: Path) -> None:
    assert_same(unpacked(rewritten(packed(tmp_path / "x", windows), lambda head: None)), windows)


WRONG = [("link", 10**6), ("link", -5), ("kind", 200), ("lane", 77), ("rule", 999)]


@pytest.mark.parametrize(("column", "value"), WRONG)
def test_numbers_that_point_nowhere_are_damage(
    windows: tuple[Window, ...], tmp_path: Path, column: str, value: int
) -> None:
    (window,) = windows
    wrong = getattr(window.spans, column).copy()
    wrong[3] = value
    spans = replace(window.spans, **{column: wrong})
    with pytest.raises(Damaged):
        unpacked(packed(tmp_path / "x", (replace(window, spans=spans),)))
