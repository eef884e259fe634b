"""A file as blocks of bytes, unpacked when it is gzip (told by its first bytes, not by its name)."""

from __future__ import annotations

import importlib
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from io import BufferedReader
from pathlib import Path
from typing import IO, Any

from meshscope.errors import TraceError
from meshscope.readers.ahead import ahead
from meshscope.readers.meter import advance

Room = Callable[[int], memoryview]
"""Where so many bytes may be written to until it is called again."""

_GZIP = b"\x1f\x8b"
BLOCK_BYTES = 1 << 22
_FIRST_BYTES = 1 << 16
AFTER_GZIP = "bytes after the end of the gzip data"
BAD_TRAILER = "damaged gzip trailer"
_STEP_BYTES = 1 << 14
_MOST_PACKED = 1100  # deflate makes nothing smaller than by this factor


@dataclass
class Source:
    """One file being read.

    ``cut_short`` says why its content ended before its end, and ``after`` what followed that end; "" when nothing did.
    """

    path: Path
    block_bytes: int = BLOCK_BYTES
    cut_short: str = field(default="", init=False)
    after: str = field(default="", init=False)

    @property
    def content_bytes(self) -> int:
        """About how large the content is; of a gzip file what its last member says. 0 when it cannot be read."""
        try:
            with self.path.open("rb") as file:
                is_packed = file.read(len(_GZIP)) == _GZIP
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - 4))
                said = int.from_bytes(file.read(4), "little") if is_packed else 0
        except OSError:
            return 0
        # A member says its size modulo 2³², and the last of several its own alone; text is packed at least 4 to 1.
        return max(said if said < _MOST_PACKED * size else 0, 4 * size) if is_packed else size

    @property
    def is_packed(self) -> bool:
        """Whether the file is gzip. Raises TraceError when it cannot be read."""
        with self.open() as file:
            return file.read(len(_GZIP)) == _GZIP

    @contextmanager
    def open(self) -> Iterator[BufferedReader]:
        try:
            with self.path.open("rb") as file:
                yield file
        except OSError as error:
            raise TraceError(
                f"{self.path.name} cannot be read: {error.strerror or error}.", hint="Check its path and permissions."
            ) from error

    def blocks(self, room: Room | None = None) -> Iterator[bytes | memoryview]:
        """The content from its beginning. Raises TraceError when the file cannot be read.

        Where there is ``room``, what need not be unpacked is read into it, but for the first block, and the rest is
        unpacked ahead.
        """
        with self.open() as file:
            is_packed = file.read(len(_GZIP)) == _GZIP
            file.seek(0)
            if not is_packed:
                yield from self._plain(file, room)
            else:
                unpacked = self._unpacked(file)
                yield from unpacked if room is None else ahead(unpacked)

    def _plain(self, file: BufferedReader, room: Room | None) -> Iterator[bytes | memoryview]:
        # What is read before there is room is copied more than once.
        while block := _read(file, self.block_bytes if room is None else min(self.block_bytes, _FIRST_BYTES)):
            yield block
            if room is not None:
                break
        while room is not None and (size := file.readinto(place := room(self.block_bytes))):
            advance(read_bytes=size)
            yield place[:size]

    def _unpacked(self, file: IO[bytes]) -> Iterator[bytes]:
        start, damage = _unzip()
        unpacker: Any = None
        packed = b""
        given = 0
        try:
            while packed := packed or _read(file, self.block_bytes // 8):
                unpacker = unpacker or start()
                block = unpacker.decompress(packed, self.block_bytes)
                packed = unpacker.unused_data.lstrip(b"\0") if unpacker.eof else unpacker.unconsumed_tail
                unpacker = None if unpacker.eof else unpacker
                given += len(block)
                yield block
                if unpacker is None and not _GZIP.startswith(packed[: len(_GZIP)]):
                    self.after = AFTER_GZIP
                    return
            if unpacker is not None:
                yield unpacker.flush()
                self.cut_short = "" if unpacker.eof else "the gzip data end early"
        except damage as error:
            self.cut_short = f"the gzip data are damaged ({error})"
            file.seek(0)
            yield from _up_to_damage(file, given)


def _read(file: IO[bytes], size_bytes: int) -> bytes:
    block = file.read(size_bytes)
    advance(read_bytes=len(block))
    return block


def head(path: Path, size_bytes: int = 4096) -> bytes:
    """The first bytes of a file's content, unpacked. Raises TraceError when the file cannot be read."""
    return bytes(next(iter(Source(path, max(size_bytes, 64)).blocks()), b""))[:size_bytes]


def _up_to_damage(file: IO[bytes], skip: int) -> Iterator[bytes]:
    """What a damaged gzip file holds beyond ``skip`` bytes of content, up to the damage.

    The call that meets damage gives nothing of its block, so this goes in small steps, from one copy to the next.
    """
    unpacker = zlib.decompressobj(wbits=31)
    while packed := file.read(_STEP_BYTES):
        while packed:
            before = unpacker.copy()
            try:
                block = unpacker.decompress(packed, _STEP_BYTES)
            except zlib.error:
                yield b"".join(_bytewise(before, packed))[skip:]
                return
            yield block[skip:]
            skip = max(0, skip - len(block))
            packed = unpacker.unused_data.lstrip(b"\0") if unpacker.eof else unpacker.unconsumed_tail
            unpacker = zlib.decompressobj(wbits=31) if unpacker.eof else unpacker


def _bytewise(unpacker: Any, packed: bytes) -> Iterator[bytes]:
    """Byte for byte on either side, so that nothing which comes before the damage waits in the unpacker."""
    with suppress(zlib.error):
        for at in range(len(packed)):
            piece = unpacker.decompress(packed[at : at + 1], 1)
            while piece:
                yield piece
                piece = unpacker.decompress(unpacker.unconsumed_tail, 1)
            if unpacker.eof:
                return


@cache
def _unzip() -> tuple[Callable[[], Any], tuple[type[Exception], ...]]:
    """How to start unpacking a gzip member, and what damage raises: isal when installed, else zlib."""
    try:
        isal = importlib.import_module("isal.isal_zlib")
    except ImportError:
        return lambda: zlib.decompressobj(wbits=31), (zlib.error,)
    return lambda: isal.decompressobj(wbits=31), (isal.error, zlib.error)
