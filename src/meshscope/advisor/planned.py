"""Memory as the framework itself plans it, for each strategy that a bundled workload can lay out, beside the formulas.

It is the only answer for a model of the user's own, whose shape nobody but its framework knows.
"""

from __future__ import annotations

from dataclasses import dataclass

from meshscope.advisor.candidate import Candidate, Numerics
from meshscope.advisor.cluster import Cluster
from meshscope.advisor.coverage import NotCovered
from meshscope.advisor.exact import ExactMemory, exact_memory
from meshscope.advisor.forecast import MemoryForecast
from meshscope.advisor.hardware import cluster
from meshscope.advisor.memory import memory
from meshscope.advisor.naming import layout_name
from meshscope.advisor.numerics import FP32, numerics
from meshscope.advisor.presets import Preset, is_own, preset
from meshscope.advisor.request import Request, words_of
from meshscope.errors import InputError

_TORCH = ("ddp", "zero1", "fsdp")
_JAX = ("dp", "fsdp")
_STAGES = {"ddp": 0, "dp": 0, "pmap": 0, "zero1": 1, "zero2": 2, "fsdp": 3, "hsdp": 3}


@dataclass(frozen=True)
class Planned:
    """``exact`` is None where the framework cannot tell; ``why`` says so. ``analytic`` is the formulas' answer to the
    same question, None for a model whose shape is not known."""

    name: str
    candidate: Candidate
    exact: ExactMemory | None
    analytic: MemoryForecast | None
    why: str = ""


@dataclass(frozen=True)
class Plans:
    """All that was asked of one model."""

    model: str
    cluster: Cluster
    batch: int
    found: tuple[Planned, ...]


def plans(request: Request) -> Plans:
    """Each strategy asked in a process of its own, one after another: seconds to a minute each.

    InputError: the request makes no sense. MissingPackageError: the framework is not installed.
    """
    where = cluster(request.devices, request.hardware)
    model = None if is_own(request.model) else preset(request.model)
    batch = request.batch or (request.micro_batch or 1) * where.devices
    kinds = numerics(request.precision) if request.precision else FP32
    framework = "jax" if request.framework == "jax" else "torch"
    candidates = [
        _candidate(request, model, word, framework, where.devices, batch, kinds) for word in _words(request, framework)
    ]
    name = model.name if model else request.model
    return Plans(name, where, batch, tuple(_planned(name, model, each, where) for each in candidates))


def _words(request: Request, framework: str) -> tuple[str, ...]:
    asked = tuple(word.removeprefix("=") for word in words_of(request))
    wrong = next((word for word in asked if word not in (*_STAGES, "tp", "pp")), None)
    if wrong is not None:
        raise InputError(f"{wrong} has no exact plan.", hint=f"There are {', '.join((*_STAGES, 'tp', 'pp'))}.")
    return asked or (_JAX if framework == "jax" else _TORCH)


def _candidate(
    request: Request, model: Preset | None, word: str, framework: str, devices: int, batch: int, kinds: Numerics
) -> Candidate:
    tensor, pipeline = (devices if word == "tp" else 1), (devices if word == "pp" else 1)
    data = devices // tensor // pipeline
    stage = _STAGES.get(word, 0)
    replicas = 2 if word == "hsdp" and data % 4 == 0 else 1
    micro = request.micro_batch or max(1, batch // data // pipeline)
    if batch % (micro * data):
        hint = f"Give a --batch that is a multiple of {micro * data}."
        raise InputError(f"A batch of {batch} does not divide into {data} × {micro} samples.", hint=hint)
    return Candidate(
        strategy=word,
        framework="jax" if framework == "jax" else "torch",
        stack=framework,
        seq_len=request.seq_len or (model.seq_len if model else 0),
        micro_batch=micro,
        numerics=kinds,
        accumulate=batch // (micro * data),
        replicate=replicas if stage else data,
        shard=data // replicas if stage else 1,
        zero_stage=stage,
        tensor=tensor,
        pipeline=pipeline,
        checkpointing="full" if request.checkpointing == ("full",) else "none",
        is_compiled=framework == "jax",
        reshards=stage == 3,
    )


def _planned(name: str, model: Preset | None, candidate: Candidate, where: Cluster) -> Planned:
    analytic, why = None, ""
    if model is not None:
        try:
            analytic = memory(model.architecture, candidate, where)
        except NotCovered as uncovered:
            why = uncovered.reason
    try:
        return Planned(layout_name(candidate), candidate, exact_memory(name, candidate, where.devices), analytic, why)
    except NotCovered as uncovered:
        return Planned(layout_name(candidate), candidate, None, analytic, uncovered.reason)
