"""The content of an xplane file, read here and there: what names an event lies behind the event.

It stays where it is: a file is read in pieces, and what was packed is unpacked onto the disk first. A file that is
mapped into memory instead would end the process where somebody shortens it meanwhile.
"""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Protocol

from meshscope.errors import TraceError
from meshscope.readers.meter import advance
from meshscope.readers.stream import Source

HEAD_BYTES = 20
"""A key and a number, as long as they can be."""

_BLOCK_BYTES = 1 << 16
_SPOOLED_BYTES = 1 << 24  # as much of what was packed may stay in memory


class Bytes(Protocol):
    """Bytes of which a few are asked for at a time."""

    def head(self, at: int, end: int, /) -> bytes:
        """Those from ``at`` on, HEAD_BYTES at most and none from ``end`` on."""


class Held:
    """Bytes in memory."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def head(self, at: int, end: int, /) -> bytes:
        return self._content[at : min(at + HEAD_BYTES, end)]


class Content:
    """A file as large as it was when it was opened."""

    def __init__(self, file: IO[bytes], name: str = "", *, is_counted: bool = False) -> None:
        self._file, self._name, self._is_counted = file, name, is_counted
        self._size = file.seek(0, os.SEEK_END)
        self._block, self._base = b"", 0

    @classmethod
    def of(cls, content: bytes) -> Content:
        return cls(io.BytesIO(content))

    def __len__(self) -> int:
        return self._size

    def head(self, at: int, end: int, /) -> bytes:
        place = at - self._base
        if place < 0 or place + HEAD_BYTES > len(self._block):
            self._block, self._base, place = self.read(at, at + _BLOCK_BYTES), at, 0
        return self._block[place : place + min(HEAD_BYTES, end - at)]

    def read(self, first: int, last: int) -> bytes:
        """The bytes from ``first`` up to ``last`` or the end. Raises TraceError when they are there no more."""
        place = first - self._base
        if place >= 0 and last - self._base <= len(self._block):
            return self._block[place : last - self._base]
        last = min(last, self._size)
        try:
            self._file.seek(first)
            found = self._file.read(last - first)
        except OSError as error:
            raise TraceError(
                f"{self._name} cannot be read: {error.strerror or error}.", hint="Check its path and permissions."
            ) from error
        if len(found) < last - first:
            raise TraceError(
                f"{self._name} became shorter while it was read.", hint="Open it again once nobody writes it."
            )
        return found

    def passed(self, size_bytes: int, events: int = 0) -> None:
        """Tells who waits that so much has been gone through, where unpacking has not told it."""
        advance(read_bytes=size_bytes if self._is_counted else 0, events=events)


@contextmanager
def content_of(source: Source) -> Iterator[Content]:
    """The content of a trace file. Raises TraceError when it cannot be read."""
    if not source.is_packed:
        with source.open() as file:
            yield Content(file, source.path.name, is_counted=True)
        return
    with tempfile.SpooledTemporaryFile(max_size=_SPOOLED_BYTES) as unpacked:
        for block in source.blocks():
            _keep(unpacked, block, source.path.name)
        yield Content(unpacked, source.path.name)


def _keep(file: tempfile.SpooledTemporaryFile[bytes], block: bytes | memoryview, name: str) -> None:
    try:
        file.write(block)
    except OSError as error:
        raise TraceError(
            f"{name} cannot be unpacked into {tempfile.gettempdir()}: {error.strerror or error}.",
            hint="Make room there, or name another folder: TMPDIR=… meshscope …",
        ) from error
