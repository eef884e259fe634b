"""Files that do not say which rank they are: ranks of one run in order, where all else says that they are one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np

from meshscope.readers.naming import rank_in_name, series
from meshscope.spans import Kind, Window

FOLDER = "folder name"
"""Whence a rank is known: ``rank_3/trace.json``."""

_BY_NAME = "no file says its rank: taken from the number in which their names differ"
_BY_ORDER = "no file says its rank: numbered in the order of their names"


class UnrankedFile(Protocol):
    """One file whose window has ``rank_from`` order."""

    @property
    def path(self) -> Path: ...
    @property
    def windows(self) -> tuple[Window, ...]: ...


File = TypeVar("File", bound=UnrankedFile)
Ranked = list[tuple[File, tuple[Window, ...]]]
Doubts = tuple[tuple[str, str], ...]


def foldered(path: Path, windows: tuple[Window, ...]) -> tuple[Window, ...]:
    """The windows of a file that says no rank, with the one that the name of its folder says; () where it says none."""
    rank = rank_in_name(path.parent.name)
    if rank is None or any(window.rank_from != "order" for window in windows):
        return ()
    return tuple(_with_rank(window, rank, FOLDER) for window in windows)


def ordered(files: Sequence[File]) -> tuple[list[tuple[Ranked[File], Doubts]], list[File]]:
    """Groups of files with their ranked windows and what is uncertain about it, and the files that stand alone.

    Files of one folder are one run when all of them were traced at the same time and have the same collectives, or
    say the same world of several ranks.
    """
    folders: dict[Path, list[File]] = {}
    for file in files:
        folders.setdefault(file.path.parent, []).append(file)
    groups: list[tuple[Ranked[File], Doubts]] = []
    alone: list[File] = []
    for some in folders.values():
        if len(some) > 1 and _is_one_run([file.windows[0] for file in some]):
            groups.append(_ranked(sorted(some, key=lambda file: file.path.name)))
        else:
            alone += some
    return groups, alone


def _is_one_run(windows: Sequence[Window]) -> bool:
    if not all(window.has_unix_time and window.device_kind != "none" for window in windows):
        return False
    if max(window.start_ns for window in windows) > min(window.end_ns for window in windows):
        return False
    about = {(w.framework, w.world, bool(w.simulated_by), _collectives(w)) for w in windows}
    _, world, _, collectives = next(iter(about))
    return len(about) == 1 and (bool(collectives) or world >= len(windows))


def _collectives(window: Window) -> frozenset[str]:
    spans = window.spans
    used = np.unique(spans.collective[(spans.kind == Kind.COLLECTIVE) & (spans.collective >= 0)])
    return frozenset(spans.collectives[number] for number in used.tolist())


def _ranked(files: list[File]) -> tuple[Ranked[File], Doubts]:
    numbers = series([file.path.name for file in files])
    ranks, rank_from, why = (numbers, "file name", _BY_NAME) if numbers else (range(len(files)), "order", _BY_ORDER)
    told = [
        (file, tuple(_with_rank(window, rank, rank_from) for window in file.windows))
        for file, rank in zip(files, ranks, strict=True)
    ]
    return told, (("rank order", why),)


def _with_rank(window: Window, rank: int, rank_from: str) -> Window:
    spans = replace(window.spans, rank=np.full(len(window.spans), rank, dtype=np.int32))
    return replace(window, rank=rank, rank_from=rank_from, spans=spans)
