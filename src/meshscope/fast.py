"""The door to the ``fast`` extra: numba, whose compiled code is kept in the platform's cache folder.

Everything works without it, only slower. Loading it costs half a second and compiling (once) some more, so nothing
small comes here; and where compiled code cannot be kept it is not used at all.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

SWITCH = "MESHSCOPE_FAST"
"""Environment: 0 never uses the extra, 1 uses it for files of any size."""

WORTH_BYTES = 64_000_000
"""A smaller file is read before numba is loaded."""

WORTH_SPANS = 8_000_000
"""Fewer intervals are united before numba is loaded."""

_LOADED_FOR_LESS = 64  # once it is loaded, inputs that are smaller by this factor are worth a call

_KEPT_IN = "NUMBA_CACHE_DIR"


def is_worth(size: int, worth: int) -> bool:
    """Whether an input of a size deserves the extra, where ``worth`` is what does, and there is one to use."""
    if size < worth // _LOADED_FOR_LESS and SWITCH not in os.environ:
        return False  # as nearly always: a question unites intervals many thousand times
    wanted = os.environ.get(SWITCH, "")
    if is_loaded():
        worth //= _LOADED_FOR_LESS
    if wanted == "0" or (wanted != "1" and size < worth):
        return False
    return is_ready()


def is_loaded() -> bool:
    """Whether this process has paid for numba already."""
    return "numba" in sys.modules


@cache
def is_ready() -> bool:
    """Whether numba is installed and has a place for its compiled code; makes the place known to it."""
    if find_spec("numba") is None:
        return False
    if is_loaded() or os.environ.get(_KEPT_IN):
        return True
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError:
        return False
    os.environ[_KEPT_IN] = str(folder)
    return True


def _sources() -> str:
    """What the compiled code was made from. Numba looks at a function's own file, not at those that it calls."""
    here = Path(__file__).parent
    files = (Path(__file__), here / "sweeps.py", *sorted(here.glob("readers/fast/*.py")))
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()[:16]


def cache_folder() -> Path:
    """Where compiled code is kept: apart for every change of what it was made from."""
    return _platform_folder() / "numba" / _sources()


def forget() -> None:
    """Remove all compiled code that is kept, of earlier versions too; it is made again when it is wanted."""
    shutil.rmtree(_platform_folder() / "numba", ignore_errors=True)


def _platform_folder() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "meshscope"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "meshscope"


def is_compiling() -> bool:
    """Whether machine code is made right now, by any thread. What is kept from an earlier process is not made again."""
    return _underway > 0


_underway = 0


@cache
def _watch_compiling() -> None:
    from numba.core import event

    class Counting(event.Listener):  # type: ignore[misc]  # numba is followed nowhere
        def on_start(self, event: Any) -> None:
            del event
            _count(1)

        def on_end(self, event: Any) -> None:
            del event
            _count(-1)

    event.register("numba:compile", Counting())


def _count(change: int) -> None:
    global _underway  # noqa: PLW0603  # numba compiles under a lock of its own, one function inside another
    _underway += change


def compiled(function: Function) -> Function:
    """``function`` in machine code, kept for the next process. It may hold arrays and numbers, and build neither."""
    from numba import njit

    _watch_compiling()
    # Without the runtime (_nrt) arrays are not counted as they are handed on, which would cost more than the scanning.
    kept: Function = njit(cache=True, nogil=True, error_model="numpy", forceinline=True, _nrt=False)(function)
    return kept
