"""Where a process of a user's own command stands: which rank it is, and whether it is the one that speaks for it.

A process is a rank once it has made a training step, and no sooner: launchers, data loaders and compilers import torch
too, and have a rank's environment.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from meshscope.capture.workers.own_journal import OwnJournal
from meshscope.experiment import Experiment
from meshscope.recording.layout import CONTROL, LOGS, read_experiment

HOOK_LOG = "hook.txt"
RECORDING = "MESHSCOPE_RECORDING"

# Rank, world and place on this host, by who starts the processes. torchrun's come first: srun may start torchrun.
_ENVIRONMENTS = (
    ("RANK", "WORLD_SIZE", "LOCAL_RANK"),
    ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
)


@dataclass(frozen=True)
class Place:
    """``local_rank`` is the rank's place on its host."""

    rank: int = 0
    ranks: int = 1
    local_rank: int = 0


def begin(framework: str) -> None:
    """The script has imported a framework: listen for its steps."""
    if framework == "torch":
        from meshscope.capture.workers import own_listening

        own_listening.begin()
    elif framework == "deepspeed":
        from meshscope.capture.workers import own_listening

        own_listening.begin_engines()
    else:
        from meshscope.capture.workers import own_jax

        own_jax.begin()


def place(environment: dict[str, str] | None = None) -> Place:
    """As the environment tells it; the only rank of one where it tells nothing."""
    known = dict(os.environ) if environment is None else environment
    for names in _ENVIRONMENTS:
        rank, ranks, local_rank = (_number(known.get(name)) for name in names)
        if rank is not None and ranks is not None and rank < ranks:
            return Place(rank, ranks, rank if local_rank is None else local_rank)
    return Place()


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None


def say(text: str) -> None:
    """A line in the hook's log of the recording; a disk that is full costs the line and nothing else."""
    try:
        with (_recording() / LOGS / HOOK_LOG).open("a", encoding="utf-8") as log:
            log.write(f"{os.getpid()} {text}\n".replace("\0", "?"))
    except OSError:
        return


def _recording() -> Path:
    return Path(os.environ[RECORDING])


def recorded() -> Experiment:
    """The head of the recording that this process runs under."""
    return read_experiment(_recording())


@dataclass(frozen=True)
class Enlisted:
    """A process that speaks for a rank."""

    recording: Path
    experiment: Experiment
    journal: OwnJournal


def enlist(rank: int) -> Enlisted | None:
    """Take the rank; None where another process has it (a restart, or a second training of the same command)."""
    recording = _recording()
    if not _claims(recording / CONTROL / f"rank{rank}.pid"):
        say(f"refused: a second process says that it is rank {rank}: only the first is recorded")
        return None
    experiment = read_experiment(recording)
    return Enlisted(recording, experiment, OwnJournal(recording, rank, t0_unix_ns=experiment.t0_unix_ns))


def _claims(path: Path) -> bool:
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        return False
    os.write(descriptor, f"{os.getpid()}\n".encode())
    os.close(descriptor)
    return True


def harmless(call: Callable[..., None], *, on_failure: Callable[[], None]) -> Callable[..., None]:
    """``call``, whose failure is a line in the log, and never the script's.

    After one it is not called again: what failed once may be halfway through.
    """
    has_failed = False

    def quiet(*arguments: Any, **named: Any) -> None:
        nonlocal has_failed
        if has_failed:
            return
        try:
            call(*arguments, **named)
        except Exception as error:  # noqa: BLE001  # the script must go on, whatever this is
            has_failed = True
            place = error.__traceback__
            while place is not None and place.tb_next is not None:
                place = place.tb_next
            where = f"{place.tb_frame.f_code.co_filename}:{place.tb_lineno}" if place is not None else ""
            say(f"failed: {type(error).__name__}: {error} at {where}; nothing is recorded from here on")
            on_failure()

    return quiet


def on_error(told: Callable[[BaseException], None]) -> None:
    """Call ``told`` with the exception that ends the script, before it is shown as ever."""
    shown = sys.excepthook

    def excepthook(kind: Any, error: Any, trace: Any) -> None:
        told(error)
        shown(kind, error, trace)

    sys.excepthook = excepthook
