"""Native traces that no recording came with: files, or folders of them, as Runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from weakref import WeakKeyDictionary

import numpy as np

from meshscope import readers
from meshscope.errors import InputError
from meshscope.experiment import Experiment
from meshscope.run.grouping import together
from meshscope.run.ledger import fold
from meshscope.run.loading import SoFar, Windows, load
from meshscope.run.state import Run
from meshscope.run.traces import unstepped
from meshscope.spans import Window

_JAX_COPY = ".trace.json.gz"
Refusal = tuple[str, str, str]


@dataclass(frozen=True)
class Opened:
    """``refused`` lists (path, why, hint) of what could not be read; ``notes`` say what does not work as it might."""

    runs: tuple[Run, ...]
    refused: tuple[Refusal, ...]
    notes: tuple[str, ...] = ()


def open_traces(
    paths: Iterable[Path], *, jobs: int | None = None, watch: Callable[[SoFar], None] = lambda _: None
) -> Opened:
    """One Run per run found among files and folders (searched for names that a reader knows).

    ``watch`` is told how far the reading is; ``jobs`` is how many processes read at most, the cores when None.
    Raises InputError when a path does not exist or a folder holds no trace at all.
    """
    windows, refused, notes = load(trace_files(paths), jobs=jobs, watch=watch)
    return Opened(runs_of(windows), tuple(refused), tuple(notes))


def runs_of(windows: Windows) -> tuple[Run, ...]:
    """The runs that some files' windows make up, told apart folder by folder."""
    by_folder: dict[Path, list[Path]] = defaultdict(list)
    for path in windows:
        by_folder[path.parent].append(path)
    groups = [group for files in by_folder.values() for group in together(files, windows)]
    return tuple(_run(group, windows) for group in groups)


def trace_files(paths: Iterable[Path]) -> list[Path]:
    """The files to read: those named, and those of folders that are named like traces. Raises InputError."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(child for child in path.rglob("*") if child.is_file() and _is_named_like_a_trace(child))
            if not inside:
                raise InputError(f"{path} holds no trace file.", hint=f"Looked for names ending in {_suffixes()}.")
            found += (child for child in inside if not _is_copy(child))
        elif path.exists():
            found.append(path)
        else:
            raise InputError(f"{path} does not exist.", hint="Check the path.")
    return list(dict.fromkeys(found))


def _is_copy(path: Path) -> bool:
    """JAX writes its xplane a second time as JSON beside it."""
    return path.name.endswith(_JAX_COPY) and path.with_name(path.name.removesuffix(_JAX_COPY) + ".xplane.pb").is_file()


def _suffixes() -> str:
    return ", ".join(suffix for reader in readers.readers() for suffix in reader.suffixes)


def _is_named_like_a_trace(path: Path) -> bool:
    return any(path.name.endswith(suffix) for reader in readers.readers() for suffix in reader.suffixes)


def _run(files: list[Path], windows: Windows) -> Run:
    read = [(window, str(file)) for file in files for window in windows[file]]
    has_time = all(window.has_unix_time for window, _ in read)
    t0_unix_ns = min(window.start_ns for window, _ in read) if has_time else 0
    mine = [_placed(window, source, t0_unix_ns) for window, source in read]
    path = files[0] if len(files) == 1 else files[0].parent
    experiment = _experiment(path, mine, t0_unix_ns)
    ordered = tuple(sorted(mine, key=lambda window: (window.rank, window.start_ns)))
    end_ns = max(window.end_ns for window in mine)
    return replace(fold(experiment, (), now_ns=end_ns, path=str(path)), windows=ordered, last_entry_ns=end_ns)


_PLACED: WeakKeyDictionary[Window, tuple[tuple[str, int], Window]] = WeakKeyDictionary()


def _placed(window: Window, source: str, t0_unix_ns: int) -> Window:
    """A window of a run that began at a time; the same one again while that stays, so its answers are kept."""
    known = _PLACED.get(window)
    if known is not None and known[0] == (source, t0_unix_ns):
        return known[1]
    named = replace(window, source=source)
    whole = named if named.is_complete else unstepped(named)
    placed = whole.shifted(-t0_unix_ns) if t0_unix_ns else whole
    _PLACED[window] = ((source, t0_unix_ns), placed)
    return placed


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
