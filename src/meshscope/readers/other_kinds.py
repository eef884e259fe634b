"""Files of other kinds, told by their first bytes: what each is, and what to do with it.

Kinds that a reader could take for its own (JSON of other tools, other protobufs) are named before readers are asked;
the others once no reader knew the file.
"""

from __future__ import annotations

import stat
from pathlib import Path

from meshscope.errors import TraceError
from meshscope.readers.other_signatures import AT_FIRST, AT_LAST, NSYS_HINT, TRACE_INSTEAD

_SQLITE_BYTES = 1 << 20


_NOT_REGULAR = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISDIR, "a folder"),
)


def check_regular(path: Path) -> None:
    """Raises TraceError for what is there and no regular file: a pipe without a writer would wait for ever."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return  # whoever opens it says why
    for is_kind, what in _NOT_REGULAR:
        if is_kind(mode):
            raise TraceError(
                f"{path.name or path} is {what}, not a file.", hint="Write the trace to a file, and give that."
            )


def check_first(path: Path, head: bytes) -> None:
    """Raises TraceError for kinds that a reader could take for its own."""
    for kind in AT_FIRST:
        if kind.is_it(head, path.name):
            raise TraceError(f"{path.name} is {kind.what}.", hint=kind.hint)


def unknown(path: Path, head: bytes, formats: str) -> TraceError:
    """Why a file that no reader knows cannot be read: ``formats`` lists what can."""
    if not head:
        return TraceError(f"{path.name} is empty.", hint="The rank may have died before it wrote: trace again.")
    if head.startswith(b"SQLite format 3\0"):
        return _database(path)
    kind = next((kind for kind in AT_LAST if kind.is_it(head, path.name)), None)
    if kind is None:
        return TraceError(f"{path.name} is of no format that meshscope reads.", hint=f"Formats: {formats}.")
    said = f"{path.name} is {kind.what}, which is of no format that meshscope reads."
    return TraceError(said, hint=kind.hint or f"Formats: {formats}.")


def _database(path: Path) -> TraceError:
    """SQLite's table names stand in the first pages."""
    try:
        with path.open("rb") as file:
            start = file.read(_SQLITE_BYTES)
    except OSError:
        start = b""
    if b"rocpd_" in start:
        return TraceError(f"{path.name} is a rocpd database (rocprofv3, RPD).", hint=TRACE_INSTEAD)
    if b"CUPTI_ACTIVITY_KIND" in start or b"TARGET_INFO" in start or b"StringIds" in start:
        return TraceError(f"{path.name} is an nsys export (SQLite).", hint=NSYS_HINT)
    return TraceError(f"{path.name} is an SQLite database.", hint=TRACE_INSTEAD)
