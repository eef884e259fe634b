"""XLA writes a file per host, each with that host's devices: which hosts are one run, and their ranks over all.

JAX puts every host's file into a folder of its own start time, so the files of one run may lie a second or two apart.
Two files of one host are two profiles, and two recordings.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import numpy as np

from meshscope.spans import Window

NEAR_NS = 10_000_000_000
"""How far apart the device work of two hosts may lie in one profile: hosts start and stop it on their own."""

_STAMP = re.compile(r"^\d{4}(_\d{2}){5}$")


class HostFile(Protocol):
    """One host's file."""

    @property
    def path(self) -> Path: ...
    @property
    def windows(self) -> tuple[Window, ...]: ...
    @property
    def extent_ns(self) -> tuple[int, int]: ...


def is_one_session(a: Sequence[HostFile], b: Sequence[HostFile]) -> bool:
    """Whether files of different hosts come from one profile: near in time; or in one folder, where no time is told."""
    windows = [window for file in (*a, *b) for window in file.windows]
    if len({window.device_kind for window in windows}) > 1:
        return False
    if not all(window.has_unix_time for window in windows):
        return len({file.path.parent for file in (*a, *b)}) == 1 and _is_session(a[0].path.parent)
    return all(_gap_ns(one.extent_ns, other.extent_ns) <= NEAR_NS for one in a for other in b)


def _is_session(folder: Path) -> bool:
    """Whether a folder is one that a profiler made for one profile, rather than a heap of files."""
    return folder.parent.name == "profile" or _STAMP.match(folder.name) is not None


def _gap_ns(a: tuple[int, int], b: tuple[int, int]) -> int:
    return max(a[0] - b[1], b[0] - a[1], 0)


def numbered_hosts(
    files: Sequence[tuple[Path, tuple[Window, ...]]],
) -> tuple[list[tuple[Path, tuple[Window, ...]]], tuple[tuple[str, str], ...]]:
    """Hosts in the order of their names (numbers in them as numbers), devices counted on from host to host.

    Also what is uncertain about that: no file says which process of the run its host was.
    """
    if len(files) == 1:
        return list(files), ()
    ordered = sorted(files, key=lambda file: _natural(file[0].name))
    found, first = [], 0
    for path, windows in ordered:
        found.append((path, tuple(_moved(window, first) for window in windows)))
        first += max(window.device for window in windows) + 1
    names = ", ".join(path.name.removesuffix(".xplane.pb") for path, _ in ordered)
    return found, (("rank order", f"hosts are numbered in the order of their names: {names}"),)


def _moved(window: Window, first: int) -> Window:
    rank = window.device + first
    spans = replace(window.spans, rank=np.full(len(window.spans), rank, dtype=np.int32))
    return replace(window, rank=rank, rank_from="file name", spans=spans)


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.findall(r"\d+|\D+", name)]
