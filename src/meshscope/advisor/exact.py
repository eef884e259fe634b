"""Memory as the framework itself makes it: torch on fake tensors, XLA's plan of a compiled step.

Neither needs the devices that are asked about, nor memory for them. What is asked is a bundled workload, with a preset
or with a model of the user's own; other models have no code to run.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from functools import partial

import msgspec

from meshscope.advisor.asking import Limits, Said, asked
from meshscope.advisor.bundled import Bundled, bundled, is_known, of_strategy
from meshscope.advisor.candidate import Candidate
from meshscope.advisor.coverage import NotCovered
from meshscope.advisor.figures import Figure, Source
from meshscope.capture import frameworks
from meshscope.errors import InputError
from meshscope.units import printable

_LIMITS = Limits()
_WORKERS = {"torch": "fake_torch", "jax": "ahead_jax"}
_SOURCES: dict[str, Source] = {"torch": "framework", "jax": "compiler"}
_WHERE = {"torch": "torch on fake tensors", "jax": "XLA's plan, compiled ahead of time"}
_LONGEST = 300
_OF_CPU_FRAC = 0.1
"""How far what CPU operators allocate may be from a GPU's, either way: torch's own tests hold its tracker of the same
kind to that against the peak of CUDA's allocator (github.com/pytorch/pytorch, test/distributed/_tools/
test_fsdp2_mem_tracker.py at 0d74d9e5). On a CPU it is what is."""

_SAME_ANYWHERE = ("parameters", "gradients", "buckets", "buffers", "optimizer", "arguments", "outputs", "results")


_PARTS = {
    "parameters": ("parameters", "buffers"),
    "gradients": ("gradients",),
    "optimizer": ("optimizer",),
    "activations": ("activations",),
    "communication": ("buckets", "gathered", "communication"),
    "temporaries": ("temporaries", "batch"),
}


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """A collective that a device takes part in ``count`` times a step. ``size_bytes`` is as nccl-tests has it (what
    an all-gather leaves, what any other takes), −1 where untold; ``ranks`` in each of ``groups`` groups, 0 untold."""

    kind: str
    size_bytes: int
    ranks: int = 0
    groups: int = 0
    count: int = 1


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker prints."""

    version: str = ""
    sizes: dict[str, int] = {}
    at_peak: dict[str, int] = {}
    peak_bytes: int = -1
    peak_in: str = ""
    collectives: tuple[Sent, ...] = ()
    notes: tuple[str, ...] = ()
    most_state_rank: int = -1
    worker_bytes: int = 0
    seconds: float = 0.0
    error: str = ""
    hint: str = ""
    untold: str = ""


@dataclass(frozen=True)
class ExactMemory:
    """Of the device ``rank``, in bytes.

    ``sizes`` are the most that each category has in a step: of torch ``parameters``, ``gradients``, ``buckets`` (DDP's,
    where gradients do not lie in them), ``buffers``, ``optimizer`` and ``activations`` (what autograd keeps); of JAX
    ``parameters``, ``optimizer``, ``arguments`` (those two, the batch and random keys), ``outputs``, ``results``
    (outputs in no argument's place).

    ``peak`` and its parts ``at_peak`` are torch's, of its CPU operators; None and empty for JAX, of which
    ``cpu_temporaries_bytes`` are what XLA's CPU compiler would need beside the arguments: no GPU's figure.
    """

    strategy: str
    framework: str
    version: str
    rank: int
    ranks: int
    sizes: dict[str, Figure]
    peak: Figure | None
    at_peak: dict[str, Figure]
    peak_in: str
    collectives: tuple[Sent, ...]
    notes: tuple[str, ...]
    cpu_temporaries_bytes: int = -1
    worker_bytes: int = 0
    seconds: float = 0.0

    @property
    def categories(self) -> dict[str, Figure]:
        """``at_peak`` under the names that an analytic forecast has; together they are ``peak``. Empty for JAX."""
        return {
            name: _together([self.at_peak[part] for part in parts]) for name, parts in _PARTS.items() if self.at_peak
        }


def exact_memory(
    model: str,
    candidate: Candidate,
    devices: int,
    *,
    is_cpu: bool = False,
    flags: tuple[str, ...] = (),
    limits: Limits = _LIMITS,
) -> ExactMemory:
    """Of the device that needs most. ``model`` is a preset of the bundled workloads (``tiny``, ``125m``, ``1.3b``,
    ``moe``, …) or a factory, ``package.module:factory``; ``flags`` are further ones of the workloads. ``is_cpu`` says
    that the devices are CPUs: then activations and peaks of torch are theirs too, and not a GPU's within bounds.

    Raises NotCovered where there is no such workload or the framework cannot tell, InputError where the request is
    wrong, MissingPackageError without the framework.
    """
    if not is_known(model):
        raise NotCovered(
            f"{printable(model)} is a shape without code.",
            hint="A framework can be asked about a preset of the bundled workloads, or --model package.module:factory.",
        )
    return exact(bundled(model, candidate, devices, flags=flags), is_cpu=is_cpu, limits=limits)


