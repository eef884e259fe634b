"""Opens what a person points at: comparisons, recordings, and native traces made elsewhere."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from meshscope.errors import InputError, MeshscopeError
from meshscope.recording.layout import EXPERIMENT, PLAN, recordings
from meshscope.run import Gallery, Opened, Run, open_files, trace_files


def open_paths(paths: Sequence[Path]) -> Opened:
    """One Run per recording or foreign run; what cannot be read is listed in ``refused`` and costs nothing else.

    Native traces are looked at together, whichever path they came by: one rank per argument is one run.
    """
    runs: list[Run] = []
    refused: list[tuple[str, str, str]] = []
    files: list[Path] = []
    for path in paths:
        try:
            if _is_recorded(path):
                opened = _recorded(path)
                runs += opened.runs
                refused += opened.refused
            else:
                found = trace_files(path)
                files += found.files
                refused += found.refused
        except MeshscopeError as error:
            refused.append((str(path), error.message, error.hint))
    foreign = open_files(dict.fromkeys(files))
    return Opened((*runs, *foreign.runs), (*refused, *foreign.refused))


def _recorded(path: Path) -> Opened:
    gallery = Gallery(path)
    _, runs = gallery.at(time.time_ns())
    if not runs:
        raise InputError(f"{path} holds no recording yet.", hint=f"Wait for its first strategy: meshscope watch {path}")
    return Opened(runs, gallery.refused)


def _is_recorded(folder: Path) -> bool:
    try:
        if not folder.is_dir():
            return False
        return (folder / PLAN).is_file() or (folder / EXPERIMENT).is_file() or bool(recordings(folder))
    except OSError:
        return False  # whoever looks for traces in it says why
