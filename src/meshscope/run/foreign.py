"""Native traces that no recording came with: files, or folders of them, as Runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from weakref import WeakKeyDictionary

import numpy as np

from meshscope.experiment import Experiment, Simulation
from meshscope.run.extras import Extras, with_records
from meshscope.run.finding import Refusal, trace_files
from meshscope.run.grouping import Filed, Group, together
from meshscope.run.ledger import fold
from meshscope.run.loading import Records, SoFar, Windows, load
from meshscope.run.state import Run
from meshscope.run.traces import unstepped
from meshscope.spans import Window


@dataclass(frozen=True)
class Opened:
    """``refused`` lists (path, why, hint) of what could not be read; ``notes`` say what does not work as it might."""

    runs: tuple[Run, ...]
    refused: tuple[Refusal, ...]
    notes: tuple[str, ...] = ()


def open_traces(
    paths: Iterable[Path], *, jobs: int | None = None, watch: Callable[[SoFar], None] = lambda _: None
) -> Opened:
    """One Run per run found among files and folders (searched for names that a reader knows), wherever they lie.

    ``watch`` is told how far the reading is; ``jobs`` is how many processes read at most, the cores when None.
    Raises InputError when a path does not exist or a folder holds no trace at all.
    """
    files: list[Path] = []
    refused: list[Refusal] = []
    for path in paths:
        found = trace_files(path)
        files += found.files
        refused += found.refused
    opened = open_files(files, jobs=jobs, watch=watch)
    return Opened(opened.runs, (*refused, *opened.refused), opened.notes)


def open_files(
    files: Iterable[Path], *, jobs: int | None = None, watch: Callable[[SoFar], None] = lambda _: None
) -> Opened:
    """The same for files that were found already."""
    loaded = load(tuple(dict.fromkeys(files)), jobs=jobs, watch=watch)
    return Opened(runs_of(loaded.windows, loaded.records), tuple(loaded.refused), tuple(loaded.notes))


def runs_of(windows: Windows, records: Records) -> tuple[Run, ...]:
    """The runs that some files' windows make up, with the records that are of them; then those of records alone."""
    groups = together([Filed(path, found) for path, found in windows.items()])
    return with_records((_run(group) for group in groups), Extras(records))


def _run(group: Group) -> Run:
    read = [(window, str(file.path)) for file in group.files for window in file.windows]
    has_time = all(window.has_unix_time for window, _ in read)
    t0_unix_ns = min(window.start_ns for window, _ in read) if has_time else 0
    mine = [_placed(window, source, t0_unix_ns) for window, source in read]
    if group.cannot_say:
        mine[0] = replace(mine[0], cannot_say=(*mine[0].cannot_say, *group.cannot_say))
    path = _common([file.path for file in group.files])
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


def _common(files: list[Path]) -> Path:
    """The file itself, or the folder that holds all of them."""
    if len(files) == 1:
        return files[0]
    return next(folder for folder in files[0].parents if all(folder in file.parents for file in files))


def _experiment(path: Path, windows: list[Window], t0_unix_ns: int) -> Experiment:
    """What is known of a run that nobody described."""
    kinds = {window.device_kind for window in windows} - {"none"}
    drawn_by = next((window.simulated_by for window in windows if window.simulated_by), "")
    return Experiment(
        t0_unix_ns=t0_unix_ns,
        strategy="",
        title=f"{path.name} (simulated)" if drawn_by else path.name,
        framework=windows[0].framework,
        ranks=len(np.unique([window.rank for window in windows])),
        device_kind=min(kinds, default="none"),
        model="",
        simulated=Simulation(by=drawn_by) if drawn_by else None,
    )
