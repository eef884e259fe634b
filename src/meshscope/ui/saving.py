"""Files that a screen leaves in the folder that meshscope was started in; none is ever overwritten."""

from __future__ import annotations

import io
import time
from contextlib import suppress
from pathlib import Path

from meshscope.errors import MeshscopeError

_MOST_NAMES = 100


class SavingError(MeshscopeError):
    """A file could not be written."""


def save(name: str, text: str, folder: Path | None = None) -> Path:
    """Write a new file, under ``name`` or the first of ``name-2``, ``name-3``, … that is free; its path.

    Raises SavingError with what is in the way; then nothing is left behind.
    """
    folder = folder or Path()
    stem, dot, kind = name.rpartition(".")
    for number in range(1, _MOST_NAMES + 1):
        path = folder / (name if number == 1 else f"{stem}-{number}{dot}{kind}")
        try:
            with path.open("x", encoding="utf-8", newline="") as file:
                _write_all(file, text, path)
        except FileExistsError:
            continue
        except OSError as error:
            raise _refused(path, error) from error
        return path
    raise SavingError(f"{name} is there {_MOST_NAMES} times already.", hint="Take some of them away.")


def _write_all(file: io.TextIOWrapper, text: str, path: Path) -> None:
    try:
        file.write(text)
        file.flush()
    except OSError:
        with suppress(OSError):
            path.unlink()
        raise


def _refused(path: Path, error: OSError) -> SavingError:
    why = error.strerror or str(error)
    return SavingError(
        f"{path.name} cannot be written to {_here(path.parent)}: {why}.", hint="Start meshscope elsewhere."
    )


def _here(folder: Path) -> str:
    try:
        return str(folder.resolve())
    except OSError:
        return "a folder that is gone"


def told(path: Path) -> str:
    """``Saved NAME in FOLDER``: the name first, since a narrow screen cuts the end."""
    return f"Saved {path.name} in {_here(path.parent)}"


def stamped(kind: str) -> str:
    """``meshscope-20260131-120000.svg``: the name of a picture of the screen."""
    return f"meshscope-{time.strftime('%Y%m%d-%H%M%S')}.{kind}"
