"""Opens what a person points at: comparisons, recordings, and native traces made elsewhere."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from meshscope.cli import progressing
from meshscope.errors import InputError, MeshscopeError
from meshscope.recording.layout import EXPERIMENT, PLAN, recordings
from meshscope.run import Gallery, Opened, Run, open_traces


def open_paths(paths: Sequence[Path], *, jobs: int | None = None) -> Opened:
    """One Run per recording or foreign run; what cannot be read is listed in ``refused`` and costs nothing else."""
    runs: list[Run] = []
    refused: list[tuple[str, str, str]] = []
    notes: list[str] = []
    for path in paths:
        try:
            opened = _open(path, jobs)
        except MeshscopeError as error:
            refused.append((str(path), error.message, error.hint))
            continue
        runs += opened.runs
        refused += opened.refused
        notes += opened.notes
    return Opened(tuple(runs), tuple(refused), tuple(dict.fromkeys(notes)))


def _open(path: Path, jobs: int | None) -> Opened:
    if not path.exists():
        raise InputError(f"{path} does not exist.", hint="Give a recording, a native trace or a folder of traces.")
    if is_recorded(path):
        gallery = Gallery(path)
        _, runs = gallery.at(time.time_ns())
        if not runs:
            raise InputError(
                f"{path} holds no recording yet.", hint=f"Wait for its first strategy: meshscope watch {path}"
            )
        return Opened(runs, gallery.refused)
    with progressing.told() as tell:
        return open_traces((path,), jobs=jobs, watch=tell)


def is_recorded(folder: Path) -> bool:
    """Whether a path is a recording or a folder of some."""
    if not folder.is_dir():
        return False
    return (folder / PLAN).is_file() or (folder / EXPERIMENT).is_file() or bool(recordings(folder))
