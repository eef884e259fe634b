"""One run on several machines: which of them this is, and where they meet.

Each node plans, supervises and records its own ranks, and none of them reads another's folder: meshscope needs no
network of its own, and a link that breaks costs no recording. torchrun's agents meet at the rendezvous, which node 0
serves. Ranks are numbered node by node, so the rendezvous is the static one: a dynamic one numbers nodes as they come.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from meshscope.errors import InputError

_HINT = "On each node: meshscope run STRATEGY --nodes N --node-rank I --rendezvous HOST:PORT"
_FIRST_PORT, _PORTS = 20_000, 20_000
_GROUP = re.compile(r"^(?P<before>[^\[,]*)\[(?P<first>\d+)[^\]]*\](?P<after>[^,]*)")


@dataclass(frozen=True)
class Nodes:
    """``rank`` is this machine's number, from 0; ``rendezvous`` is node 0's HOST:PORT, "" for one machine alone.

    Each run of a plan meets at a port of its own, counted on from there: a node that is done with one would else join
    what is left of it at another.
    """

    count: int = 1
    rank: int = 0
    rendezvous: str = ""

    def place_of(self, number: int) -> str:
        """Where the run with this number in the plan meets."""
        if self.count == 1:
            return ""
        host, _, port = self.rendezvous.rpartition(":")
        return f"{host}:{int(port) + number}"


def nodes(
    count: int | None = None,
    rank: int | None = None,
    rendezvous: str | None = None,
    *,
    environ: Mapping[str, str],
) -> Nodes:
    """By the options, else by Slurm, else one machine. InputError for what is incomplete or makes no sense."""
    if count is None and rank is None and rendezvous is None:
        return slurm(environ)
    if count == 1 and rank in (None, 0):
        return Nodes()
    if count is None or rank is None or not rendezvous:
        raise InputError("--nodes, --node-rank and --rendezvous belong together.", hint=_HINT)
    if not 0 <= rank < count:
        raise InputError(f"There is no node {rank} of {count}.", hint=f"--node-rank counts from 0 to {count - 1}.")
    host, _, port = rendezvous.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65_536:
        raise InputError(f"{rendezvous!r} is no HOST:PORT.", hint=_HINT)
    return Nodes(count, rank, rendezvous)


def slurm(environ: Mapping[str, str]) -> Nodes:
    """What Slurm says in a task of ``srun``; one machine elsewhere, also in the script of ``sbatch``, which runs once.

    The port follows from the job, so that all nodes know it and jobs that share a node do not meet.
    """
    if "SLURM_STEP_ID" not in environ and "SLURM_STEPID" not in environ:
        return Nodes()
    count = _number(environ, "SLURM_STEP_NUM_NODES", "SLURM_NNODES", "SLURM_JOB_NUM_NODES")
    if count < 2:
        return Nodes()
    if _number(environ, "SLURM_LOCALID"):
        raise InputError(
            "Slurm has started several tasks on this node; meshscope starts the ranks of a node itself.",
            hint="Use: srun --ntasks-per-node=1 meshscope run …",
        )
    names = environ.get("SLURM_STEP_NODELIST") or environ.get("SLURM_JOB_NODELIST") or ""
    first = first_host(names)
    if not first or "SLURM_NODEID" not in environ:
        raise InputError(f"Slurm says {count} nodes and not which they are.", hint=_HINT)
    job = _number(environ, "SLURM_JOB_ID", "SLURM_JOBID") * 31 + _number(environ, "SLURM_STEP_ID", "SLURM_STEPID")
    return Nodes(count, _number(environ, "SLURM_NODEID"), f"{first}:{_FIRST_PORT + job % _PORTS}")


def first_host(names: str) -> str:
    """``gpu01`` of ``gpu[01-04,07],login``; "" of what is no list of hosts."""
    match = _GROUP.match(names)
    return match["before"] + match["first"] + match["after"] if match else names.partition(",")[0]


def _number(environ: Mapping[str, str], *names: str) -> int:
    """The first of some variables that is a number; 0 where none is."""
    return next((int(environ[name]) for name in names if environ.get(name, "").isdecimal()), 0)
