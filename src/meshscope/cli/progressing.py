"""One line on stderr that tells how far reading is, for a person who waits; nothing where nobody looks at it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from meshscope.run import COMPILING, SoFar
from meshscope.units import NS_PER_S, percent, size

_AFTER_NS = NS_PER_S // 2
_EVERY_NS = NS_PER_S // 5
_CLEAR = "\r\x1b[K"


@contextmanager
def told() -> Iterator[Callable[[SoFar], None]]:
    """What to hand each state to; the line is gone when the reading is over. What is quickly read has none."""
    began_ns, last_ns = time.monotonic_ns(), 0
    is_shown = False

    def tell(so_far: SoFar) -> None:
        nonlocal last_ns, is_shown
        now_ns = time.monotonic_ns()
        if now_ns - began_ns >= _AFTER_NS and now_ns - last_ns >= _EVERY_NS:
            last_ns, is_shown = now_ns, True
            sys.stderr.write(_CLEAR + line(so_far))
            sys.stderr.flush()

    try:
        yield tell if sys.stderr.isatty() else lambda _: None
    finally:
        if is_shown:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()


def line(so_far: SoFar) -> str:
    """``reading: 41.0 % of 1.00 GB, 3 of 8 files, 12 s left``."""
    words = [f"reading: {percent(so_far.frac)} of {size(so_far.total_bytes)}"]
    if so_far.is_compiling:
        return f"{words[0]}, {COMPILING}"
    if so_far.files > 1:
        words.append(f"{so_far.files_done} of {so_far.files} files")
    if so_far.left_ns is not None:
        words.append(f"{max(round(so_far.left_ns / NS_PER_S), 1)} s left")
    return ", ".join(words)
