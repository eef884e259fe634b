"""Damaged Kineto files from end to end: the exact numbers of what is left, and every loss told."""

from __future__ import annotations

import gzip
import itertools
import json
import random
import zlib
from pathlib import Path
from typing import Any

import pytest
from made_traces import UNIX_NS, Event, kernel, span, write_kineto

from meshscope.analysis.breakdown import Breakdown, measure
from meshscope.errors import TraceError
from meshscope.readers import read
from meshscope.readers.chrome_mending import BAD_QUOTE, BAD_TEXT, NOT_FINITE
from meshscope.readers.damage import AFTER_END, CUT_SHORT, DAMAGED, METADATA, SECOND_HEAD
from meshscope.readers.stream import AFTER_GZIP, BAD_TRAILER
from meshscope.spans import Window

GOOD: list[Event] = [
    kernel("gemm", 0, 10),
    kernel("ncclDevKernel_AllReduce_Sum_f32", 5, 10, stream=20),
    kernel("gemm", 20, 10, correlation=3),
    span("Memcpy DtoH", 40, 2, cat="gpu_memcpy", tid=9, stream=9, device=0),
]
GOOD_NS = Breakdown(42_000, 20_000, 10_000, 2_000, 5_000, 5_000, 27_000, 15_000)
LAYOUTS: dict[str, dict[str, Any]] = {"minified": {"separators": (",", ":")}, "one line": {}, "pretty": {"indent": 2}}


def one(path: Path, content: bytes | str, name: str = "t.json") -> Window:
    (path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    (window,) = read(path / name)
    return window


def figures(window: Window) -> Breakdown:
    return measure(window).total


def text(events: list[Event], layout: str = "one line", **around: Any) -> str:
    head = {"schemaVersion": 1, "distributedInfo": {"rank": 0}, "baseTimeNanoseconds": UNIX_NS}
    return json.dumps(head | {"traceEvents": events} | around, **LAYOUTS[layout])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("name", "damaged", "reason"),
    [
        ("NAME", r"C:\work\kernel", BAD_TEXT),
        ("NAME", "bell \x07", BAD_TEXT),
        ("NAME", 'void f<"x">()', BAD_QUOTE),
        ('"NAME"', "NaN", NOT_FINITE),
    ],
)
def test_a_mended_name_keeps_its_kernels_time(
    tmp_path: Path, layout: str, name: str, damaged: str, reason: str
) -> None:
    events = [*GOOD[:2], kernel("NAME", 20, 10, correlation=3), *GOOD[3:]]
    window = one(tmp_path, text(events, layout).replace(name, damaged))
    assert figures(window) == GOOD_NS
    assert window.counts.repaired == {reason: 1}
    assert (window.counts.dropped, window.counts.read) == ({}, 4)
    assert window.is_complete


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_name_that_cannot_be_mended_costs_its_kernel(tmp_path: Path, layout: str) -> None:
    events = [*GOOD[:2], kernel("BAD", 21, 3), *GOOD[2:]]
    window = one(tmp_path, text(events, layout).replace('"BAD"', "oops"))
    assert figures(window) == GOOD_NS
    assert window.counts.dropped == {DAMAGED: 1}
    assert window.counts.read == 5


def test_times_that_are_no_numbers_are_dropped_for_that(tmp_path: Path) -> None:
    events = [*GOOD, kernel("a", 111, 3), kernel("b", 5, 222)]
    window = one(tmp_path, text(events).replace("111", "NaN").replace("222", "Infinity"))
    assert figures(window) == GOOD_NS
    assert window.counts.dropped == {"no time": 1, "no duration": 1}
    assert window.counts.repaired == {NOT_FINITE: 2}


def whole_before(content: str, cut: int) -> int:
    """How many of GOOD's events end before a place in their text."""
    ends, at = [], content.index("[", content.index("traceEvents")) + 1
    for _ in GOOD:
        at = json.JSONDecoder().raw_decode(content, content.index("{", at))[1]
        ends.append(at)
    return sum(end <= cut for end in ends)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_file_cut_anywhere_keeps_everything_up_to_the_cut(tmp_path: Path, layout: str) -> None:
    content = text(GOOD, layout)
    first = content.index("[", content.index("traceEvents")) + 1
    for cut in range(1, len(content)):
        kept = whole_before(content, cut)
        if cut < first:
            with pytest.raises(TraceError):
                one(tmp_path, content[:cut])
            continue
        window = one(tmp_path, content[:cut])
        assert window.counts.read == kept
        reference = one(tmp_path, text(GOOD[:kept]), "reference.json")
        assert figures(window) == figures(reference)
        told = set(window.counts.dropped)
        assert told == ({METADATA} if window.is_complete and told else set() if window.is_complete else {CUT_SHORT})


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8, 0.99])
@pytest.mark.parametrize("level", [0, 6])
def test_a_packed_file_cut_anywhere_keeps_what_can_be_unpacked(tmp_path: Path, share: float, level: int) -> None:
    events = [kernel(f"kernel {n % 7}", n * 10, 5, correlation=n, blob=random.Random(n).random()) for n in range(500)]
    packed = gzip.compress(text(events).encode(), level)
    packed = packed[: int(len(packed) * share)]
    there = zlib.decompressobj(wbits=31).decompress(packed).decode("utf-8", "replace")
    window = one(tmp_path, packed, "t.json.gz")
    assert window.counts.device == max(0, there.count('"ph"') - 1)
    assert figures(window).compute_ns == 5_000 * window.counts.device
    assert not window.is_complete
    assert window.counts.dropped == {CUT_SHORT: 1}


