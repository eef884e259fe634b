"""Columns that grow while a file is read, in pages of their own: never copied to grow, given back when let go.

What the C library's heap gets back in pieces stays with the process, and a table of a gigabyte's trace is such a piece.
"""

from __future__ import annotations

import mmap
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

_PAGES_BYTES = 1 << 18
_HUGE_BYTES = 1 << 23
_INT32 = np.iinfo(np.int32)

Column = npt.NDArray[Any]


def room(count: int, dtype: npt.DTypeLike) -> Column:
    """An array of shape (count,), not set to anything; a large one in pages of its own."""
    size = count * np.dtype(dtype).itemsize
    return np.empty(count, dtype=dtype) if size < _PAGES_BYTES else np.frombuffer(_pages(size), dtype=dtype)


def _pages(size: int) -> mmap.mmap:
    # Pages shared with nobody: others cannot grow in place.
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    _make_huge(pages)
    return pages


def _make_huge(pages: mmap.mmap) -> None:
    """Ask for large pages where there is much to hold: a 500th of the page faults, and fewer misses of a sort."""
    if len(pages) >= _HUGE_BYTES and (huge := getattr(mmap, "MADV_HUGEPAGE", None)) is not None:
        with suppress(OSError):  # a kernel without them serves small ones
            pages.madvise(huge)


def filled(count: int, dtype: npt.DTypeLike, value: int) -> Column:
    """An array of shape (count,) of one value, to be written to."""
    column = room(count, dtype)
    column.fill(value)
    return column


def taken(column: Column, rows: npt.NDArray[Any]) -> Column:
    """``column[rows]``, in a :func:`room`; of a column that is one value all over, the same in no room at all."""
    if is_constant(column):
        return np.broadcast_to(column[0], len(rows)) if len(rows) else np.empty(0, dtype=column.dtype)
    found = room(len(rows), column.dtype)
    return np.take(column, rows, out=found, mode="clip")  # with "raise" numpy would copy the whole


def is_constant(column: Column) -> bool:
    """Whether a column is one value that takes no room."""
    return len(column) > 0 and column.strides == (0,)


class Growing:
    """One column. It takes no room while all of it is ``fill``, and half while it fits int32 where ``is_narrow``."""

    def __init__(self, dtype: npt.DTypeLike, *, is_narrow: bool = False, fill: int = -1) -> None:
        self._dtype: np.dtype[Any] = np.dtype(np.int32 if is_narrow else dtype)
        self._fill = fill
        self._used = 0
        self._pages: mmap.mmap | None = None

    def __len__(self) -> int:
        return self._used

    def skip(self, count: int) -> None:
        """Appends the fill so many times."""
        if self._pages is not None:
            self._append(np.broadcast_to(np.array(self._fill, dtype=self._dtype), count))
        self._used += count

    def append(self, part: Column) -> None:
        is_wider = self._dtype.itemsize < part.dtype.itemsize and len(part) > 0
        if is_wider and (part.max() > _INT32.max or part.min() < _INT32.min):
            self._widen(part.dtype)
        if self._pages is None and self._used:
            missed, self._used = self._used, 0
            self._append(np.broadcast_to(np.array(self._fill, dtype=self._dtype), missed))
            self._used = missed
        self._append(part)
        self._used += len(part)

    def whole(self) -> Column:
        """All of it; the column is empty afterwards."""
        pages, used = self._pages, self._used
        self._pages, self._used = None, 0
        if not used:
            return np.empty(0, dtype=self._dtype)
        if pages is None:
            return np.broadcast_to(np.array(self._fill, dtype=self._dtype), used)
        size = used * self._dtype.itemsize
        if size < _PAGES_BYTES:
            return np.frombuffer(pages, dtype=self._dtype, count=used).copy()
        pages.resize(size)
        return np.frombuffer(pages, dtype=self._dtype)

    def _append(self, part: Column) -> None:
        width = self._dtype.itemsize
        size = (self._used + len(part)) * width
        if self._pages is None:
            self._pages = _pages(max(size, _PAGES_BYTES))
        elif size > len(self._pages):
            self._pages.resize(2 * size)  # pages that nothing was written to take no room
            _make_huge(self._pages)
        np.frombuffer(self._pages, dtype=self._dtype, offset=self._used * width, count=len(part))[:] = part

    def _widen(self, dtype: np.dtype[Any]) -> None:
        used, is_held = self._used, self._pages is not None
        narrow = self.whole()
        self._dtype = dtype
        if is_held:
            self._append(narrow)
        self._used = used
