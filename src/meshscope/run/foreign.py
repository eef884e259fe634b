"""Native traces that no recording came with: files, or folders of them, as Runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from meshscope import readers
from meshscope.errors import TraceError
from meshscope.experiment import Experiment
from meshscope.run.extras import split, with_records
from meshscope.run.finding import Refusal, trace_files
from meshscope.run.grouping import Filed, Group, together
from meshscope.run.ledger import fold
from meshscope.run.state import Run
from meshscope.run.traces import unstepped
from meshscope.spans import Window


@dataclass(frozen=True)
class Opened:
    """``refused`` lists (path, why, hint) of the files that could not be read."""

    runs: tuple[Run, ...]
    refused: tuple[Refusal, ...]


def open_traces(paths: Iterable[Path]) -> Opened:
    """One Run per run found among files and folders (searched for names that a reader knows), wherever they lie.

    Raises InputError when a path does not exist or a folder holds no trace at all.
    """
    files: list[Path] = []
    refused: list[Refusal] = []
    for path in paths:
        found = trace_files(path)
        files += found.files
        refused += found.refused
    opened = open_files(list(dict.fromkeys(files)))
    return Opened(opened.runs, (*refused, *opened.refused))


def open_files(files: Iterable[Path]) -> Opened:
    """The same for files that were found already."""
    read: list[Filed] = []
    refused: list[Refusal] = []
    traces, extras = split(list(files))
    for path in traces:
        try:
            read.append(Filed(path, readers.read(path)))
        except TraceError as error:
            refused.append((str(path), error.message, error.hint))
    runs = with_records((_run(group) for group in together(read)), extras)
    return Opened(runs, (*refused, *extras.refused))


def _run(group: Group) -> Run:
    named = [replace(window, source=str(file.path)) for file in group.files for window in file.windows]
    mine = [window if window.is_complete else unstepped(window) for window in named]
    mine[0] = replace(mine[0], cannot_say=(*mine[0].cannot_say, *group.cannot_say))
    has_time = all(window.has_unix_time for window in mine)
    t0_unix_ns = min(window.start_ns for window in mine) if has_time else 0
    if has_time:
        mine = [window.shifted(-t0_unix_ns) for window in mine]
    path = _common([file.path for file in group.files])
    experiment = _experiment(path, mine, t0_unix_ns)
    ordered = tuple(sorted(mine, key=lambda window: (window.rank, window.start_ns)))
    end_ns = max(window.end_ns for window in mine)
    return replace(fold(experiment, (), now_ns=end_ns, path=str(path)), windows=ordered, last_entry_ns=end_ns)


def _common(files: list[Path]) -> Path:
    """The file itself, or the folder that holds all of them."""
    if len(files) == 1:
        return files[0]
    return next(folder for folder in files[0].parents if all(folder in file.parents for file in files))


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
