"""Opens what a person points at: comparisons, recordings, and native traces made elsewhere."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from meshscope.analysis.joining import joined
from meshscope.cli import progressing
from meshscope.errors import InputError, MeshscopeError
from meshscope.recording.layout import EXPERIMENT, PLAN, read_experiment, recordings
from meshscope.run import Gallery, Opened, Run, open_files, trace_files


def open_paths(paths: Sequence[Path], *, jobs: int | None = None) -> Opened:
    """One Run per recording or foreign run, recordings of a run's nodes joined.

    What cannot be read is listed in ``refused`` and costs nothing else.

    Native traces are looked at together, whichever path they came by: one rank per argument is one run.
    """
    runs: list[Run] = []
    refused: list[tuple[str, str, str]] = []
    files: list[Path] = []
    for path in [inside for one in paths for inside in nodes_in(one)]:
        try:
            if is_recorded(path):
                opened = _recorded(path)
                runs += opened.runs
                refused += opened.refused
            else:
                found = trace_files(path)
                files += found.files
                refused += found.refused
        except MeshscopeError as error:
            refused.append((str(path), error.message, error.hint))
    with progressing.told() as tell:
        foreign = open_files(dict.fromkeys(files), jobs=jobs, watch=tell)
    whole = joined(runs)
    return Opened((*whole.runs, *foreign.runs), (*refused, *foreign.refused), (*whole.notes, *foreign.notes))


def nodes_in(folder: Path) -> tuple[Path, ...]:
    """The folders of a run's nodes where a folder holds them and is none itself; else the folder."""
    try:
        if is_recorded(folder) or not folder.is_dir():
            return (folder,)
        inside = tuple(child for child in sorted(folder.iterdir()) if is_recorded(child) and _is_of_a_node(child))
    except OSError:
        return (folder,)  # whoever looks for traces in it says why
    return inside or (folder,)


def _is_of_a_node(folder: Path) -> bool:
    try:
        return any(read_experiment(recording).nodes > 1 for recording in recordings(folder))
    except MeshscopeError:
        return False


def _recorded(path: Path) -> Opened:
    gallery = Gallery(path)
    _, runs = gallery.at(time.time_ns())
    if not runs:
        raise InputError(f"{path} holds no recording yet.", hint=f"Wait for its first strategy: meshscope watch {path}")
    return Opened(runs, gallery.refused)


def is_recorded(folder: Path) -> bool:
    """Whether a path is a recording or a folder of some."""
    try:
        if not folder.is_dir():
            return False
        return (folder / PLAN).is_file() or (folder / EXPERIMENT).is_file() or bool(recordings(folder))
    except OSError:
        return False  # whoever looks for traces in it says why
