"""Which files are one run, told from their content first.

The ranks of one run have one world size, different ranks, and times that overlap. What cannot be told apart is kept
apart: two runs merged would be a wrong answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from meshscope.spans import Window


def together(files: list[Path], windows: dict[Path, tuple[Window, ...]]) -> list[list[Path]]:
    """The files of one folder as groups, each of one run."""
    groups: list[list[Path]] = []
    for path in sorted(files, key=lambda file: (windows[file][0].start_ns, file.name)):
        home = next((group for group in groups if _fits(windows[path], [windows[file] for file in group])), None)
        if home is None:
            groups.append([path])
        else:
            home.append(path)
    return groups


def _fits(new: Sequence[Window], group: Sequence[Sequence[Window]]) -> bool:
    known = [window for windows in group for window in windows]
    first, head = new[0], known[0]
    if "order" in (first.rank_from, head.rank_from) or not (first.has_unix_time and head.has_unix_time):
        return False
    is_same_run = (first.framework, first.world) == (head.framework, head.world)
    has_new_ranks = not {window.rank for window in new} & {window.rank for window in known}
    overlaps = any(first.start_ns <= window.end_ns and window.start_ns <= first.end_ns for window in known)
    return is_same_run and has_new_ranks and overlaps
