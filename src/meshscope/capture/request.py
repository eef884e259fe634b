"""What was asked for, before and after it is known what this machine can do."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

import msgspec

from meshscope.capture.nodes import Nodes
from meshscope.errors import InputError

STABLE_FRAC = 0.02
"""How wide the interval of a median step may be for it to be stable, as a share of it."""


@dataclass(frozen=True)
class Windows:
    """When ranks profile. Counts are steps.

    The first window starts at step ``first`` (past warm-up), each after ``warmup`` steps that the profiler only
    watches, and lasts ``active`` steps; 0 profiles nothing. With ``wait`` the cycle is fixed: that many unprofiled
    steps between windows. Without it only the first is sure, and more follow as long as what they cost stays within
    ``budget_frac`` of the training time.
    """

    first: int = 5
    warmup: int = 1
    active: int = 1
    wait: int | None = None
    budget_frac: float = 0.04


@dataclass(frozen=True)
class Request:
    """``strategies`` are names of workloads, ``single`` both baselines, ``all`` what can run here; None and "" leave
    the choice to the plan.

    ``ranks`` are those of all ``nodes`` together. ``ranks_each`` and ``batch_each`` make a sweep: a run for each of
    them (``ranks`` is then the most of them). ``options`` are further flags of the workloads as they stand on a
    command line. ``workloads`` is the folder
    of scripts ("" for the bundled ones). A rank that makes no step for ``patience_s`` (or ten times its longest
    step, whichever is longer) has hung; importing, compiling and stopping the profiler may take
    ``startup_patience_s``. Every ``check_every`` steps ranks leave fingerprints (0: never). ``command`` is a user's
    own, to run instead of any workload. ``is_until_stable``: a run ends once its median step time is known well enough,
    after ``steps`` at the latest.
    """

    strategies: tuple[str, ...]
    model: str = "tiny"
    ranks: int | None = None
    steps: int | None = None
    batch: int | None = None
    ranks_each: tuple[int, ...] = ()
    batch_each: tuple[int, ...] = ()
    out: str = ""
    options: tuple[str, ...] = ()
    workloads: str = ""
    windows: Windows = field(default_factory=Windows)
    patience_s: float = 120.0
    startup_patience_s: float = 600.0
    check_every: int = 10
    command: tuple[str, ...] = ()
    is_until_stable: bool = False
    nodes: Nodes = field(default_factory=Nodes)

    def flags(self) -> list[str]:
        """The workload's own flags, those of ``options`` last, so that they win."""
        numbers = (("--steps", self.steps), ("--batch", self.batch))
        given = [part for flag, value in numbers if value is not None for part in (flag, str(value))]
        return ["--model", self.model, *given, *self.options]


def checked(request: Request) -> Request:
    """The request itself; InputError where a number in it makes no sense whatever the machine."""
    windows = request.windows
    for name, value, least in (
        ("The first window's step", windows.first, 0),
        ("The profiler's warm-up", windows.warmup, 0),
        ("A window's length", windows.active, 0),
        ("The wait between windows", windows.wait or 0, 0),
        ("The profiler's budget", windows.budget_frac, 0),
        ("The number of ranks", min(request.ranks_each, default=1 if request.ranks is None else request.ranks), 1),
        ("The batch", min(request.batch_each, default=1), 1),
        ("The patience", request.patience_s, 0.1),
        ("The patience at start", request.startup_patience_s, 0.1),
        ("The distance between checks", request.check_every, 0),
    ):
        if value < least:
            raise InputError(f"{name} is {value}.", hint=f"It must be {least} or more.")
    return request


def as_plain(request: Request) -> dict[str, Any]:
    """As it stands in ``plan.json``."""
    plain: dict[str, Any] = msgspec.to_builtins(dataclasses.asdict(request))
    return plain


def from_plain(plain: dict[str, Any]) -> Request:
    return msgspec.convert(plain, Request)
