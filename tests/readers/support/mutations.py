"""Small traces of every kind, and ways to damage them: case ``n`` of a seed is always the same bytes."""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from made_traces import UNIX_NS, Event, Line, XSpace, kernel, memory, span, step, thread_name

from meshscope.readers.xplane_messages import message


class Case(NamedTuple):
    """One file to read."""

    name: str
    content: bytes


HOSTILE = (
    "0", "-1", "1", "NaN", "-Infinity", "1e999", "-1E-999", "0.0005", "1e400000", "null", "true", "[]", "{}", '""',
    '"x"', "9223372036854775807", "9223372036854775808", "-9223372036854775808", "18446744073709551616", "9" * 5000,
    "4611686018427387904", "1790000000000000.001", "999999999999999.999", "86400000000", "31536000000000", "7", "20",
    '"\\ud800"', "[[[[1]]]]", '{"ph": "X"}', "[9223372036854775807]",
)  # fmt: skip
TORN = (b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"},{", b'"ph"', b"\0", b"\xff\xfe", b"\x1f\x8b",
        b"\xef\xbb\xbf", b'"traceEvents": [', b'{"ph": "X", ', b"]}", b"\n", b"NaN",
        b'"args": {', b"\\u12", b"[" * 2000)  # fmt: skip
WORDS = ("kernel", "gpu_memcpy", "cpu_op", "gloo:all_reduce", "aten::mm", "ncclDevKernel_AllReduce", "ProfilerStep#3",
         "X", "B", "E", "M", "i", "[memory]", "thread_name", "stream", "device", "correlation", "dur", "ts",
         "Collective name", "Input Dims", "", "c10d::allreduce_", "while.1", "é\u202e")  # fmt: skip
NUMBERS = (0, 1, -1, 2, 2**31, 2**62, 2**63 - 1, -(2**63), 10**12, 86_400 * 10**12, 3 * 10**19)

_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")
_STRING = re.compile(rb'"[^"\\]*"')


def _gpu(rank: int = 0) -> list[Event]:
    events = [step(1, 0, 100), step(2, 100, 100), thread_name(1, "main"), memory(5, 1000, device_type=1)]
    for number in range(6):
        at = number * 30
        events += [
            span("aten::mm", at, 6),
            span("cudaLaunchKernel", at + 1, 2, cat="cuda_runtime", correlation=number + 1),
            kernel(f"gemm_{rank}", at + 5, 12, correlation=number + 1),
            kernel("ncclDevKernel_AllReduce", at + 10, 14, stream=20, correlation=number + 40,
                   **{"Collective name": "allreduce", "In msg nelems": 8, "dtype": "Float", "Seq": number}),
        ]  # fmt: skip
    return [*events, span("Memcpy DtoH", 190, 3, cat="gpu_memcpy", stream=9, device=rank)]


def _cpu() -> list[Event]:
    shape: dict[str, Any] = {"Input Dims": [[8]], "Input type": ["float"]}
    events = [thread_name(8, "pt_gloo_runloop"), step(1, 0, 200), memory(3, 500)]
    for number in range(5):
        at = number * 40
        events += [
            span("aten::sum", at, 30), span("_c10d_functional::wait_tensor", at + 5, 10),
            span("c10d::allreduce_", at + 2, 1, **shape),
            span("gloo:all_reduce", at + 8, 25, cat="user_annotation", tid=8, **shape),
        ]  # fmt: skip
    return events


def _halves() -> list[Event]:
    return [
        {"ph": ph, "name": f"k{at}", "cat": "Kernel", "ts": at * 7 + (ph == "E") * 5, "pid": 0, "tid": 2**63 + at % 2}
        for at in range(8)
        for ph in "BE"
    ]


