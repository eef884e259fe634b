"""Where a run may be written: a folder that is free, that can be made, and whose name can be stored."""

from __future__ import annotations

import itertools
import os
import re
import time
from pathlib import Path
from typing import BinaryIO

from meshscope.errors import InputError, LaunchError
from meshscope.experiment import Plan
from meshscope.recording.layout import CONTROL, EXPERIMENT, LOGS, PLAN, create_plan

_UNUSUAL = re.compile(r"[^\w.-]+")
_HINT = "Choose another folder with --out."


def default_folder(model: str) -> Path:
    """A free folder named after the time of day, under the current one."""
    name = f"{time.strftime('%Y%m%d-%H%M%S')}-{_UNUSUAL.sub('-', model)}"
    names = itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2)))
    return free(next(path for path in (Path("meshscope-runs") / each for each in names) if not path.exists()))


def free(folder: Path | str) -> Path:
    """The folder, from the root on. InputError when it holds a run or cannot be one, LaunchError when it is closed."""
    text = as_text(folder, "--out")
    try:
        return _checked(Path(text).expanduser().absolute())
    except (OSError, RuntimeError) as error:  # RuntimeError: the ~ of a user that there is not
        raise InputError(f"{text} cannot be a folder: {_reason(error)}.", hint=_HINT) from error


def as_text(folder: Path | str, flag: str) -> str:
    """The path as it stands in ``plan.json``. InputError when it is not UTF-8 from the root on, or holds a NUL."""
    text = str(folder)
    whole = os.path.abspath(text)
    shown = whole.encode(errors="replace").decode().replace("\0", "?")
    if shown != whole:
        raise InputError(f"The path {shown} is not valid UTF-8.", hint=f"Rename it, or choose another with {flag}.")
    return text


def made(folder: Path, planned: Plan) -> BinaryIO:
    """Make the folder of a run that is about to start; its supervisor's log. Errors as those of :func:`free`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _claim(folder)
        create_plan(folder, planned)
        return (folder / LOGS / "supervisor.txt").open("ab")
    except OSError as error:
        raise LaunchError(f"{folder} cannot be made: {_reason(error)}.", hint=_HINT) from error


def _claim(folder: Path) -> None:
    """Of two runs that start at the same moment one gets the folder."""
    try:
        (folder / CONTROL).mkdir()
    except FileExistsError as error:
        raise InputError(f"{folder} holds a run already.", hint=_HINT) from error


def _checked(folder: Path) -> Path:
    if (folder / PLAN).exists() or (folder / EXPERIMENT).exists() or (folder / CONTROL).exists():
        raise InputError(f"{folder} holds a run already.", hint=_HINT)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file.", hint="Choose a folder with --out.")
    standing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if not standing.is_dir() or not os.access(standing, os.W_OK | os.X_OK):
        raise LaunchError(f"Nothing can be written to {standing}.", hint=_HINT)
    return folder


def _reason(error: OSError | RuntimeError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error).rstrip(".")
