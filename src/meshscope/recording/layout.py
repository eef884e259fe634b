"""Where things are in a recording and in a comparison, and how they get there whole."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeVar

import msgspec

from meshscope.errors import RecordingError
from meshscope.experiment import FORMAT, Experiment, Plan

T = TypeVar("T")

EXPERIMENT = "experiment.json"
PLAN = "plan.json"
JOURNAL = "journal"
TRACES = "traces"
LOGS = "logs"
FLIGHT = "flight"
STACKS = "stacks"
CONTROL = "control"
XPLANES = "plugins/profile"


def write_whole(path: Path, content: bytes) -> None:
    """Write so that a reader sees the whole file or none: a sibling temporary, then a rename."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    part.write_bytes(content)
    part.replace(path)


def create(folder: Path, experiment: Experiment) -> None:
    """Make an empty recording. Raises RecordingError where one stands already: nothing is overwritten."""
    if (folder / EXPERIMENT).exists():
        raise RecordingError(f"{folder} is a recording already.", hint="Choose another folder with --out.")
    for name in (JOURNAL, TRACES, LOGS):
        (folder / name).mkdir(parents=True, exist_ok=True)
    write_whole(folder / EXPERIMENT, _pretty(experiment))


def create_plan(folder: Path, plan: Plan) -> None:
    """Make the folder of a comparison. Raises RecordingError where a plan stands already."""
    if (folder / PLAN).exists() or (folder / EXPERIMENT).exists():
        raise RecordingError(f"{folder} holds a run already.", hint="Choose another folder with --out.")
    for name in (JOURNAL, LOGS, CONTROL):
        (folder / name).mkdir(parents=True, exist_ok=True)
    write_whole(folder / PLAN, _pretty(plan))


def read_experiment(folder: Path) -> Experiment:
    """Raises RecordingError when the folder is no recording or one of a later format."""
    return _read(folder / EXPERIMENT, Experiment)


def read_plan(folder: Path) -> Plan | None:
    """The plan of a comparison; None where the folder has none (a single recording, or loose recordings)."""
    return _read(folder / PLAN, Plan) if (folder / PLAN).is_file() else None


def recordings(folder: Path) -> tuple[Path, ...]:
    """The recordings of a folder, itself or its direct children, in the order of the plan or of their start.

    Whether they can be read is not asked: those that tell no start come last, and a damaged plan orders nothing.
    """
    if _is_recording(folder):
        return (folder,)
    try:
        plan = read_plan(folder)
    except RecordingError:
        plan = None
    if plan is not None:
        return planned(folder, plan)
    if not folder.is_dir():
        return ()
    return tuple(sorted((child for child in folder.iterdir() if _is_recording(child)), key=_by_start))


def planned(folder: Path, plan: Plan) -> tuple[Path, ...]:
    """The recordings of a plan that have begun, in its order."""
    return tuple(folder / run.folder for run in plan.runs if _is_recording(folder / run.folder))


def _is_recording(folder: Path) -> bool:
    """Also where the folder lets nobody in: whoever opens it is told."""
    try:
        return (folder / EXPERIMENT).is_file()
    except PermissionError:
        return True


def _by_start(folder: Path) -> tuple[bool, int, str]:
    try:
        return False, read_experiment(folder).t0_unix_ns, folder.name
    except RecordingError:
        return True, 0, folder.name


def _pretty(document: msgspec.Struct) -> bytes:
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


class _Head(msgspec.Struct):
    format: int = FORMAT


def _read(path: Path, kind: type[T]) -> T:
    try:
        raw = path.read_bytes()
        version = msgspec.json.decode(raw, type=_Head).format
        if version > FORMAT:
            raise RecordingError(
                f"{path} has format {version}; this meshscope reads up to {FORMAT}.",
                hint="Upgrade it: pip install --upgrade meshscope",
            )
        return msgspec.json.decode(raw, type=kind)
    except FileNotFoundError as error:
        raise RecordingError(
            f"{path.parent} is no meshscope recording: it has no {path.name}.",
            hint="Give the folder that meshscope run wrote, or open native traces with: meshscope analyze PATH",
        ) from error
    except OSError as error:
        raise RecordingError(f"{path} cannot be read: {error.strerror}.", hint="Check its permissions.") from error
    except msgspec.MsgspecError as error:
        raise RecordingError(f"{path} is damaged: {error}.", hint=_damaged_hint(path)) from error


def _damaged_hint(path: Path) -> str:
    if path.name == PLAN:
        return "Copy it anew from where it was made; the recordings beside it are read without it."
    traces = "its native traces can be read by themselves: meshscope analyze"
    return f"Copy it anew from where it was made; {traces} {path.parent / TRACES} (or {path.parent / 'plugins'})"