@cache
def texts() -> tuple[bytes, ...]:
    """JSON traces, undamaged."""

    def head(rank: int) -> dict[str, Any]:
        return {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "A"}, {"id": 1}],
                "distributedInfo": {"rank": rank, "world_size": 2}, "baseTimeNanoseconds": UNIX_NS}  # fmt: skip

    traces: tuple[Any, ...] = (
        head(0) | {"traceEvents": _gpu(), "traceName": "x"},
        {"traceEvents": _gpu(1)} | head(1),
        head(0) | {"traceEvents": _cpu()},
        {"traceEvents": [kernel("gemm", at * 20, 5000 if at == 2 else 9) for at in range(12)]},
        _halves(),
        _gpu(),
    )
    layouts: tuple[dict[str, Any], ...] = ({"separators": (",", ":")}, {}, {"indent": 1})
    return tuple(json.dumps(trace, **layout).encode() for trace in traces for layout in layouts)


@cache
def spaces() -> tuple[bytes, ...]:
    """xplane files, undamaged."""
    us = 1_000_000

    def tpu(at: int) -> Line:
        names = (
            "%dot = f32[]",
            "%all-reduce-start.1 = f32",
            "%add = f32[]",
            "%all-reduce-done.1 = f32",
            "%while.1 = f32",
        )
        return "XLA Ops", [(name, (at + 9 * n) * us, 12 * us, {"hlo_op": name}) for n, name in enumerate(names)]

    def cpu(thread: int) -> Line:
        names = ("dot.1", "all-reduce.2", "call.3", "add")
        stats = [{"hlo_op": name, "device_ordinal": thread % 2, "run_id": 1} for name in names]
        rows = [(name, n * 9 * us, 8 * us, stat) for n, (name, stat) in enumerate(zip(names, stats, strict=True))]
        wait = ("Rendezvous", 10 * us, 3 * us, {"name": "global_devices=[0, 1]"})
        return f"tf_XLAEigen/{thread}", [*rows, wait]

    steps: Line = ("Steps", [("1", 0, 40 * us, {}), ("2", 40 * us, 40 * us, {})])
    marks: Line = ("python", [("train", 0, 40 * us, {"step_num": 1})])
    streams: list[Line] = [
        ("Stream #17(Kernel)", [("gemm", 0, 9 * us, {}), ("ncclDevKernel_AllReduce", 5 * us, 9 * us, {})]),
        ("Stream #2", [("MemcpyD2H", 20 * us, us, {"hlo_op": "copy"})]),
    ]
    tpus = XSpace().plane("/device:TPU:0", [tpu(0), steps]).plane("/device:TPU:1", [tpu(3), steps])
    gpu = XSpace().plane("/device:GPU:0", streams).plane("/host:CPU", [marks])
    host = XSpace().plane("/host:CPU", [marks, cpu(0), cpu(1), cpu(2)])
    return tuple(space.started(UNIX_NS).content() for space in (tpus, gpu, host))


def _flip(rnd: random.Random, text: bytearray) -> None:
    for _ in range(rnd.choice((1, 1, 2, 8, 40))):
        text[rnd.randrange(len(text))] ^= 1 << rnd.randrange(8)


def _cut(rnd: random.Random, text: bytearray) -> None:
    del text[rnd.randrange(len(text)) :]


def _without_slice(rnd: random.Random, text: bytearray) -> None:
    at = rnd.randrange(len(text))
    del text[at : at + rnd.choice((1, 3, 20, 200))]


def _doubled_slice(rnd: random.Random, text: bytearray) -> None:
    at = rnd.randrange(len(text))
    piece = text[at : at + rnd.choice((1, 30, 300))]
    to = rnd.randrange(len(text))
    text[to:to] = piece


def _swapped_slices(rnd: random.Random, text: bytearray) -> None:
    size = rnd.choice((1, 10, 100))
    a, b = rnd.randrange(len(text)), rnd.randrange(len(text))
    text[a : a + size], text[b : b + size] = text[b : b + size], text[a : a + size]


def _torn(rnd: random.Random, text: bytearray) -> None:
    at = rnd.randrange(len(text))
    text[at : at + rnd.choice((0, 0, 1, 5))] = rnd.choice(TORN)


def _spliced(rnd: random.Random, text: bytearray) -> None:
    other = rnd.choice(texts() + spaces())
    text[rnd.randrange(len(text)) :] = other[rnd.randrange(len(other)) :]


