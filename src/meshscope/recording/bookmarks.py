"""Times somebody wants to come back to, kept beside the recording they are of."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

FILE = "bookmarks.json"


class Bookmarks(msgspec.Struct, frozen=True):
    """``times_ns`` are since the recording's ``t0_unix_ns``."""

    times_ns: tuple[int, ...] = ()


def bookmarks(folder: Path) -> tuple[int, ...]:
    """In order; none where none are kept, or what is there cannot be read as such."""
    try:
        kept = msgspec.json.decode((folder / FILE).read_bytes(), type=Bookmarks)
    except (OSError, msgspec.MsgspecError):
        return ()
    return tuple(sorted(set(kept.times_ns)))


def keep(folder: Path, times_ns: tuple[int, ...]) -> bool:
    """Whether they could be written; a file that is there is replaced at once or not at all."""
    partial = folder / f".{FILE}.{os.getpid()}"
    try:
        partial.write_bytes(msgspec.json.encode(Bookmarks(times_ns)))
        partial.replace(folder / FILE)
    except OSError:
        return False
    return True
