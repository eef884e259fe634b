"""Native traces that no recording came with: files, or folders of them, as Runs.

Which files belong together is told from their content first: the ranks of one run have one world size, different
ranks, and times that overlap. What cannot be told apart is kept apart: two runs merged would be a wrong answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from meshscope import readers
from meshscope.errors import InputError, TraceError
from meshscope.experiment import Experiment
from meshscope.readers.records import is_record
from meshscope.run.extras import split, with_records
from meshscope.run.ledger import fold
from meshscope.run.state import Run
from meshscope.run.traces import unstepped
from meshscope.spans import Window

_XPLANE = ".xplane.pb"
_JAX_COPY = ".trace.json.gz"
_PERFETTO_COPY = "perfetto_trace.json.gz"
Refusal = tuple[str, str, str]


@dataclass(frozen=True)
class Opened:
    """``refused`` lists (path, why, hint) of the files that could not be read."""

    runs: tuple[Run, ...]
    refused: tuple[Refusal, ...]


def open_traces(paths: Iterable[Path]) -> Opened:
    """One Run per run found among files and folders (searched for names that a reader knows).

    Raises InputError when a path does not exist or a folder holds no trace at all.
    """
    windows: dict[Path, tuple[Window, ...]] = {}
    refused: list[Refusal] = []
    traces, extras = split(_files(paths))
    for path in traces:
        try:
            windows[path] = readers.read(path)
        except TraceError as error:
            refused.append((str(path), error.message, error.hint))
    by_folder: dict[Path, list[Path]] = defaultdict(list)
    for path in windows:
        by_folder[path.parent].append(path)
    groups = [group for files in by_folder.values() for group in _together(files, windows)]
    runs = with_records((_run(group, windows) for group in groups), extras)
    return Opened(runs, (*refused, *extras.refused))


def _files(paths: Iterable[Path]) -> list[Path]:
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(child for child in path.rglob("*") if child.is_file() and _is_worth_a_look(child))
            if not inside:
                raise InputError(f"{path} holds no trace file.", hint=f"Looked for names ending in {_suffixes()}.")
            found += (child for child in inside if not _is_copy(child))
        elif path.exists():
            found.append(path)
        else:
            raise InputError(f"{path} does not exist.", hint="Check the path.")
    return list(dict.fromkeys(found))


def _is_copy(path: Path) -> bool:
    """JAX writes its xplane a second time as JSON beside it, and that a third time for Perfetto."""
    if path.name == _PERFETTO_COPY:
        return any(other.name.endswith((_XPLANE, _JAX_COPY)) for other in path.parent.iterdir())
    return path.name.endswith(_JAX_COPY) and path.with_name(path.name.removesuffix(_JAX_COPY) + _XPLANE).is_file()


def _is_worth_a_look(path: Path) -> bool:
    return _is_named_like_a_trace(path) or is_record(path)


def _suffixes() -> str:
    return ", ".join(suffix for reader in readers.readers() for suffix in reader.suffixes)


def _is_named_like_a_trace(path: Path) -> bool:
    return any(path.name.endswith(suffix) for reader in readers.readers() for suffix in reader.suffixes)


def _together(files: list[Path], windows: dict[Path, tuple[Window, ...]]) -> list[list[Path]]:
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


def _run(files: list[Path], windows: dict[Path, tuple[Window, ...]]) -> Run:
    named = [replace(window, source=str(file)) for file in files for window in windows[file]]
    mine = [window if window.is_complete else unstepped(window) for window in named]
    has_time = all(window.has_unix_time for window in mine)
    t0_unix_ns = min(window.start_ns for window in mine) if has_time else 0
    if has_time:
        mine = [window.shifted(-t0_unix_ns) for window in mine]
    path = files[0] if len(files) == 1 else files[0].parent
    experiment = _experiment(path, mine, t0_unix_ns)
    ordered = tuple(sorted(mine, key=lambda window: (window.rank, window.start_ns)))
    end_ns = max(window.end_ns for window in mine)
    return replace(fold(experiment, (), now_ns=end_ns, path=str(path)), windows=ordered, last_entry_ns=end_ns)


def _experiment(path: Path, windows: list[Window], t0_unix_ns: int) -> Experiment:
    """What is known of a run that nobody described."""
    kinds = {window.device_kind for window in windows} - {"none"}
    return Experiment(
        t0_unix_ns=t0_unix_ns,
        strategy="",
        title=path.name,
        framework=windows[0].framework,
        ranks=len(np.unique([window.rank for window in windows])),
        device_kind=min(kinds, default="none"),
        model="",
    )