def _interleaved(rnd: random.Random, text: bytearray) -> None:
    other, size = rnd.choice(texts()), rnd.choice((7, 64, 512))
    pieces = [source[at : at + size] for at in range(0, max(len(text), len(other)), size) for source in (text, other)]
    text[:] = b"".join(pieces)


def _hostile_number(rnd: random.Random, text: bytearray) -> None:
    _replaced(rnd, text, _NUMBER, lambda: rnd.choice(HOSTILE).encode())


def _hostile_string(rnd: random.Random, text: bytearray) -> None:
    _replaced(rnd, text, _STRING, lambda: json.dumps(rnd.choice(WORDS), ensure_ascii=False).encode())


def _untyped_string(rnd: random.Random, text: bytearray) -> None:
    _replaced(rnd, text, _STRING, lambda: rnd.choice(HOSTILE).encode())


def _replaced(rnd: random.Random, text: bytearray, what: re.Pattern[bytes], by: Callable[[], bytes]) -> None:
    for _ in range(rnd.choice((1, 1, 2, 6))):
        found = [match.span() for match in what.finditer(text)]
        if found:
            start, end = rnd.choice(found)
            text[start:end] = by()


ANY = (_flip, _cut, _without_slice, _doubled_slice, _swapped_slices, _torn, _spliced)
JSON = (*ANY, _interleaved, _hostile_number, _hostile_number, _hostile_number, _hostile_string, _untyped_string)


def _hostile_messages(rnd: random.Random, content: bytes) -> bytes:
    """The file with some of its numbers and names swapped for others, still protobuf."""
    space = message("Plane")()
    parts = []
    for part in _planes(content):
        space = message("Plane").FromString(part)
        for _ in range(rnd.choice((0, 1, 3))):
            _hostile_plane(rnd, space)
        parts.append(space.SerializeToString())
    return b"".join(b"\x0a" + _varint(len(part)) + part for part in parts)


def _hostile_plane(rnd: random.Random, plane: Any) -> None:
    lines = [line for line in plane.lines if len(line.events)]
    if not lines or rnd.random() < 0.15:
        plane.name = rnd.choice((b"/device:GPU:0", b"/host:CPU", b"/device:TPU:99999999999", b"", b"\xff"))
        return
    line = rnd.choice(lines)
    event = rnd.choice(line.events)
    number = rnd.choice([n for n in NUMBERS if -(2**63) <= n < 2**63])
    which = rnd.randrange(6)
    if which == 0:
        line.timestamp_ns = number
    elif which == 1:
        line.name = rnd.choice((b"XLA Ops", b"Steps", b"Stream #1", b"Async XLA Ops", b"\xff"))
    elif which == 5 and len(event.stats):
        rnd.choice(event.stats).int64_value = number
    else:
        setattr(event, rnd.choice(("metadata_id", "offset_ps", "duration_ps")), number)


def _planes(content: bytes) -> list[bytes]:
    parts, at = [], 0
    while at < len(content):
        size, shift, at = 0, 0, at + 1
        while True:
            size |= (content[at] & 127) << shift
            shift, at = shift + 7, at + 1
            if content[at - 1] < 128:
                break
        parts.append(content[at : at + size])
        at += size
    return parts


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def case(seed: int, number: int) -> Case:
    """Case ``number`` of a run: one to three kinds of damage to one trace, packed now and then."""
    rnd = random.Random(f"{seed}:{number}")
    is_json = rnd.random() < 0.7
    content = rnd.choice(texts() if is_json else spaces())
    if not is_json and rnd.random() < 0.6:
        content = _hostile_messages(rnd, content)
    text = bytearray(content)
    for _ in range(rnd.choice((1, 1, 2, 3)) if is_json else rnd.choice((0, 1, 2))):
        if text:
            rnd.choice(JSON if is_json else ANY)(rnd, text)
    name = "trace.json" if is_json else "host.xplane.pb"
    if rnd.random() < 0.2:
        packed = bytearray(gzip.compress(bytes(text), 1, mtime=0))
        if rnd.random() < 0.5:
            rnd.choice(ANY)(rnd, packed)
        return Case(name + ".gz", bytes(packed))
    return Case(name, bytes(text))
