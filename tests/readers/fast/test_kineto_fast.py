"""The compiled scanner of Kineto files agrees with the base decoder on every column of every event of every file."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meshscope.errors import TraceError
from meshscope.readers import chrome_single, damage
from meshscope.readers.chrome import Document
from meshscope.readers.kineto_columns import Columns, Event, Gathering, decode
from meshscope.readers.stream import Room, Source

pytest.importorskip("numba", reason="the fast extra is not installed")

from meshscope.readers.fast import kineto
from meshscope.readers.fast.kineto import FastDocument

BLOCK = 1 << 22


def gathered(document: Document[Event], gathering: Gathering) -> Columns | str:
    try:
        for batch in document.batches():
            gathering.begin(document.metadata)
            gathering.take(batch)
    except TraceError as error:
        return error.message
    return gathering.columns(document)


def both(blocks: list[bytes]) -> tuple[Columns | str, Columns | str]:
    """The columns of a text by the base decoder and by the compiled scanner; its message where it is refused."""
    base, fast = Gathering(), Gathering()
    return gathered(Document(iter(blocks), decode), base), gathered(FastDocument(served(blocks), fast), fast)


def served(blocks: list[bytes]) -> Callable[[Room], Iterator[bytes | memoryview]]:
    """The blocks as a source gives them: the first as it is, every other one in the room made for it."""

    def into(room: Room) -> Iterator[bytes | memoryview]:
        for number, block in enumerate(blocks):
            if number % 2:
                place = room(len(block) + 9)
                place[: len(block)] = block
                yield place[: len(block)]
            else:
                yield block

    return into


def cut(text: bytes, size: int) -> list[bytes]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def differences(base: Columns | str, fast: Columns | str) -> list[str]:
    """The fields that differ. Tables are numbered by first appearance either way, so numbers are the same too."""
    if isinstance(base, str) or isinstance(fast, str):
        return [] if base == fast else ["refusal"]
    found = []
    for field in fields(Columns):
        one, other = getattr(base, field.name), getattr(fast, field.name)
        is_column = isinstance(one, np.ndarray)
        if not (np.array_equal(one, other) and one.dtype == other.dtype if is_column else one == other):
            found.append(field.name)
    return found


def check(text: bytes, size: int = BLOCK) -> Columns | str:
    base, fast = both(cut(text, size))
    assert differences(base, fast) == [], text[:2000]
    return fast


def packed(events: list[dict[str, Any]], **layout: Any) -> bytes:
    return json.dumps({"schemaVersion": 1, "traceEvents": events, "traceName": "x"}, **layout).encode()


def kernel(number: int, **more: Any) -> dict[str, Any]:
    args = {"stream": number % 3, "device": 0, "correlation": number, "est. achieved occupancy %": 31.5, "grid": [1, 2]}
    event = {"ph": "X", "cat": "kernel", "name": f"gemm_{number % 5}", "pid": 0, "tid": 7, "ts": 1000 + number * 1.5}
    return event | {"dur": 1.25, "args": args | more}


NCCL = {
    "Collective name": "_allgather_base", "In msg nelems": 1024, "Out msg nelems": 4096, "dtype": "BFloat16",
    "Process Group Name": "0", "Seq": 3, "Group size": 4,
}  # fmt: skip

EVENTS: list[dict[str, Any]] = [
    *(kernel(number) for number in range(4)),
    kernel(4, **NCCL),
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": 5, "dur": 1,
     "args": {"cbid": 211, "correlation": 4}},
    {"ph": "X", "cat": "Kernel", "name": "old", "pid": "0", "tid": "stream 7", "ts": 6, "dur": 1,
     "args": {"stream": -1, "device": "0", "correlation": 1.5}},
    {"ph": "X", "cat": "cpu_op", "name": "c10d::allreduce_", "pid": 9, "tid": 9, "ts": 7.001, "dur": 2,
     "args": {"Input Dims": [[[4, 4], [2]], []], "Input type": ["TensorList", ""]}},
    {"ph": "X", "cat": "user_annotation", "name": "gloo:all_reduce", "pid": 9, "tid": 10, "ts": 8, "dur": 2,
     "args": {"Input Dims": [[4, 4]], "Input type": ["float"]}},
    {"ph": "s", "id": 1, "pid": 9, "tid": 9, "ts": 7, "cat": "ac2g", "name": "ac2g"},
    {"ph": "M", "name": "thread_name", "pid": 9, "tid": 10, "ts": 0, "args": {"name": "pt_gloo_runloop"}},
    {"ph": "M", "name": "process_labels", "pid": 9, "tid": 0, "ts": 0, "args": {"labels": "CPU"}},
    {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 9, "tid": 9, "ts": 9,
     "args": {"Total Allocated": 512, "Device Type": 0, "Device Id": -1}},
    {"ph": "i", "name": "Record Window End", "pid": "", "tid": "", "s": "g", "ts": 90},
    {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans", "tid": "PyTorch Profiler", "ts": 1,
     "dur": 99, "args": {"Op count": 0}},
    {"ph": "B", "name": "open", "pid": 1, "tid": 1, "ts": 2},
    {"ph": "E", "name": "open", "pid": 1, "tid": 1, "ts": 4},
    {"ph": "X", "cat": "overhead", "name": "no arguments", "pid": -1, "tid": 0, "ts": 11, "dur": 0},
]  # fmt: skip

LAYOUTS: list[dict[str, Any]] = [{}, {"separators": (",", ":")}, {"indent": 2}, {"sort_keys": True}]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_kind_of_event_in_every_layout(layout: dict[str, Any]) -> None:
    found = check(packed(EVENTS * 3, **layout))
    assert isinstance(found, Columns)
    assert found.read == len(EVENTS) * 3
    assert found.is_complete


@pytest.mark.parametrize("layout", LAYOUTS[:3])
def test_every_cut_into_blocks(layout: dict[str, Any]) -> None:
    text = packed(EVENTS * 2, **layout)
    for size in (*range(13, 700, 29), len(text) - 1):
        check(text, size)


@pytest.mark.parametrize("layout", LAYOUTS[:2])
def test_a_file_that_ends_at_any_byte(layout: dict[str, Any]) -> None:
    text = packed(EVENTS[3:9], **layout)
    for end in range(len(text)):
        check(text[:end])


@pytest.mark.parametrize("value", ["7,757576", "inf", "-nan(ind)", ".5", "01", "0x1"])
@pytest.mark.parametrize("size", [97, 5_000, BLOCK])
def test_numbers_that_json_does_not_have(value: str, size: int) -> None:
    events = [kernel(n, **({"blocks per SM": "@"} if n % 3 else {})) for n in range(400)]
    found = check(packed(events).replace(b'"@"', value.encode()), size)
    assert isinstance(found, Columns)
    assert sum((*found.repaired.values(), *found.dropped.values())) == 266
    assert found.read == 400


@pytest.mark.parametrize("filler", [b'"', b"}", b"7", b" "])
def test_what_lies_behind_a_text_is_not_read(filler: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    text = packed(EVENTS[3:6])
    check(text)
    empty = np.empty

    def soiled(shape: int, dtype: Any = np.float64) -> np.ndarray:  # type: ignore[type-arg]
        array = empty(shape, dtype)
        array.view(np.uint8).fill(filler[0])
        return array

    monkeypatch.setattr(np, "empty", soiled)
    for end in range(0, len(text), 3):
        check(text[:end])


def test_plain_events_are_scanned_and_not_handed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """All this would hold of a scanner that hands everything over."""
    plain = [event for event in EVENTS if event["ph"] not in {"B", "E"} and event.get("cat") != "Kernel"]
    fast = Gathering()
    document = FastDocument(served(cut(packed(plain * 9, indent=1), 5000)), fast)
    scanned = []
    monkeypatch.setattr(fast, "scanned", scanned.append)
    for batch in document.batches():
        fast.take(batch)
    assert sum(scanned) == len(plain) * 9


def test_a_text_of_many_names_threads_and_categories_outgrows_its_tables() -> None:
    events = [
        kernel(row) | {"name": f"n{row % 7001}", "tid": row % 977, "cat": f"c{row % 301}"} for row in range(40_000)
    ]
    check(packed(events), 1 << 20)


ODD_TOKENS = [
    "0", "-0", "1", "-1", "12", "007", "1.5", "1.5555", "0.0005", "-2.5", "1e3", "1E-2", "1e999", "1.", ".5", "NaN",
    "Infinity", "true", "false", "null", '""', '"7"', '"1.5"', '"stream 7"', "[]", "[1, [2]]", "{}", '{"a": {"b": []}}',
    "9223372036854775807", "9223372036854775808", "10159970886766084423", "99999999999999999999999",
    "1714066300000000.123", "9999999999999999", "999999999999999.9", "123456789012345678", "1234567890123456789",
    '"\\u0041b"', '"\\ud83d\\ude00"', '"\\ud83d"', '"a\\/b"', '"C:\\work"', '"tab\there"', '"é 漢"', '"say \\"hi\\""',
]  # fmt: skip

KEYS = ["ph", "cat", "name", "ts", "dur", "pid", "tid", "args", "id", "bp", "\\u0070h", "x", ""]
ARGUMENT_KEYS = ["stream", "device", "correlation", "Collective name", "In msg nelems", "dtype", "name", "Seq", "cbid"]
PHASES = ['"X"'] * 6 + ['"M"', '"i"', '"s"', '"B"', '"E"', '"C"', '""', "null", "5", '"\\u0058"']
CATEGORIES = ['"kernel"', '"Kernel"', '"gpu_memcpy"', '"cpu_op"', '"cuda_runtime"', "null", '"KERNEL"']
NAMES = ['"gemm"', '"thread_name"', '"[memory]"', '"gloo:all_reduce"', '"c10d::allreduce_"', '"thread\\u005fname"']

odd = st.sampled_from(ODD_TOKENS)
space = st.sampled_from(["", "", " ", "\n  ", "\t", "\r\n", " " * 17])


@st.composite
def objects(draw: st.DrawFn, pairs: list[tuple[str, str]]) -> str:
    """An object of some pairs in any order, with white space."""
    inside = ",".join(
        f'{draw(space)}"{key}"{draw(space)}:{draw(space)}{value}{draw(space)}'
        for key, value in draw(st.permutations(pairs))
    )
    return "{" + inside + "}"


@st.composite
def events(draw: st.DrawFn) -> str:
    arguments = [(key, draw(odd)) for key in draw(st.lists(st.sampled_from(ARGUMENT_KEYS), max_size=4))]
    pairs = [
        ("ph", draw(st.sampled_from(PHASES))),
        ("cat", draw(st.sampled_from(CATEGORIES))),
        ("name", draw(st.sampled_from(NAMES))),
        ("ts", draw(st.sampled_from(["1", "2.5", "3.125", "1714066300000000.123"]))),
        ("dur", draw(st.sampled_from(["1", "0", "2.500"]))),
        ("pid", "7"),
        ("tid", draw(st.sampled_from(["1", "2", '"stream 7"']))),
        ("args", draw(objects(arguments))),
    ]
    for _ in range(draw(st.integers(0, 2))):
        change = draw(st.sampled_from(["leave out", "replace", "add"]))
        at = draw(st.integers(0, len(pairs) - 1)) if pairs else 0
        if change == "add" or not pairs:
            pairs.append((draw(st.sampled_from(KEYS)), draw(odd)))
        elif change == "replace":
            pairs[at] = (pairs[at][0], draw(odd))
        else:
            del pairs[at]
    return draw(objects(pairs))


USUAL = """{
    |"ph"|: |"X"|, |"cat"|: |CAT|, |"name"|: |NAME|, |"pid"|: |0|, |"tid"|: |7|,
    |"ts"|: |1714066300000000.123|, |"dur"|: |2.500|,
    |"args"|: |{
      "device": 0, "stream": 7, "correlation": 5
    }|
  }"""


@st.composite
def usual_events(draw: st.DrawFn) -> str:
    """Keys in the order and with the white space of Kineto, but for what is changed in up to three places."""
    chosen = {"CAT": draw(st.sampled_from(CATEGORIES)), "NAME": draw(st.sampled_from(NAMES))}
    parts = [chosen.get(part, part) for part in USUAL.split("|")]
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(parts) - 1))
        others = [",", " ", ":", ", ,", "\t", "", *(f'"{key}"' for key in KEYS), *parts]
        parts[at] = draw(odd | st.sampled_from(others) | st.just(parts[at] + " ") | st.just(parts[at][:-1]))
    return "".join(parts)


@st.composite
def traces(draw: st.DrawFn) -> bytes:
    between = st.sampled_from([","] * 9 + [" ,\n", ",,", "", ", {},", ", 5,", ",[1],"])
    text = draw(st.sampled_from(['{"traceEvents": [', "[", '{"a": [{"b": 1}, {"c": 2}], "traceEvents":[\n']))
    for number in range(draw(st.integers(0, 8))):
        text += (draw(between) if number else "") + draw(events() | usual_events())
    text += draw(st.sampled_from(["]}", "]", "", ', "n', ']\n, "traceName": "x", "INFO": [{"a": 1}, {"b": 2}]}']))
    return text.encode("utf-8", "surrogatepass")


@settings(max_examples=600)
@given(traces(), st.sampled_from([BLOCK, 4096, 300, 64]), st.booleans())
def test_unusual_events_of_any_layout(text: bytes, size: int, is_narrow: bool) -> None:
    """``is_narrow``: what is handed over at an odd event is little more than that, so what follows is scanned again."""
    with pytest.MonkeyPatch.context() as patch:
        if is_narrow:
            patch.setattr(kineto, "_LEAST_REACH", 16)
        check(text, size)


number = st.from_regex(r"-?(0|[1-9][0-9]{0,19})(\.[0-9]{1,6})?([eE][+-]?[0-9]{1,2})?", fullmatch=True)
token = number | st.integers(-9, 99).map(str) | st.decimals(0, 10**16, places=3).map(str)


@settings(max_examples=600)
@given(*[token] * 7)
def test_any_number_anywhere(ts: str, dur: str, pid: str, tid: str, stream: str, device: str, correlation: str) -> None:
    args = f'{{"stream": {stream}, "device": {device}, "correlation": {correlation}, "x": {ts}}}'
    event = f'"ph": "X", "cat": "kernel", "name": "k", "ts": {ts}, "dur": {dur}'
    for text in (
        f'[{{{event}, "pid": {pid}, "tid": 1}}]',
        f'[{{{event}, "pid": 1, "tid": {tid}}}]',
        f'[{{{event}, "pid": 1, "tid": 1, "args": {args}}}]',
        f'[{{{event}, "args": {{"stream": {stream}}}}}, {{{event}, "args": {{"correlation": {correlation}}}}}]',
    ):
        check(text.encode())


@settings(max_examples=400)
@given(st.integers(0, 2**32), st.integers(1, 6), st.sampled_from([BLOCK, 1000]))
def test_damaged_bytes_anywhere(seed: int, damages: int, size: int) -> None:
    random_ = random.Random(seed)
    text = bytearray(packed(EVENTS * 2, **random_.choice(LAYOUTS[:3])))
    for _ in range(damages):
        at = random_.randrange(len(text))
        how = random_.randrange(4)
        if how == 0:
            text[at] = random_.randrange(256)
        elif how == 1:
            del text[at : at + random_.choice([1, 5, 60])]
        elif how == 2:
            text[at:at] = random_.choice([b'"', b"\\", b"{", b"}", b",", b"]", b"\x00", b"\xff", b'{"ph": "X"}, '])
        else:
            other = random_.randrange(len(text))
            text[at:at] = text[other : other + 40]
    check(bytes(text), size)


@pytest.mark.parametrize("size", [64, 999, BLOCK])
def test_metadata_that_looks_like_a_trace_events_too_long_and_text_after_the_end(
    monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(chrome_single, "LONGEST_ENTRY_BYTES", 10_000)
    nested = b'"config": {"traceEvents": [{"ph": "X", "name": "no"}], "schemaVersion": 1}'
    event = b'{"ph": "X", "cat": "kernel", "name": "k", "ts": %d, "dur": 1, "args": {"device": 0, "stream": 7}}'
    events = [event % number for number in range(40)]
    events[20] = b'{"ph": "X", "name": "' + b"x" * 50_000 + b'", "ts": 1, "dur": 1}'
    odd = (b"1790000000000000000", b"-1e17", b"1e20")
    events += [b'{"ph": "X", "cat": "kernel", "name": "k", "dur": 1, "ts": ' + ts + b"}" for ts in odd]
    listed = b'"traceEvents": [' + b", ".join(events) + b"]"
    for pairs in ((nested, listed), (listed, nested)):
        base, fast = both(cut(b'{"schemaVersion": 1, ' + b", ".join(pairs) + b"} junk", size))
        assert not differences(base, fast)
        assert isinstance(base, Columns)
        assert base.dropped.keys() <= {damage.ENDLESS, damage.AFTER_END}
        assert base.dropped[damage.AFTER_END] == 1


@pytest.mark.shared
def test_every_file_of_the_corpus(shared: Path) -> None:
    checked = 0
    for path in sorted(shared.glob("traces/*/*.json*")):
        if path.name.startswith("reference."):
            continue
        check(b"".join(Source(path).blocks()), 1 << 20)
        checked += 1
    assert checked >= 45


@pytest.mark.shared
def test_most_of_the_corpus_needs_no_base_decoder(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scanned: list[int] = []
    monkeypatch.setattr(Gathering, "scanned", lambda _, events: scanned.append(events))
    paths = sorted(shared.glob("traces/*/*.pt.trace.json*"))
    events = sum(len(list(batch)) for path in paths for batch in Document(Source(path).blocks(), decode).batches())
    for path in paths:
        gathered(FastDocument(Source(path).blocks, gathering := Gathering()), gathering)
    assert sum(scanned) > 0.999 * events > 0
