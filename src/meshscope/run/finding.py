"""The trace files that a person points at."""

from __future__ import annotations

import os
import stat
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from pathlib import Path

from meshscope import readers
from meshscope.errors import InputError
from meshscope.readers.records import is_record, record_readers

_XPLANE = ".xplane.pb"
_JAX_COPY = ".trace.json.gz"
_PERFETTO_COPY = "perfetto_trace.json.gz"
Refusal = tuple[str, str, str]


@dataclass(frozen=True)
class Found:
    """``refused`` lists (path, why, hint) of the folders that could not be looked into."""

    files: tuple[Path, ...]
    refused: tuple[Refusal, ...] = ()


def trace_files(path: Path) -> Found:
    """The file itself, or the files below a folder with names that a reader knows; links to folders are followed.

    A file that links name again comes once, by its own name where that is below the folder.
    Raises InputError when the path does not exist or a folder holds no trace at all.
    """
    if not _is_folder(path):
        return Found((path,))
    refused: list[Refusal] = []
    inside = [file for file in _below(path, refused) if _is_named_like_a_trace(file) or is_record(file)]
    if not inside and not refused:
        raise InputError(f"{path} holds no trace file.", hint=_looked_for())
    return Found(_once(sorted(file for file in inside if not _is_copy(file))), tuple(refused))


def _once(files: list[Path]) -> tuple[Path, ...]:
    """Each file once, whatever names it has; a name of its own before one that links to it."""
    known: dict[Hashable, Path] = {}
    for file in files:
        about = _about(file)
        if about not in known or (known[about].is_symlink() and not file.is_symlink()):
            known[about] = file
    return tuple(sorted(known.values()))


def _about(file: Path) -> Hashable:
    try:
        about = file.stat()
    except OSError:
        return file
    return about.st_dev, about.st_ino


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(
            f"{path} does not exist.", hint="Give a recording, a native trace or a folder of traces."
        ) from None
    except OSError as error:
        raise InputError(
            f"{path} cannot be reached: {error.strerror or error}.", hint="Check its path and permissions."
        ) from error


def _below(folder: Path, refused: list[Refusal]) -> Iterator[Path]:
    """Every regular file below a folder. A folder that links lead to again is entered once."""
    entered: set[tuple[int, int]] = set()

    def note(error: OSError) -> None:
        why = f"The folder cannot be read: {error.strerror or error}."
        refused.append((str(error.filename or folder), why, "Check its permissions."))

    for here, folders, names in os.walk(folder, followlinks=True, onerror=note):
        try:
            about = os.stat(here)
        except OSError as error:
            note(error)
            continue
        if (about.st_dev, about.st_ino) in entered:
            folders.clear()
            continue
        entered.add((about.st_dev, about.st_ino))
        folders.sort()
        yield from (Path(here, name) for name in sorted(names) if os.path.isfile(os.path.join(here, name)))


def _is_copy(path: Path) -> bool:
    """JAX writes its xplane a second time as JSON beside it, and that a third time for Perfetto."""
    if path.name == _PERFETTO_COPY:
        return any(other.name.endswith((_XPLANE, _JAX_COPY)) for other in path.parent.iterdir())
    return path.name.endswith(_JAX_COPY) and path.with_name(path.name.removesuffix(_JAX_COPY) + _XPLANE).is_file()


def _looked_for() -> str:
    suffixes = dict.fromkeys(suffix for reader in readers.readers() for suffix in reader.suffixes)
    records = (f"{reader.format} ({reader.called})" for reader in record_readers())
    return f"Looked for names ending in {', '.join(suffixes)}, and for records: {', '.join(records)}."


def _is_named_like_a_trace(path: Path) -> bool:
    return any(path.name.endswith(suffix) for reader in readers.readers() for suffix in reader.suffixes)
