"""Begins the watch in every Python process of a command that runs under ``meshscope run -- COMMAND``.

Its folder stands first on PYTHONPATH, so Python imports it before the script. It takes the folder off ``sys.path``,
runs the ``sitecustomize`` that it stands in front of, and waits until the script itself imports torch or JAX. Only then
is anything of meshscope loaded.

It runs in whatever Python the command uses: standard library only, nothing newer than Python 3.8, and whatever goes
wrong here is a line in the recording's log and never the script's concern.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys

TYPE_CHECKING = False  # typing itself takes longer to import than all of this
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__))
_FIRST_PYTHON = (3, 11)


def _say(text: str) -> None:
    """A line in the recording's log; nothing where even that fails."""
    try:
        with open(os.path.join(os.environ["MESHSCOPE_RECORDING"], "logs", "hook.txt"), "a", encoding="utf-8") as log:
            log.write(f"{os.getpid()} {' | '.join(text.splitlines())}\n")
    except (OSError, KeyError, ValueError):
        return


class _Places:
    """Finds the meshscope that started this command, and its msgspec where the script's Python has none.

    By name: nothing else of that installation may come before what the script's own Python has.
    """

    def __init__(self, source: str, packages: str) -> None:
        self._source, self._packages = source, packages

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname == "meshscope":
            return importlib.machinery.PathFinder.find_spec(fullname, [self._source])
        if fullname == "msgspec" and importlib.machinery.PathFinder.find_spec(fullname) is None:
            return importlib.machinery.PathFinder.find_spec(fullname, [self._packages])
        return None


class _Imports:
    """Tells when the script has imported a package, by the loader that the package's own finder gives."""

    def __init__(self, told: Mapping[str, Callable[[], None]]) -> None:
        self._told = dict(told)

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname not in self._told:
            return None
        others = (finder for finder in list(sys.meta_path) if finder is not self and hasattr(finder, "find_spec"))
        found = (finder.find_spec(fullname, path, target) for finder in others)
        spec = next((spec for spec in found if spec is not None), None)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            self._follow(spec.loader, fullname)
        return spec

    def _follow(self, loader: Any, name: str) -> None:
        execute = loader.exec_module

        def exec_module(module: Any) -> None:
            del loader.exec_module  # one import: from here on the loader is as it was
            execute(module)
            told = self._told.pop(name, None)
            if told is not None:
                told()

        try:
            loader.exec_module = exec_module
        except AttributeError:
            _say(f"refused: the loader of {name} takes no hook")


def _begin(framework: str) -> None:
    """Load the watch of a framework that the script has just imported."""
    try:
        from meshscope.capture.workers import own_rank

        own_rank.begin(framework)
        _say(f"imported: {framework}")
    except Exception as error:  # noqa: BLE001  # the script must go on, whatever this is
        _say(f"refused: {type(error).__name__}: {error}")


def _why_not() -> str:
    """Why this Python cannot load the watch; "" where it can."""
    if sys.version_info < _FIRST_PYTHON:
        own, first = (".".join(map(str, version[:2])) for version in (sys.version_info, _FIRST_PYTHON))
        return f"it is Python {own}, and meshscope needs {first} or later"
    is_same = sys.implementation.cache_tag == os.environ.get("MESHSCOPE_TAG")
    if not is_same and importlib.machinery.PathFinder.find_spec("msgspec") is None:
        return "msgspec is not installed for it"
    return ""


def _watch() -> None:
    if "MESHSCOPE_RECORDING" not in os.environ:
        return
    why_not = _why_not()
    if why_not:
        _say(f"refused: {sys.executable} cannot be watched: {why_not}")
        return
    _say(f"started: {sys.executable}")
    sys.meta_path.insert(0, _Places(os.environ["MESHSCOPE_SOURCE"], os.environ["MESHSCOPE_PACKAGES"]))
    told = {
        "torch": lambda: _begin("torch"),
        "jax": lambda: _begin("jax"),
        "deepspeed.runtime.engine": lambda: _begin("deepspeed"),
    }
    sys.meta_path.insert(0, _Imports(told))


def _next() -> None:
    """The sitecustomize that Python would have imported without this one, run in its place; its errors are its own."""
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize")
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


sys.path[:] = [path for path in sys.path if os.path.abspath(path) != _HERE]
try:
    _watch()
except Exception as error:  # noqa: BLE001  # the script must go on, whatever this is
    _say(f"refused: {type(error).__name__}: {error}")
_next()