def test_a_packed_file_with_damage_inside_keeps_what_comes_before(tmp_path: Path) -> None:
    events = [kernel("k", n * 10, 5, correlation=n, blob=random.Random(n).random()) for n in range(3000)]
    packed = bytearray(gzip.compress(text(events).encode()))
    packed[len(packed) // 2 : len(packed) // 2 + 50] = b"\xff" * 50
    window = one(tmp_path, bytes(packed), "t.json.gz")
    assert not window.is_complete
    assert sum(window.counts.dropped.values()) >= 1


def ranks(layout: str, *, devices: tuple[int, int] = (0, 1), pids: tuple[int, int] = (100, 200)) -> tuple[str, str]:
    def trace(rank: int) -> str:
        events = []
        for number in range(40):
            launch = span("cudaLaunchKernel", number * 10, 2, cat="cuda_runtime", correlation=number + 1)
            work = kernel(f"gemm_{rank}", number * 10 + 3, 5, device=devices[rank], correlation=number + 1)
            events += [launch | {"pid": pids[rank]}, work | {"pid": devices[rank]}]
        properties = [{"id": 0, "name": "A100"}, {"id": 1, "name": "A100"}]
        return text(events, layout, distributedInfo={"rank": rank}, deviceProperties=properties, traceName="x")

    return trace(0), trace(1)


def by_turns(first: str, second: str, size: int) -> str:
    pieces = [[one[at : at + size] for at in range(0, len(one), size)] for one in (first, second)]
    return "".join(piece for pair in itertools.zip_longest(*pieces, fillvalue="") for piece in pair)


def over_each_other(first: str, second: str, size: int) -> str:
    starts = range(0, max(map(len, (first, second))), size)
    return "".join((first, second)[turn % 2][at : at + size] for turn, at in enumerate(starts))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("size", [100, 512, 4096])
@pytest.mark.parametrize("mix", [by_turns, over_each_other])
def test_two_ranks_in_one_file_are_nobodys_numbers(tmp_path: Path, layout: str, size: int, mix: Any) -> None:
    for devices in ((0, 1), (0, 0)):
        window = one(tmp_path, mix(*ranks(layout, devices=devices), size))
        assert window.device_kind == "none"
        why = dict(window.cannot_say)["breakdown"]
        assert "several ranks wrote to one path" in why or "2 processes (" in why
        assert len(window.spans) > 0


@pytest.mark.parametrize("separator", ["", "\n"])
def test_two_files_one_after_the_other_are_nobodys_numbers(tmp_path: Path, separator: str) -> None:
    window = one(tmp_path, separator.join(ranks("one line")))
    assert window.device_kind == "none"
    assert window.counts.dropped == {"another trace begins inside this one": 1}


def test_lines_of_two_ranks_in_turn_are_nobodys_numbers(tmp_path: Path) -> None:
    lines = [trace.splitlines(keepends=True) for trace in ranks("pretty")]
    window = one(tmp_path, "".join(line for pair in zip(*lines, strict=True) for line in pair))
    assert window.device_kind == "none"
    assert "breakdown" in dict(window.cannot_say)


def test_one_process_on_two_devices_is_one_rank(tmp_path: Path) -> None:
    window = one(tmp_path, ranks("one line")[0].replace('"device": 0', '"device": 1', 20))
    assert window.device_kind == "gpu"
    assert window.counts.device == 40


def test_one_damaged_process_id_is_no_second_rank(tmp_path: Path) -> None:
    content = ranks("one line")[0].replace('"pid": 100', '"pid": 900', 1).replace('"gemm_0"', "gemm_0", 1)
    window = one(tmp_path, content)
    assert window.device_kind == "gpu"
    assert window.counts.dropped == {DAMAGED: 1}
    assert figures(window).compute_ns == 39 * 5_000


def test_two_ranks_merged_into_one_whole_file_are_nobodys_numbers(tmp_path: Path) -> None:
    first, second = (json.loads(trace) for trace in ranks("one line"))
    first["traceEvents"] += second["traceEvents"]
    window = one(tmp_path, json.dumps(first))
    assert window.device_kind == "none"
    assert "2 processes (100 and 200)" in dict(window.cannot_say)["breakdown"]


def test_the_cpu_rule_survives_damage_as_well(tmp_path: Path) -> None:
    events = [
        span("aten::mm", 0, 100), span("gloo:all_reduce", 50, 100, cat="user_annotation", tid=8),
        span("aten::BAD", 0, 500), span("aten::add", 0, -5),
    ]  # fmt: skip
    window = one(tmp_path, text(events).replace('"aten::BAD"', "bad"))
    assert window.device_kind == "cpu"
    assert (figures(window).compute_ns, figures(window).hidden_ns) == (100_000, 50_000)
    assert window.counts.dropped == {DAMAGED: 1, "negative duration": 1}


def test_a_file_that_is_packed_twice_or_named_wrongly_is_read_by_what_it_is(tmp_path: Path) -> None:
    packed = gzip.compress(text(GOOD).encode())
    assert figures(one(tmp_path, packed, "t.json")) == GOOD_NS
    assert figures(one(tmp_path, text(GOOD), "t.json.gz")) == GOOD_NS
    plain = write_kineto(tmp_path / "plain.json", GOOD)
    assert figures(read(plain)[0]) == GOOD_NS


PACKED = gzip.compress(text(GOOD).encode(), mtime=0)
BEHIND = {
    "bytes that are no gzip": (PACKED + b"garbage" * 9, AFTER_GZIP),
    "a wrong checksum": (PACKED[:-8] + b"abcd" + PACKED[-4:], BAD_TRAILER),
    "a wrong length": (PACKED[:-4] + b"abcd", BAD_TRAILER),
    "a second member that is none": (PACKED + b"\x1f\x8bgarbage", BAD_TRAILER),
} | {f"a trailer without {lost} bytes": (PACKED[:-lost], BAD_TRAILER) for lost in range(1, 9)}


@pytest.mark.parametrize("kind", BEHIND)
def test_damage_behind_a_whole_text_is_told_and_costs_nothing(tmp_path: Path, kind: str) -> None:
    packed, reason = BEHIND[kind]
    window = one(tmp_path, packed, "t.json.gz")
    assert window.is_complete
    assert window.counts.dropped == {reason: 1}
    assert figures(window) == GOOD_NS


def test_text_behind_a_whole_trace_is_counted(tmp_path: Path) -> None:
    window = one(tmp_path, text(GOOD) + "garbage")
    assert window.is_complete
    assert window.counts.dropped == {AFTER_END: 1}
    assert figures(window) == GOOD_NS


def test_a_file_cut_before_its_device_events_says_so(tmp_path: Path) -> None:
    host = [span("aten::mm", at, 1, cat="cpu_op") for at in range(20)]
    whole = text([*host, *GOOD])
    window = one(tmp_path, whole[: whole.index("aten::mm", len(whole) // 3) + 20])
    assert window.cannot_say[0][0] == "breakdown"
    assert "cut before any device event" in window.cannot_say[0][1]
    assert "only host activity" not in window.cannot_say[0][1]


def test_a_rank_that_is_written_as_text_is_one(tmp_path: Path) -> None:
    told = {"rank": "3", "world_size": "4"}
    window = one(tmp_path, text(GOOD, distributedInfo=told))
    assert (window.rank, window.rank_from, window.world) == (3, "trace", 4)
    assert one(tmp_path, text(GOOD, distributedInfo={"rank": "first"})).rank_from != "trace"


@pytest.mark.parametrize(
    ("factor", "shift", "why"),
    [(1000, 0, "are these nanoseconds?"), (1, 10**17, "time out of range"), (-(10**4), 0, "negative time")],
)
def test_times_that_cannot_be_are_told_from_none(tmp_path: Path, factor: int, shift: int, why: str) -> None:
    moved = [event | {"ts": (event["ts"] + UNIX_NS // 1000) * factor + shift} for event in GOOD]
    window = one(tmp_path, json.dumps({"traceEvents": moved}))
    assert [reason for reason in window.counts.dropped if why in reason]
    assert window.counts.dropped.keys().isdisjoint({"no time", "no duration"})
    assert why in window.cannot_say[0][1]


@pytest.mark.parametrize("share", [0.4, 0.7, 1])
def test_every_entry_of_a_trace_that_is_written_twice_into_one_file_is_accounted_for(
    tmp_path: Path, share: float
) -> None:
    whole = text([kernel(f"k{at}", at * 10, 5) for at in range(400)])
    first = whole[: int(len(whole) * share)]
    window = one(tmp_path, first + whole)
    is_torn = share < 1
    assert window.counts.read + is_torn == first.count('"ph"') + 400
    assert window.counts.dropped[SECOND_HEAD] == 1
    assert "another trace begins" in window.cannot_say[0][1]
