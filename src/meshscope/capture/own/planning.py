"""A user's own command as a plan: what is known before it runs, which is little."""

from __future__ import annotations

import dataclasses
import importlib.util
import itertools
import os
import re
import shutil
import sys
import time
from pathlib import Path

from meshscope.capture import machine, places
from meshscope.capture.request import Request, as_plain, checked
from meshscope.errors import InputError, LaunchError
from meshscope.experiment import Experiment, Plan, PlannedRun

HOOK = Path(__file__).resolve().parent.parent / "hook"
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST = 40
_INTERPRETER = re.compile(r"^(python|pypy)[\d.]*$")


def plan(request: Request) -> Plan:
    """The plan of ``request.command``; starts nothing.

    Raises InputError for numbers that make no sense, LaunchError where there is no such command.
    """
    checked(request)
    program = request.command[0]
    if shutil.which(program) is None:
        raise LaunchError(
            f"There is no command {program!r}.", hint="Give it as you would type it: -- torchrun train.py"
        )
    name = name_of(request.command)
    folder = places.free(request.out) if request.out else places.default_folder(_as_folder(name))
    run = PlannedRun(strategy=name, title="", framework="", folder=_as_folder(name))
    settled = dataclasses.replace(request, model="", out=str(folder))
    return Plan(t0_unix_ns=time.time_ns(), runs=[run], ranks=0, model="", request=as_plain(settled))


def name_of(command: tuple[str, ...]) -> str:
    """What a run is called: its script's file name, else the module after ``-m``, else the program.

    ``train.py`` of ``torchrun --nproc_per_node 2 train.py``.
    """
    script = next((part for part in command if part.endswith(".py")), "")
    if script:
        return Path(script).name
    after = [module for flag, module in itertools.pairwise(command) if flag in ("-m", "--module")]
    programs = [module for module in after if not module.startswith(("torch.distributed.", "accelerate."))]
    if programs:
        return programs[0]
    named = [Path(part).name for part in command if not part.startswith("-")]
    return next((name for name in named if not _INTERPRETER.match(name)), named[0] if named else command[0])


def _as_folder(name: str) -> str:
    return _UNSAFE.sub("-", name.removesuffix(".py"))[:_LONGEST].strip(".-") or "command"


def experiment(request: Request, planned: PlannedRun) -> Experiment:
    """The head of the recording; what the script is comes later, as ``Recognized``."""
    return Experiment(
        t0_unix_ns=time.time_ns(),
        strategy=planned.strategy,
        title="",
        framework="",
        ranks=0,
        device_kind="cpu",
        model="",
        cores=len(machine.cores()),
        host_cores=machine.host_cores(),
        host=machine.host(),
        versions={name: version for name, version in machine.versions().items() if name == "meshscope"},
        command=list(request.command),
    )


def environment(recording: Path, *, is_unbuffered: bool) -> dict[str, str]:
    """The user's own, with the hook before what PYTHONPATH holds.

    ``is_unbuffered``: what the script prints is read as it comes, and not by a terminal.
    """
    before = os.environ.get("PYTHONPATH")
    own = {
        "PYTHONPATH": os.pathsep.join([str(HOOK), *([before] if before else [])]),
        "MESHSCOPE_RECORDING": str(recording.absolute()),
        "MESHSCOPE_SOURCE": str(Path(__file__).resolve().parents[3]),
        "MESHSCOPE_PACKAGES": _folder_of("msgspec"),
        # Kineto tells on stderr of each start and stop; the script's is its own. 6 is past its highest level.
        "KINETO_LOG_LEVEL": os.environ.get("KINETO_LOG_LEVEL", "6"),
        "MESHSCOPE_TAG": sys.implementation.cache_tag or "",
    }
    if is_unbuffered:
        own["PYTHONUNBUFFERED"] = os.environ.get("PYTHONUNBUFFERED", "1")
    return os.environ | own


def _folder_of(package: str) -> str:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise InputError(f"{package} is missing from this installation.", hint="Install meshscope again.")
    return str(Path(spec.origin).resolve().parents[1])
