"""The same trace in two files: no second run, and no second rank either."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
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
    originals: dict[Hashable, list[File]] = {}
    found: dict[Path, Path] = {}
    for file in files:
        if not all(_is_told(window) for window in file.windows):
            continue
        # The hosts of a run are alike in everything but their names.
        host = file.path.name if file.windows[0].rank_from == "device" else ""
        alike = originals.setdefault((host, *map(_about, file.windows)), [])
        same = next((other for other in alike if all(map(_is_same, file.windows, other.windows))), None)
        if same is None:
            alike.append(file)
        else:
            found[file.path] = same.path
    return found


def _is_told(window: Window) -> bool:
    """Whether a window says when and where it was; two that do not may look alike and be different ranks."""
    return window.has_unix_time and window.rank_from in ("trace", "device") and len(window.spans) > 0


def _about(window: Window) -> Hashable:
    who = (window.rank, window.rank_from, window.device, window.framework, window.device_kind, window.world)
    return who, window.start_ns, window.end_ns, window.counts.read


def _is_same(a: Window, b: Window) -> bool:
    """Whether two windows agree to the nanosecond."""
    return bool(np.array_equal(a.spans.start_ns, b.spans.start_ns) and np.array_equal(a.spans.end_ns, b.spans.end_ns))
