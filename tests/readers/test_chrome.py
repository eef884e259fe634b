"""The Chrome trace container: any layout of the JSON, cut anywhere into blocks; damage costs the entry it is in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshscope.errors import TraceError
from meshscope.readers import chrome_mending, damage
from meshscope.readers.chrome import Document


class Entry(msgspec.Struct):
    name: str | None = None
    ts: msgspec.Raw = msgspec.Raw(b"")


DECODE = msgspec.json.Decoder(list[Entry]).decode

ODD_NAMES = ['quote " in it', 'brace } , { "ph" inside', "end ] } of all", "back\\slash", "tab\tand\nline", "é 漢"]


def blocks(text: bytes, size: int) -> Iterator[bytes]:
    return iter([text[at : at + size] for at in range(0, len(text), size)])


def read(text: bytes, size: int = 1 << 20) -> tuple[Document[Entry], list[str | None]]:
    document = Document(blocks(text, size), DECODE)
    return document, [entry.name for batch in document.batches() for entry in batch]


def trace(names: list[str], **around: Any) -> dict[str, Any]:
    events = [{"ph": "X", "name": name, "ts": 1.5, "args": {"list": [{"a": 1}, {"b": [1, 2]}]}} for name in names]
    return {"schemaVersion": 1, **around, "traceEvents": events, "traceName": "x", "INFO": [{"a": 1}, {"b": 2}]}


LAYOUTS = {
    "compact": {"separators": (",", ":")},
    "default": {},
    "indented": {"indent": 2},
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("size", [7, 100, 1 << 20])
def test_every_layout_and_every_cut_gives_every_entry(layout: str, size: int) -> None:
    names = ODD_NAMES * 5
    document, found = read(json.dumps(trace(names), **LAYOUTS[layout]).encode(), size)  # type: ignore[arg-type]
    assert found == names
    assert document.is_complete
    assert not document.dropped
    assert not document.repaired


def test_keys_on_either_side_of_the_events_are_kept() -> None:
    document, _ = read(json.dumps(trace(["a"], distributedInfo={"rank": 3})).encode(), 50)
    assert document.metadata["distributedInfo"] == {"rank": 3}
    assert document.metadata["traceName"] == "x"
    assert document.metadata["INFO"] == [{"a": 1}, {"b": 2}]


def test_a_bare_list_is_a_trace_too() -> None:
    document, found = read(json.dumps(trace(["a", "b"])["traceEvents"]).encode())
    assert found == ["a", "b"]
    assert document.is_complete


def test_no_events_are_none() -> None:
    document, found = read(b'{"traceEvents": []}')
    assert found == []
    assert document.is_complete


@given(st.lists(st.text(max_size=8), max_size=12), st.integers(1, 200), st.sampled_from(list(LAYOUTS)))
def test_any_names_survive_any_cut(names: list[str], size: int, layout: str) -> None:
    text = json.dumps(trace(names), **LAYOUTS[layout]).encode("utf-8", "surrogatepass")  # type: ignore[arg-type]
    assert read(text, size)[1] == names


@given(st.integers(1, 10_000))
def test_a_file_cut_anywhere_gives_the_entries_before_the_cut(cut: int) -> None:
    names = [f"n{number}" for number in range(20)]
    text = json.dumps(trace(names)).encode()
    start, end = text.index(b"[") + 1, text.index(b"traceName") - 3
    cut = start + cut % (end - start)
    document, found = read(text[:cut], 300)
    assert found == names[: len(found)]
    assert len(found) >= text[:cut].count(b'"ph"') - 1
    assert not document.is_complete


def test_a_torn_last_entry_is_counted() -> None:
    document, found = read(b'{"traceEvents": [{"name": "a", "ts": 1}, {"name": "b", "t')
    assert found == ["a"]
    assert document.dropped == {damage.CUT_SHORT: 1}


def test_control_characters_bad_escapes_and_bad_utf8_are_repaired_and_counted() -> None:
    text = b'{"traceEvents": [{"name": "a\x01", "ts": 1}, {"name": "C:\\work"}, {"name": "\xff\xfe"}, {"name": "d"}]}'
    document, found = read(text)
    assert found == ["a\x01", "C:\\work", "��", "d"]
    assert document.repaired == {chrome_mending.BAD_TEXT: 3}


def test_digits_survive_a_repair() -> None:
    document = Document(blocks(b'[{"name": "a\x01", "ts": 1714066300000000.123}]', 100), DECODE)
    (entry,) = [entry for batch in document.batches() for entry in batch]
    assert bytes(entry.ts).strip(b'"') == b"1714066300000000.123"


def test_an_entry_that_is_not_json_is_dropped_and_its_neighbours_stay() -> None:
    document, found = read(b'{"traceEvents": [{"name": "a"}, {"name": say hi to}, {"name": "c"}], "k": 1}')
    assert found == ["a", "c"]
    assert document.dropped == {damage.DAMAGED: 1}
    assert document.metadata == {"k": 1}


def test_entries_that_are_no_objects_are_dropped() -> None:
    document, found = read(b'{"traceEvents": [{"name": "a"}, 5, {"name": "c"}]}')
    assert found == ["a", "c"]
    assert document.dropped == {damage.NOT_AN_EVENT: 1}


def test_damaged_metadata_loses_no_events() -> None:
    document, found = read(b'{"INFO": "say "hi"", "traceEvents": [{"name": "a"}], "more": }')
    assert found == ["a"]
    assert sum(document.dropped.values()) == 2


@pytest.mark.parametrize("text", [b"{}", b'{"rocprofiler-sdk-tool": []}', b'{"events": [1, 2]}'])
def test_json_without_trace_events_is_refused_with_a_hint(text: bytes) -> None:
    with pytest.raises(TraceError) as told:
        read(text)
    assert told.value.hint
