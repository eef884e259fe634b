"""Native trace files → windows of spans. One module per format, found by its ``READER``.

Readers are strict about what they need and count what they drop; the counts travel with every answer. They read
files and nothing else: no torch, no JAX, no environment.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from meshscope.discovery import discover
from meshscope.readers.other_kinds import check_first, check_regular, unknown
from meshscope.readers.reader import Reader
from meshscope.readers.records import record_readers
from meshscope.readers.stream import head
from meshscope.spans import Window


@cache
def readers() -> tuple[Reader, ...]:
    """Every format's reader."""
    return discover("meshscope.readers", "READER", Reader)


def reader_of(path: Path) -> Reader:
    """The reader whose format the file's first bytes show. Raises TraceError when none does, naming other kinds."""
    check_regular(path)
    start = head(path)
    check_first(path, start)
    for reader in readers():
        if reader.sniff(start):
            return reader
    known = [*(reader.format for reader in readers()), *(reader.format for reader in record_readers())]
    raise unknown(path, start, ", ".join(known))


def read(path: Path, *, t0_unix_ns: int | None = None, device_kind: str = "") -> tuple[Window, ...]:
    """The windows of one native trace file, one per rank in it; see :class:`meshscope.readers.reader.Read`."""
    return reader_of(path).read(path, t0_unix_ns=t0_unix_ns, device_kind=device_kind)