def exact_of(
    strategy: str, flags: tuple[str, ...], devices: int, *, is_cpu: bool = False, limits: Limits = _LIMITS
) -> ExactMemory:
    """Of a workload as ``meshscope run`` takes it: its name and flags. Raises as :func:`exact_memory` does."""
    return exact(of_strategy(strategy, flags, devices), is_cpu=is_cpu, limits=limits)


def exact(what: Bundled, *, is_cpu: bool, limits: Limits = _LIMITS) -> ExactMemory:
    frameworks.require(what.workload.framework)
    asking = partial(_of_rank, what, is_cpu=is_cpu, limits=limits)
    found = max((asking(rank) for rank in _ends(what)), key=_needs)
    most = found[1].most_state_rank
    if most >= 0 and most != found[0]:
        found = max(found, asking(most), key=_needs)
    return _memory(what, *found, _OF_CPU_FRAC if not is_cpu and _is_torch(what) else 0.0)


def _ends(what: Bundled) -> tuple[int, ...]:
    """The ranks of which one needs most: all are alike, but that a pipeline's first stage keeps most micro-batches,
    and its last has the logits. (ZeRO-1 deals out whole parameters: the worker says to whom most go.)"""
    return (0, what.devices - 1) if getattr(what.options, "schedule", "none") != "none" and _is_torch(what) else (0,)


def _is_torch(what: Bundled) -> bool:
    return what.workload.framework == "torch"


def _needs(found: tuple[int, _Answer]) -> int:
    return found[1].peak_bytes


def _of_rank(what: Bundled, rank: int, *, is_cpu: bool, limits: Limits) -> tuple[int, _Answer]:
    worker = f"meshscope.advisor.workers.{_WORKERS[what.workload.framework]}"
    place = [
        "--script",
        str(what.workload.script),
        "--rank",
        str(rank),
        "--ranks",
        str(what.devices),
        *(["--cpu"] if is_cpu else []),
    ]
    line = [sys.executable, "-m", worker, *place, "--", *what.flags]
    return rank, _read(what, asked(line, os.environ | _quiet(), limits), limits)


def _quiet() -> dict[str, str]:
    """Nothing of a GPU is touched, and no module of the current folder is taken for one of Python's."""
    return {
        "CUDA_VISIBLE_DEVICES": "",
        "JAX_PLATFORMS": "cpu",
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "PYTHONSAFEPATH": "1",
        "OMP_NUM_THREADS": "1",
    }


def _read(what: Bundled, said: Said, limits: Limits) -> _Answer:
    """Raises InputError or NotCovered in the worker's words."""
    about = f"{what.workload.strategy} on {what.devices} {'device' if what.devices == 1 else 'devices'}"
    if said.over == "time":
        raise NotCovered(f"{about}: {_WHERE[what.workload.framework]} took more than {limits.patience_s:.0f} s.")
    if said.over == "memory":
        gib = limits.memory_bytes / 2**30
        raise NotCovered(f"{about}: {_WHERE[what.workload.framework]} itself needs more than {gib:.0f} GiB here.")
    try:
        answer = msgspec.json.decode(said.output.splitlines()[-1] if said.output.strip() else b"", type=_Answer)
    except msgspec.MsgspecError:
        words = said.words or f"exit code {said.exit_code}"
        raise NotCovered(f"{about}: the process that asks {what.workload.framework} failed: {_clean(words)}") from None
    if answer.error:
        raise InputError(f"{what.workload.strategy}: {_clean(answer.error)}", hint=_clean(answer.hint))
    if answer.untold:
        raise NotCovered(f"{about}: {_clean(answer.untold)}")
    return answer


def _clean(text: str) -> str:
    words = printable(" ".join(text.split()))
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…"


def _memory(what: Bundled, rank: int, answer: _Answer, off_frac: float) -> ExactMemory:
    framework = what.workload.framework
    figure = partial(_figure, framework, off_frac)
    sizes = dict(answer.sizes)
    temporaries = sizes.pop("cpu_temporaries", -1)
    return ExactMemory(
        strategy=what.workload.strategy,
        framework=framework,
        version=answer.version,
        rank=rank,
        ranks=what.devices,
        sizes={name: figure(name, size) for name, size in sizes.items()},
        peak=figure("peak", answer.peak_bytes) if answer.peak_bytes >= 0 else None,
        at_peak={name: figure(name, size) for name, size in answer.at_peak.items()},
        peak_in=answer.peak_in,
        collectives=answer.collectives,
        notes=answer.notes,
        cpu_temporaries_bytes=temporaries,
        worker_bytes=answer.worker_bytes,
        seconds=answer.seconds,
    )


def _together(figures: list[Figure]) -> Figure:
    value, low, high = (sum(part) for part in zip(*((one.value, one.low, one.high) for one in figures), strict=True))
    return Figure(value, low, high, "framework", figures[-1].where)


def _figure(framework: str, off_frac: float, name: str, size_bytes: int) -> Figure:
    if name in _SAME_ANYWHERE:
        return Figure(size_bytes, size_bytes, size_bytes, _SOURCES[framework], _WHERE[framework])
    low, high = size_bytes * (1 - off_frac), size_bytes * (1 + off_frac)
    return Figure(size_bytes, low, high, _SOURCES[framework], f"{_WHERE[framework]}, its CPU operators")
