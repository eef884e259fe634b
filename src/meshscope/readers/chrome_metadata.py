"""What stands around the events of a Chrome trace: the keys before and after them, as far as they are whole."""

from __future__ import annotations

import json
import re
from typing import Any

from meshscope.errors import TraceError
from meshscope.readers.chrome_mending import lenient_int

SCAN = json.JSONDecoder(strict=False, parse_float=str, parse_int=lenient_int, parse_constant=str)
"""Reads what exporters write although JSON forbids it; numbers with a fraction stay text."""

_PAIR = re.compile(r'"((?:[^"\\]|\\.){0,200})"\s*:\s*')
_AFTER = re.compile(r"\s*(?:[,}]|\Z)")
_TOP_LEVEL = (
    b"schemaVersion", b"traceEvents", b"deviceProperties", b"distributedInfo", b"baseTimeNanoseconds", b"traceName",
    b"displayTimeUnit", b"trace_id", b"host_name", b"record_shapes", b"simulated",
)  # fmt: skip
_HEAD_KEY = re.compile(rb'"(' + b"|".join(_TOP_LEVEL) + rb')"\s*:')


def metadata(text: bytes) -> tuple[dict[str, Any], int]:
    """The pairs of ``"key": value, …`` (the object's own braces may be missing) and how many have no whole value."""
    said = text.decode("utf-8", "replace")
    found: dict[str, Any] = {}
    lost = at = 0
    while (pair := _PAIR.search(said, at)) is not None:
        try:
            value, at = SCAN.raw_decode(said, pair.end())
        except (ValueError, RecursionError):
            lost, at = lost + 1, pair.end()
            continue
        is_open = at == len(said) and not isinstance(value, dict | list)  # a number may go on where the file ends
        if is_open or not _AFTER.match(said, at):
            lost += 1
        else:
            found[pair[1]] = value
    return found, lost


def names_top_level(text: bytes) -> bool:
    """Whether a key stands here that no event has: the head of a trace begins among another one's events."""
    return _HEAD_KEY.search(text) is not None


def repeats_top_level(text: bytes) -> bool:
    """Whether the head of a trace has one of its keys twice."""
    keys = _HEAD_KEY.findall(text)
    return len(set(keys)) < len(keys)


def no_events(text: bytes) -> TraceError:
    """Why a JSON object without a list of events is refused."""
    if b'"rocprofiler-sdk-tool"' in text[:65536]:
        return TraceError(
            "This is rocprofv3 output, not a Chrome trace.",
            hint="Ask rocprofv3 for --output-format pftrace, or trace with torch.profiler.",
        )
    if not text.rstrip(b" \t\r\n\0").endswith((b"}", b"]")):
        return TraceError(
            "The file ends before its first event.",
            hint="The program was ended while it wrote, or a copy broke off: copy the file again, or trace again.",
        )
    return TraceError(
        "This JSON has no traceEvents, so it is no Chrome trace.",
        hint="Give the file that torch.profiler's export_chrome_trace wrote.",
    )
