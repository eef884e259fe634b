"""A file as blocks of bytes, unpacked when it is gzip (told by its first bytes, not by its name)."""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import IO, Any

from meshscope.errors import TraceError
from meshscope.readers.meter import advance

_GZIP = b"\x1f\x8b"
BLOCK_BYTES = 1 << 22
_STEP_BYTES = 1 << 14


@dataclass
class Source:
    """One file being read. ``cut_short`` says why its content ended before its end; "" when it did not."""

    path: Path
    block_bytes: int = BLOCK_BYTES
    cut_short: str = field(default="", init=False)

    def blocks(self) -> Iterator[bytes]:
        """The content from its beginning. Raises TraceError when the file cannot be read."""
        try:
            with self.path.open("rb") as file:
                is_packed = file.read(len(_GZIP)) == _GZIP
                file.seek(0)
                yield from self._unpacked(file) if is_packed else iter(lambda: _read(file, self.block_bytes), b"")
        except OSError as error:
            raise TraceError(
                f"{self.path.name} cannot be read: {error.strerror or error}.", hint="Check its path and permissions."
            ) from error

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
    return next(iter(Source(path, max(size_bytes, 64)).blocks()), b"")[:size_bytes]


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
    with suppress(zlib.error):
        while packed and not unpacker.eof:
            yield unpacker.decompress(packed, 1)
            packed = unpacker.unconsumed_tail


@cache
def _unzip() -> tuple[Callable[[], Any], tuple[type[Exception], ...]]:
    """How to start unpacking a gzip member, and what damage raises: isal when installed, else zlib."""
    try:
        isal = importlib.import_module("isal.isal_zlib")
    except ImportError:
        return lambda: zlib.decompressobj(wbits=31), (zlib.error,)
    return lambda: isal.decompressobj(wbits=31), (isal.error, zlib.error)
