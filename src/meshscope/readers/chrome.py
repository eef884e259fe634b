"""The Chrome trace container, read in pieces: the entries of ``traceEvents`` in batches, and what stands around them.

Batches are cut where one entry ends and the next begins. A cut inside a string or a nested list leaves text that
no decoder accepts, so a batch that decodes was cut rightly; one that does not is narrowed down, and the few
entries around the trouble (or around the end of the list) are taken one by one. Damage costs the entry it is in.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import msgspec

from meshscope.errors import TraceError

Entry = TypeVar("Entry")

CUT_SHORT = "the file ends inside an event"
DAMAGED = "not JSON"
NOT_AN_EVENT = "not an event"
BAD_TEXT = "bad escape, control character or UTF-8 in a string"

_KEY = re.compile(rb'"traceEvents"\s*:\s*\[')
_SPACE = re.compile(r"[\s,]*")
_BOUNDARY = re.compile(rb"\}\s*,\s*\{")
_NEXT_EVENT = re.compile(rb'\}\s*,\s*\{\s*"(ph|name|cat|args|ts|dur|pid|tid|id|s|bp)"\s*:')
_LIST_END = re.compile(rb'\}\s*\]\s*(,\s*"|\}|\Z)')
_BAD_ESCAPE = re.compile(r'\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})')
_NARROW_BYTES = 1 << 16
_HEAD_LIMIT_BYTES = 1 << 28
_LONGEST_ENTRY_BYTES = 1 << 26
_LENIENT: dict[str, Any] = {"strict": False, "parse_float": str, "parse_constant": str}
_SCAN = json.JSONDecoder(**_LENIENT)


@dataclass
class Document(Generic[Entry]):
    """``decode`` turns the text of a JSON list into entries or raises ``msgspec.MsgspecError``.

    After :meth:`batches` is exhausted ``metadata`` holds the top-level keys but ``traceEvents``, ``dropped`` and
    ``repaired`` count damage by reason, and ``is_complete`` tells whether the list's own end was seen.
    """

    blocks: Iterator[bytes]
    decode: Callable[[bytes], list[Entry]]
    metadata: dict[str, Any] = field(default_factory=dict)
    dropped: Counter[str] = field(default_factory=Counter)
    repaired: Counter[str] = field(default_factory=Counter)
    is_complete: bool = False
    _rest: bytes = b""

    def batches(self) -> Iterator[list[Entry]]:
        """Raises TraceError when there is no ``traceEvents``."""
        self._rest = self._after_head()
        for block in self.blocks:
            self._rest += block
            if not self.is_complete:
                yield from self._drain(_last_boundary(self._rest), is_all=False)
        if not self.is_complete:
            yield from self._drain(len(self._rest), is_all=True)
        self._take_metadata(b"{" + self._rest.lstrip(b" \t\r\n,"))

    def _after_head(self) -> bytes:
        text = next(self.blocks, b"").removeprefix(b"\xef\xbb\xbf")
        if text.lstrip()[:1] == b"[":
            return text.lstrip()[1:]
        found = _KEY.search(text)
        while found is None and len(text) < _HEAD_LIMIT_BYTES:
            block = next(self.blocks, b"")
            if not block:
                break
            text += block
            found = _KEY.search(text, max(0, len(text) - len(block) - 64))
        if found is None:
            raise _no_events(text)
        self._take_metadata(text[: found.start()] + b'"traceEvents": []}')
        return text[found.end() :]

    def _drain(self, end: int, *, is_all: bool) -> Iterator[list[Entry]]:
        """Entries of the first ``end`` bytes of the rest; an entry that is not whole yet waits unless that is all."""
        text, later = self._rest[:end], self._rest[end:]
        while text and not self.is_complete:
            entries, used = self._batch(text, is_all=is_all)
            yield entries
            text = text[used:]
            if not used:
                break
        self._rest = text + later

    def _batch(self, text: bytes, *, is_all: bool) -> tuple[list[Entry], int]:
        """Entries from the beginning of ``text``, as many as decode at once, and the bytes they took."""
        end = len(text)
        while True:
            try:
                return self.decode(b"[" + text[:end].strip(b" \t\r\n,") + b"]"), end
            except msgspec.MsgspecError:
                end = _last_boundary(text[: end // 2]) if end > _NARROW_BYTES else 0
            if end <= 0:
                return self._one_by_one(text, is_all=is_all)

    def _one_by_one(self, text: bytes, *, is_all: bool) -> tuple[list[Entry], int]:
        view = text.decode("latin-1")  # one character per byte, so positions are the same
        entries: list[Entry] = []
        at = 0
        while at < min(len(text), _NARROW_BYTES):
            at = _SPACE.match(view, at).end()  # type: ignore[union-attr]  # matches the empty text too
            if view[at : at + 1] in ("]", ""):
                self.is_complete = view[at : at + 1] == "]"
                return entries, at + 1
            end = _end_of_entry(text, view, at, is_all=is_all)
            if end is None:
                break
            entries += self._entry(text[at:end])
            at = end
        return entries, at

    def _entry(self, text: bytes) -> list[Entry]:
        try:
            return self.decode(b"[" + text + b"]")
        except msgspec.MsgspecError:
            return self._mended(text.decode("utf-8", "replace"))

    def _mended(self, text: str) -> list[Entry]:
        try:
            value = json.loads(_BAD_ESCAPE.sub(r"\\\\", text), **_LENIENT)
        except ValueError:
            # Nothing but the end of the file leaves an entry without its closing brace.
            self.dropped[DAMAGED if text.rstrip().endswith("}") else CUT_SHORT] += 1
            return []
        try:
            entries = self.decode(msgspec.json.encode([value]))
        except msgspec.MsgspecError:
            self.dropped[NOT_AN_EVENT] += 1
            return []
        self.repaired[BAD_TEXT] += 1
        return entries

    def _take_metadata(self, text: bytes) -> None:
        if not text.strip(b"{} \t\r\n"):
            return
        try:
            found = json.loads(text.decode("utf-8", "replace"), **_LENIENT)
        except ValueError:
            self.dropped["metadata that is not JSON"] += 1
            return
        self.metadata.update((key, value) for key, value in found.items() if key != "traceEvents")


def _end_of_entry(text: bytes, view: str, at: int, *, is_all: bool) -> int | None:
    """Where the entry at ``at`` ends, or where the next begins if it is damaged; None when more text may end it."""
    try:
        return _SCAN.raw_decode(view, at)[1]
    except json.JSONDecodeError as error:
        runs_out = error.pos >= len(text) or error.msg.startswith("Unterminated string")
    if runs_out and not is_all and len(text) - at < _LONGEST_ENTRY_BYTES:
        return None
    following = _NEXT_EVENT.search(text, at)
    if following is None and not runs_out:
        following = _LIST_END.search(text, at)
    return following.start() + 1 if following else len(text)


def _last_boundary(text: bytes) -> int:
    """Just after the last entry that another one follows; 0 when there is none."""
    for size in (1 << 13, 1 << 17, len(text)):
        base = max(0, len(text) - size)
        last = None
        for last in _BOUNDARY.finditer(text, base):  # noqa: B007  # only the last one matters
            pass
        if last is not None:
            return last.start() + 1
    return 0


def _no_events(text: bytes) -> TraceError:
    if b'"rocprofiler-sdk-tool"' in text[:65536]:
        return TraceError(
            "This is rocprofv3 output, not a Chrome trace.",
            hint="Ask rocprofv3 for --output-format pftrace, or trace with torch.profiler.",
        )
    return TraceError(
        "This JSON has no traceEvents, so it is no Chrome trace.",
        hint="Give the file that torch.profiler's export_chrome_trace wrote.",
    )
