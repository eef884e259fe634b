"""Files that hold no spans: one module per format, found by its ``RECORD_READER``.

They are asked before the trace readers, since some of them are JSON too; each looks for what only its own format has.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from meshscope.discovery import discover
from meshscope.errors import TraceError
from meshscope.readers.naming import rank_in_name
from meshscope.readers.stream import Source, head
from meshscope.records import Record

_LARGEST_BYTES = 4 << 30


@dataclass(frozen=True)
class RecordReader:
    """``names`` finds the names worth a look in a folder, ``called`` says them in words; ``sniff`` decides from the
    first 4 kB, unpacked.

    ``read`` gives one Record per rank or device; it raises TraceError when nothing can be read.
    """

    format: str
    names: re.Pattern[str]
    sniff: Callable[[bytes], bool]
    read: Callable[[Path], tuple[Record, ...]]
    called: str


@cache
def record_readers() -> tuple[RecordReader, ...]:
    """Every format's reader."""
    return discover("meshscope.readers", "RECORD_READER", RecordReader)


def record_reader_of(path: Path) -> RecordReader | None:
    """The reader whose format the file's first bytes show; None for a trace, and for what nobody knows or is no file.

    Raises TraceError when the file cannot be read.
    """
    if not path.is_file():
        return None  # a pipe would be waited for
    start = head(path)
    return next((reader for reader in record_readers() if reader.sniff(start)), None)


def is_record(path: Path) -> bool:
    """Whether a file that nobody named is one: many logs, tables and pickles of a folder are not ours."""
    try:
        return is_named_like_a_record(path) and record_reader_of(path) is not None
    except TraceError:
        return False


def is_named_like_a_record(path: Path) -> bool:
    """Whether a file in a folder is worth a look."""
    return any(reader.names.search(path.name) for reader in record_readers())


def rank_of(path: Path) -> tuple[int, str]:
    """The rank that a file's name tells, and that it was the name; −1 where it tells none."""
    told = rank_in_name(path.name)
    return (-1, "order") if told is None else (told, "file name")


def whole(path: Path) -> tuple[bytes, str]:
    """A file's content, unpacked, and why it ended before its end ("" when it did not).

    Raises TraceError for a file that cannot be read or unpacks to more than these formats come to.
    """
    source, parts, size_bytes = Source(path), [], 0
    for block in source.blocks():
        parts.append(block)
        size_bytes += len(block)
        if size_bytes > _LARGEST_BYTES:
            raise TraceError(
                f"{path.name} holds more than {_LARGEST_BYTES >> 30} GiB.",
                hint="Record a shorter history: files of this kind are read as a whole.",
            )
    return b"".join(parts), source.cut_short
