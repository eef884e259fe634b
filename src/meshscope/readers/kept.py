"""Reading through the cache: a trace that was read before is mapped into memory, another is read and kept."""

from __future__ import annotations

import contextlib
import os
from functools import cache
from pathlib import Path

from meshscope import readers
from meshscope.readers.column_cache import WORTH_BYTES, Cache, Hashing, limit, place
from meshscope.spans import Window


@cache
def usual() -> Cache | None:
    """The cache of this user; None where it is switched off."""
    folder = place(os.environ)
    return None if folder is None else Cache(folder, limit(os.environ, folder))


def read_kept(path: Path, *, t0_unix_ns: int | None = None, device_kind: str = "") -> tuple[Window, ...]:
    """Like :func:`meshscope.readers.read`, through the user's cache where the file is worth it."""
    return since(_kept(path, device_kind), t0_unix_ns)


def since(windows: tuple[Window, ...], t0_unix_ns: int | None) -> tuple[Window, ...]:
    """Windows in unix ns as they are since a time; those that do not know when they were made stay as they are."""
    if not t0_unix_ns:
        return windows
    return tuple(window.shifted(-t0_unix_ns) if window.has_unix_time else window for window in windows)


def _kept(path: Path, device_kind: str) -> tuple[Window, ...]:
    here = usual() if _is_worth_it(path) else None
    if here is None:
        return readers.read(path, device_kind=device_kind)
    windows = here.find(path, device_kind)
    if windows is not None:
        return windows
    hashing = Hashing(path)
    windows = readers.read(path, device_kind=device_kind)
    digest = hashing.digest()
    if digest is not None:
        # A disk that is full or may not be written costs the next opening its speed, and nothing else.
        with contextlib.suppress(OSError):
            here.store(path, windows, digest, device_kind, is_settled=hashing.is_settled).close()
    return windows


def _is_worth_it(path: Path) -> bool:
    try:
        return path.stat().st_size >= WORTH_BYTES
    except OSError:
        return False
