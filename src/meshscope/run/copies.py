"""The same trace in two files: no second run, and no second rank either."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np

from meshscope.spans import Window


class ReadFile(Protocol):
    """A file with its windows."""

    @property
    def path(self) -> Path: ...
    @property
    def windows(self) -> tuple[Window, ...]: ...


File = TypeVar("File", bound=ReadFile)


def copies(files: Sequence[File]) -> dict[Path, Path]:
    """Files that hold nothing but what an earlier one holds, and that one."""
    originals: list[File] = []
    found: dict[Path, Path] = {}
    for file in files:
        same = next((other for other in originals if _are_same(file.windows, other.windows)), None)
        if same is None:
            originals.append(file)
        else:
            found[file.path] = same.path
    return found


def _are_same(a: Sequence[Window], b: Sequence[Window]) -> bool:
    return len(a) == len(b) and all(_is_same(one, other) for one, other in zip(a, b, strict=True))


def _is_same(a: Window, b: Window) -> bool:
    """Whether two windows agree to the nanosecond in what says when and where it was."""
    is_told = a.has_unix_time and a.rank_from in ("trace", "device") and len(a.spans) > 0
    about = ("rank", "rank_from", "device", "framework", "device_kind", "start_ns", "end_ns", "world", "has_unix_time")
    return (
        is_told
        and all(getattr(a, name) == getattr(b, name) for name in about)
        and a.counts.read == b.counts.read
        and bool(np.array_equal(a.spans.start_ns, b.spans.start_ns))
        and bool(np.array_equal(a.spans.end_ns, b.spans.end_ns))
    )
