"""A workload's script run for its allocations or its program alone: what starts it and how its end is told."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from meshscope.capture import lifeline

_HERE = Path(__file__).resolve().parent
_LONGEST = 400


class Enough(BaseException):
    """Leaves the script where everything is known; no ``except Exception`` of a user's stands in the way."""


class UntoldError(Exception):
    """The framework cannot say without real numbers, real devices or a real run."""


@dataclass(frozen=True)
class Asked:
    """``script`` with the workload's own ``flags``, as rank ``rank`` of ``ranks``; ``is_cpu``: on CPUs, not GPUs."""

    script: Path
    rank: int
    ranks: int
    flags: list[str]
    is_cpu: bool


def answer(tell: Callable[[Asked], dict[str, Any]]) -> int:
    """Prints what ``tell`` finds, or ``error`` and ``hint`` (the request is wrong), or ``untold`` (no answer)."""
    lifeline.tie_to(os.getppid())
    started_s = time.perf_counter()
    asked = _asked()
    with _kept_clear() as out:
        sys.path.insert(0, str(asked.script.parent))
        sys.argv = [str(asked.script), *asked.flags]
        try:
            found = tell(asked)
        except UntoldError as why:
            found = {"untold": str(why)}
        except Exception as error:  # noqa: BLE001  # the answer has to say what went wrong, whatever it was
            found = _refused(error)
        found["seconds"] = time.perf_counter() - started_s
        out.write(json.dumps(found) + "\n")
    return 0


def options(asked: Asked) -> Any:
    """As the script's own folder parses them."""
    return importlib.import_module("options").parse(asked.flags)


def imported(script: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(script.stem, script)
    if spec is None or spec.loader is None:
        raise ImportError(f"{script} is no Python script")
    module = importlib.util.module_from_spec(spec)
    sys.modules[script.stem] = module
    spec.loader.exec_module(module)
    return module


def _refused(error: Exception) -> dict[str, Any]:
    """A refusal of the folder's own is told in its words; anything else with the place where it happened."""
    if type(error).__name__ == "OptionError":
        return {"error": str(error.args[0]), "hint": str(getattr(error, "hint", ""))}
    traceback.print_exception(error)
    said = " ".join(f"{type(error).__name__}: {error}".split())
    return {"untold": f"{said[:_LONGEST]} (at {_place(error)})"}


def _place(error: Exception) -> str:
    """The innermost line outside of installed packages, else the innermost."""
    frames = list(traceback.extract_tb(error.__traceback__))
    own = [
        frame
        for frame in frames
        if "site-packages" not in frame.filename and not Path(frame.filename).is_relative_to(_HERE)
    ]
    frame = (own or frames)[-1]
    return f"{Path(frame.filename).name}:{frame.lineno}"


@contextmanager
def _kept_clear() -> Iterator[Any]:
    """Standard output for the answer alone: what scripts and users' models print goes to standard error."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        yield out
    finally:
        out.close()


def _asked() -> Asked:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--script", type=Path, required=True)
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("flags", nargs="*")
    given = parser.parse_args()
    return Asked(given.script, given.rank, given.ranks, given.flags, given.cpu)
