"""Damaged Chrome traces: each kind of damage costs what it is in, is counted by its reason, and nothing else moves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from meshscope.errors import TraceError
from meshscope.readers import chrome_single, damage
from meshscope.readers.chrome import Document
from meshscope.readers.chrome_mending import BAD_QUOTE, BAD_TEXT, NOT_FINITE, ODD_TYPE, mended


class Entry(msgspec.Struct):
    ph: str | None = None
    name: str | None = None
    ts: msgspec.Raw = msgspec.Raw(b"")
    tid: int | str | float | None = None


DECODE = msgspec.json.Decoder(list[Entry]).decode
BEFORE = b'{"ph": "X", "name": "before", "ts": 1, "args": {"list": [{"a": 1}, {"b": [1, 2]}]}}'
AFTER = b'{"ph": "X", "name": "after", "ts": 3}'


def blocks(text: bytes, size: int) -> Iterator[bytes]:
    return iter([text[at : at + size] for at in range(0, len(text), size)])


def read(text: bytes, size: int = 1 << 20) -> tuple[Document[Entry], list[str | None]]:
    document = Document(blocks(text, size), DECODE)
    return document, [entry.name for batch in document.batches() for entry in batch]


def among(event: bytes, size: int = 1 << 20) -> tuple[Document[Entry], list[str | None]]:
    """The event between two good ones, and keys on either side of the list."""
    text = b'{"schemaVersion": 1, "traceEvents": [' + b", ".join((BEFORE, event, AFTER)) + b'], "k": {"rank": 3}}'
    document, names = read(text, size)
    assert (names[0], names[-1]) == ("before", "after")
    assert document.is_complete
    assert document.metadata == {"schemaVersion": 1, "k": {"rank": 3}}
    return document, names[1:-1]


MENDED = {
    "a raw backslash": (rb'{"ph": "X", "name": "C:\work\exp", "ts": 2}', r"C:\work\exp", BAD_TEXT),
    "an escaped backslash beside a bad one": (rb'{"ph": "X", "name": "a\\b\q", "ts": 2}', r"a\b\q", BAD_TEXT),
    "half an escape": (rb'{"ph": "X", "name": "a\u12", "ts": 2}', r"a\u12", BAD_TEXT),
    "a control character": (b'{"ph": "X", "name": "a\x01\n\tb", "ts": 2}', "a\x01\n\tb", BAD_TEXT),
    "a NUL": (b'{"ph": "X", "name": "a\0b", "ts": 2}', "a\0b", BAD_TEXT),
    "bytes that are no UTF-8": (b'{"ph": "X", "name": "\xff\xfe", "ts": 2}', "\ufffd\ufffd", BAD_TEXT),
    "half a surrogate pair": (rb'{"ph": "X", "name": "a\ud800b", "ts": 2}', "a\ufffdb", BAD_TEXT),
    "quotes in a name": (b'{"ph": "X", "name": "say "hi" to", "ts": 2}', 'say "hi" to', BAD_QUOTE),
    "a source line as a name": (
        b'{"ph": "X", "cat": "python_function", "name": "d = {"a": 1, "b": "c"}", "ts": 2}',
        'd = {"a": 1, "b": "c"}', BAD_QUOTE,
    ),
    "a quote at the end of a name": (b'{"ph": "X", "name": "19"", "ts": 2}', '19"', BAD_QUOTE),
    "quotes in a name that is last": (b'{"ph": "X", "ts": 2, "name": "a "b" c"}', 'a "b" c', BAD_QUOTE),
    "a backslash before the closing quote": (rb'{"ph": "X", "name": "C:\work\", "ts": 2}', "C:\\work\\", BAD_QUOTE),
    "quotes in an argument": (
        b'{"ph": "X", "name": "op", "ts": 2, "args": {"call": "f("x", 1)", "dims": [["a", "b"], []]}}', "op", BAD_QUOTE,
    ),
    "no number": (b'{"ph": "X", "name": "op", "ts": 2, "args": {"occupancy": NaN, "x": -Infinity}}', "op", NOT_FINITE),
    "a number as a name": (b'{"ph": "X", "name": 5, "ts": 2}', "5", ODD_TYPE),
    "a list as an id": (b'{"ph": "X", "name": "op", "tid": [1], "ts": 2}', "op", ODD_TYPE),
    "arguments that are no object": (b'{"ph": "X", "name": "op", "args": [], "ts": 2, "tid": true}', "op", ODD_TYPE),
    "an id beyond every number": (b'{"ph": "X", "name": "op", "tid": 1e999, "ts": 2}', "op", ODD_TYPE),
}  # fmt: skip


@pytest.mark.parametrize("kind", MENDED)
@pytest.mark.parametrize("size", [30, 1 << 20])
def test_an_event_whose_meaning_is_plain_is_mended_and_counted(kind: str, size: int) -> None:
    event, name, reason = MENDED[kind]
    document, found = among(event, size)
    assert found == [name]
    assert document.repaired == {reason: 1}
    assert not document.dropped


def test_numbers_of_a_mended_event_keep_every_digit() -> None:
    event = b'{"ph": "X", "name": "a "b"", "ts": 1714066300000000.123, "tid": 15514734831341844875}'
    document = Document(blocks(b"[" + event + b"]", 100), DECODE)
    (entry,) = [entry for batch in document.batches() for entry in batch]
    assert bytes(entry.ts).strip(b'"') == b"1714066300000000.123"
    assert entry.tid == 15514734831341844875


LOST = {
    "bare words": b'{"ph": "X", "name": say hi, "ts": 2}',
    "no value": b'{"ph": "X", "name": , "ts": 2}',
    "a name that never ends": b'{"ph": "X", "name": "abc, "ts": 2}',
    "half an event": b'{"ph": "X", "na',
    "an event without its end": b'{"ph": "X", "name": "a", "ts": 2',
    "two events run into one": b'{"ph": "X", "name": "aten::m, "cat": "kernel", "name": "b", "ts": 5}',
    "a list too deep": b'{"ph": "X", "name": "a", "args": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    "a number of 5000 digits that ends in a word": b'{"ph": "X", "name": "a", "ts": ' + b"9" * 5000 + b"x}",
}


@pytest.mark.parametrize("kind", LOST)
@pytest.mark.parametrize("size", [30, 1 << 20])
def test_an_event_whose_meaning_is_not_plain_is_dropped_and_counted(kind: str, size: int) -> None:
    document, found = among(LOST[kind], size)
    assert found == []
    assert document.dropped == {damage.DAMAGED: 1}
    assert not document.repaired


@pytest.mark.parametrize("event", [b"5", b'"text"', b"null", b"[1, 2]"])
def test_entries_that_are_no_objects_are_dropped(event: bytes) -> None:
    document, found = among(event)
    assert found == []
    assert document.dropped == {damage.NOT_AN_EVENT: 1}


def test_several_damaged_events_in_a_row_are_each_told() -> None:
    bad = b'{"ph": "X", "name": "a "b"", "ts": 2}'
    document, found = among(b", ".join([bad, LOST["bare words"], bad, bad]))
    assert found == ['a "b"'] * 3
    assert document.repaired == {BAD_QUOTE: 3}
    assert document.dropped == {damage.DAMAGED: 1}


def test_many_damaged_events_are_read_in_time_that_grows_with_their_number() -> None:
    event = b'{"ph": "X", "name": "C:\\work", "ts": 2, "args": {"text": "' + b"x" * 200 + b'"}}'
    text = b'{"traceEvents": [' + b",".join([event] * 20_000) + b"]}"
    document, found = read(text, 1 << 22)
    assert len(found) == 20_000
    assert document.repaired == {BAD_TEXT: 20_000}


def test_objects_in_an_arguments_list_are_taken_for_no_event() -> None:
    event = b'{"ph": "X", "name": what, "args": {"list": [{"id": 1}, {"id": 2}, {"name": "x"}]}, "ts": 2}'
    document, found = among(event)
    assert found == []
    assert document.dropped == {damage.DAMAGED: 1}


def test_keys_may_come_in_any_order_around_damage() -> None:
    odd = b'{"name": "a", "args": {"l": [{"id": 1}, {"id": 2}]}, "ts": 2, "ph": "X"}'
    bad = b'{"name": a, "args": {"l": [{"id": 1}, {"id": 2}]}, "ts": 2, "ph": "X"}'
    document, found = read(b"[" + b",".join([odd, bad, odd, bad, bad, odd]) + b"]")
    assert found == ["a", "a", "a"]
    assert document.dropped == {damage.DAMAGED: 3}
    assert document.is_complete


def test_a_byte_order_mark_a_comma_too_many_and_an_empty_event_are_no_damage() -> None:
    document, found = read(b'\xef\xbb\xbf{"traceEvents": [' + BEFORE + b", " + AFTER + b", {}, ]}\n\0\0")
    assert found == ["before", "after", None]
    assert document.is_complete
    assert not document.dropped
    assert not document.repaired


def test_of_a_key_that_comes_twice_the_last_counts() -> None:
    document, found = among(b'{"ph": "X", "name": "first", "ts": 2, "name": "last"}')
    assert found == ["last"]
    assert not document.dropped


def test_a_file_cut_in_the_metadata_after_the_events_loses_no_event_and_keeps_whole_keys() -> None:
    around = b'], "traceName": "x", "baseTimeNanoseconds": 1790000000000000000, "distributedInfo": {"rank": 3}}'
    whole = b'{"traceEvents": [' + BEFORE + around
    for cut in range(len(BEFORE) + 18, len(whole) - 1):
        document, found = read(whole[:cut], 40)
        assert found == ["before"]
        # A number that the cut may have shortened is no number.
        assert document.metadata.get("baseTimeNanoseconds", 1790000000000000000) == 1790000000000000000
        assert document.metadata.get("distributedInfo", {"rank": 3}) == {"rank": 3}


def test_damage_around_the_events_costs_the_key_it_is_in() -> None:
    text = b'{"INFO": "say "hi"", "rank": 3, "traceEvents": [' + BEFORE + b'], "more": , "name": "x", "bad": "a"b"}'
    document, found = read(text)
    assert found == ["before"]
    assert document.metadata == {"rank": 3, "name": "x"}
    assert document.dropped == {damage.METADATA: 3}


def test_a_head_that_is_torn_loses_no_events() -> None:
    document, found = read(b'{"schemaVersion": 1, "traceEv#nts" [' + BEFORE + b", " + AFTER + b"]}")
    assert found == ["before", "after"]
    assert document.metadata == {"schemaVersion": 1}
    assert document.dropped == {damage.METADATA: 1}


def test_another_trace_after_the_first_is_read_and_told() -> None:
    one = b'{"schemaVersion": 1, "traceEvents": [' + BEFORE + b'], "traceName": "x"}'
    for size in (20, 1 << 20):
        document, found = read(one + b"\n" + one, size)
        assert found == ["before", "before"]
        assert document.dropped == {damage.SECOND_HEAD: 1}


def test_another_trace_inside_the_first_is_told_whatever_tears_it() -> None:
    def trace(rank: int) -> bytes:
        events = [{"ph": "X", "name": f"r{rank}", "ts": at, "args": {"a": [1, 2]}} for at in range(50)]
        head: dict[str, Any] = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "A"}, {"id": 1}]}
        return json.dumps(head | {"traceEvents": events, "traceName": "x"}).encode()

    first, second = trace(0), trace(1)
    for size in (64, 200, 512, 1024):
        pieces = [text[at : at + size] for at in range(0, len(first), size) for text in (first, second)]
        document, found = read(b"".join(pieces), 100)
        assert document.dropped[damage.SECOND_HEAD] > 0
        assert {"r0", "r1"} <= set(found)


def test_events_after_an_end_of_the_list_that_damage_made_are_read() -> None:
    document, found = read(b'{"traceEvents": [' + BEFORE + b"], " + AFTER + b'], "k": 1}')
    assert found == ["before", "after"]
    assert document.dropped == {damage.DAMAGED: 1}
    assert document.metadata["k"] == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b'{"schemaVersion": 1, "devicePr', "ends before its first event"),
        (b'{"schemaVersion": 1}', "no traceEvents"),
        (b'{"traceEvents": null}', "no traceEvents"),
        (b'{"traceEvents": {}}', "no traceEvents"),
    ],
)
def test_a_file_without_a_list_of_events_is_refused_by_what_it_lacks(text: bytes, words: str) -> None:
    with pytest.raises(TraceError, match=words) as told:
        read(text)
    assert told.value.hint


def test_text_without_any_boundary_is_not_gathered_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chrome_single, "LONGEST_ENTRY_BYTES", 10_000)
    document, found = read(b'{"traceEvents": [' + BEFORE + b', {"ph": "X", "name": "' + b"x" * 100_000, 1000)
    assert found == ["before"]
    assert not document.is_complete
    assert sum(document.dropped.values()) >= 1
    assert len(document._rest) <= 20_000


def test_events_nested_without_end_are_told_in_time_that_grows_with_their_number() -> None:
    document, found = read(b"[" + BEFORE + b"," + b'{"ph": ' * 100_000)
    assert found == ["before"]
    assert document.dropped[damage.DAMAGED] < 5_000


def test_an_event_that_cannot_be_mended_is_none() -> None:
    assert mended(b'{"name": a "b"}') is None
    assert mended(b'{"name": "a", "ts": 1') is None
    assert mended(b"{" + b'"' * 1_200_000) is None


NESTED = {
    "keys of the head": b'"config": {"profiler": {"record_shapes": true}, "schemaVersion": 1, "host_name": "h"}',
    "a list of events": b'"config": {"traceEvents": [{"ph": "X", "name": "no"}], "schemaVersion": 1}',
    "a list of events among others": b'"config": [{"traceEvents": [{"ph": "X", "name": "no"}]}]',
    "a whole trace as text": rb'"config": "{\"schemaVersion\": 1, \"traceEvents\": [{\"ph\": \"X\"}]}"',
}


@pytest.mark.parametrize("kind", NESTED)
@pytest.mark.parametrize("size", [7, 40, 1 << 20])
def test_only_the_keys_of_the_object_itself_begin_a_trace(kind: str, size: int) -> None:
    listed = b'"traceEvents": [' + BEFORE + b", " + AFTER + b"]"
    head = b'"schemaVersion": 1, "distributedInfo": {"rank": 3}'
    for pairs in (
        (head, NESTED[kind], listed),
        (listed, NESTED[kind], head),
        (NESTED[kind], listed, NESTED[kind], head),
    ):
        document, found = read(b"{" + b", ".join(pairs) + b"}\n", size)
        assert found == ["before", "after"]
        assert document.is_complete
        assert document.is_closed
        assert not document.dropped
        assert document.metadata["distributedInfo"] == {"rank": 3}
        assert "config" in document.metadata


def test_an_event_that_holds_a_key_of_the_head_is_no_second_trace() -> None:
    document, found = among(b'{"ph": "X", "name": "op", "ts": 2, "args": {"record_shapes": NaN, "schemaVersion": 1}}')
    assert found == ["op"]
    assert document.repaired == {NOT_FINITE: 1}
    assert not document.dropped


@pytest.mark.parametrize("size", [7, 1 << 20])
@pytest.mark.parametrize("text", [b'{"traceEvents": [' + BEFORE + b'], "k": 1}', b"[" + BEFORE + b"]"])
def test_text_after_the_end_is_told_and_costs_nothing(text: bytes, size: int) -> None:
    document, found = read(text + b'\n\0\0junk, "a": 5}', size)
    assert found == ["before"]
    assert document.is_closed
    assert document.dropped == {damage.AFTER_END: 1}
    assert "a" not in document.metadata


@pytest.mark.parametrize("size", [1000, 4096])
@pytest.mark.parametrize("last", [True, False])
def test_an_event_that_is_too_long_is_passed_over_and_counted(
    monkeypatch: pytest.MonkeyPatch, size: int, last: bool
) -> None:
    monkeypatch.setattr(chrome_single, "LONGEST_ENTRY_BYTES", 10_000)
    long = b', {"ph": "X", "name": "' + b"x" * 100_000 + b'", "ts": 2, "args": {"a": [{"b": 1}]}}'
    after = b"" if last else b", " + AFTER
    document, found = read(b'{"traceEvents": [' + BEFORE + long + after + b'], "k": 1}', size)
    assert found == ["before"] + ["after"] * (not last)
    assert document.dropped == {damage.ENDLESS: 1}
    assert document.is_complete
    assert document.metadata == {"k": 1}
