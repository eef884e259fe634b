"""A model of the user's own: ``--model package.module:factory``, looked for from the current folder on.

The factory takes nothing. For torch it returns ``(module, batch)``, where ``module(*batch)`` is a loss, or
``(module, batch, loss)``, where ``loss(module(*batch[:-1]), batch[-1])`` is. For JAX it returns a flax module in the
place of torch's, or ``(init, loss, batch)`` with ``init(key)`` the parameters and ``loss(params, *batch)``. A batch is
an array, a tuple of them, or a dict (``module(**batch)``), each with a row per sample; steps are filled with its rows,
over and over. What goes wrong in the user's code is an OptionError that names its file and line.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from options import Options
from refusals import OptionError

_HERE = Path(__file__).resolve().parent
_RETURNS = "(module, batch), (module, batch, loss) or, for JAX, (init, loss, batch)"
_LONGEST = 300


@functools.cache
def made(name: str) -> tuple[Any, ...]:
    """What the factory returns, called once in a process. OptionError: it cannot be found, fails, or returns no
    tuple of two or three."""
    module_name, _, factory_name = name.partition(":")
    if not os.path.exists(os.curdir):
        raise OptionError("The current folder is gone.", "Go to the folder of your module, and start from there.")
    with _from_here(), told(name, name):
        factory = getattr(_imported(module_name), factory_name, None)
        if not callable(factory):
            what = "is no function" if factory is not None else "is not there"
            raise OptionError(
                f"{factory_name} {what} in {module_name}.",
                "Name a function that takes nothing: package.module:factory.",
            )
        found = factory()
    if not isinstance(found, tuple) or len(found) not in (2, 3):
        raise wrong(name, factory, f"returns {_what(found)}", f"Return {_RETURNS}.")
    return found


def batch(name: str) -> Any:
    """The sample batch: the second of what the factory returns, or the third after two functions."""
    found = made(name)
    return found[2] if len(found) == 3 and is_plain(found) else found[1]


def is_plain(found: tuple[Any, ...]) -> bool:
    """Whether it is two functions and a batch, ``init`` and ``loss`` of JAX."""
    return callable(found[0]) and not _is_module(found[0]) and callable(found[1])


def rows(options: Options, step: int, places: range) -> tuple[Any, ...]:
    """The rows of the sample batch that stand at some places of a step's batch, of each of its arrays."""
    found = _sample(options.model)
    counts = sorted({len(array) for array in found})
    if not found or len(counts) > 1 or not counts[0]:
        what = f"arrays of {' and '.join(map(str, counts))} rows" if counts else "no array"
        raise OptionError(
            f"The sample batch of {options.model} has {what}.",
            "Give every array of it one row per sample: their first sizes must be equal, and above 0.",
        )
    picked = [(step * options.batch + place) % counts[0] for place in places]
    return tuple(array[picked] for array in found)


@functools.cache
def _sample(name: str) -> list[Any]:
    """The arrays of the sample batch, brought to the host once."""
    return arrays(batch(name))


def arrays(held: Any) -> list[Any]:
    """Every array in a batch, in order; JAX's as numpy's, so that rows are picked on the host."""
    if isinstance(held, dict):
        return [array for value in held.values() for array in arrays(value)]
    if isinstance(held, list | tuple):
        return [array for value in held for array in arrays(value)]
    if not getattr(held, "shape", ()):
        return []
    return [held if hasattr(held, "untyped_storage") else np.asarray(held)]


def rebuilt(held: Any, new: Iterator[Any]) -> Any:
    """A batch of the same form with other arrays in it; what is no array stays."""
    if isinstance(held, dict):
        return {key: rebuilt(value, new) for key, value in held.items()}
    if isinstance(held, list | tuple):
        return tuple(rebuilt(value, new) for value in held)
    return next(new) if getattr(held, "shape", ()) else held


def wrong(name: str, factory: Any, what: str, hint: str) -> OptionError:
    """An error that names the factory's own place."""
    code = getattr(factory, "__code__", None)
    at = f" ({_short(code.co_filename)}:{code.co_firstlineno})" if code else ""
    return OptionError(f"{name}{at} {what}.", hint)


def of_another_framework(name: str, found: Any, wanted: str, hint: str) -> OptionError:
    """The factory made something for another framework."""
    return OptionError(f"{name} returns {_what(found)} first, where {wanted} is needed.", hint)


def _imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        raise OptionError(
            f"There is no module {error.name} in {os.getcwd()} or installed.",
            "Go to the folder that holds it, or install it, and write --model package.module:factory.",
        ) from error


@contextmanager
def told(what: str, name: str) -> Iterator[None]:
    """What the user's code raises becomes an OptionError that says ``what`` failed, and where."""
    try:
        yield
    except OptionError:
        raise
    except Exception as error:  # the user's code may raise anything
        said = " ".join(f"{type(error).__name__}: {error}".split())[:_LONGEST].rstrip(".")
        raise OptionError(
            f"{what} failed at {_place(error)}: {said}.",
            f"Mend it there; alone it is: python -c 'from {name.replace(':', ' import ')} as f; f()'",
        ) from error


def _place(error: Exception) -> str:
    """The innermost line of the user's own; of a file that cannot be read as Python, the line in it."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{_short(error.filename)}:{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    user = [
        frame for frame in frames if Path(frame.filename).is_relative_to(os.getcwd()) and not _is_ours(frame.filename)
    ]
    frame = (user or list(frames))[-1]
    return f"{_short(frame.filename)}:{frame.lineno}"


def _short(file: str) -> str:
    path = Path(file)
    return str(path.relative_to(os.getcwd())) if path.is_relative_to(os.getcwd()) else str(path)


@contextmanager
def _from_here() -> Iterator[None]:
    """Modules are looked for in the current folder first; those beside this one are out of the way meanwhile, so that
    the user's may have their names (``models`` is a common one)."""
    path, aside = sys.path[:], {name: module for name, module in sys.modules.items() if _is_ours(_file(module))}
    for name in aside:
        del sys.modules[name]
    sys.path[:] = [os.getcwd(), *(entry for entry in path if Path(entry).resolve() != _HERE)]
    try:
        yield
    finally:
        sys.path[:] = [*path, os.getcwd()]
        sys.modules.update(aside)


def _file(module: Any) -> str:
    return getattr(module, "__file__", None) or ""


def _is_ours(file: str) -> bool:
    return bool(file) and Path(file).resolve().parent in (_HERE, _HERE / "models")


def _is_module(found: Any) -> bool:
    """torch's or flax's: neither is imported here."""
    return hasattr(found, "parameters") or (hasattr(found, "init") and hasattr(found, "apply"))


def _what(found: Any) -> str:
    if isinstance(found, tuple):
        return f"a tuple of {len(found)}"
    kind = type(found).__name__
    return "None" if found is None else f"{'an' if kind[:1].lower() in 'aeiou' else 'a'} {kind}"
