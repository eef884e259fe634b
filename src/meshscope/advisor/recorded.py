"""A recording as the model's question: which model, laid out how, over which devices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from meshscope.advisor.architecture import Architecture
from meshscope.advisor.candidate import Candidate, Numerics
from meshscope.advisor.coverage import NotCovered
from meshscope.advisor.numerics import AMP, BF16_MIXED, FP32
from meshscope.analysis.standing import device_kind
from meshscope.experiment import Experiment
from meshscope.run import Run

_TRANSFORMERS = ("tiny", "125m", "350m", "1.3b", "moe")
_REPLICATED = ("ddp", "zero1", "single", "torch-single", "jax-single", "pmap", "shard-map", "pjit-dp")
_SHARDED = ("fsdp", "fsdp1", "pjit", "shard-map-fsdp")
_PIPELINES = {"pp-gpipe": "gpipe", "pp-1f1b": "1f1b", "pp-interleaved": "interleaved"}
_CHUNKS = {"interleaved": 2}
_MIB = 2**20


@dataclass(frozen=True)
class Asked:
    """What was run. ``devices`` (on ``nodes``) and ``device_name`` say on what; ``cores`` are those of all CPU ranks
    of a node together."""

    architecture: Architecture
    candidate: Candidate
    devices: int
    device_kind: str
    device_name: str
    cores: int
    nodes: int = 1


def recorded(run: Run) -> Asked:
    """What a recording of a bundled workload ran. Raises NotCovered with the reason for everything else: a script of
    somebody's own does not say what model it trains.
    """
    here = run.experiment
    if run.is_simulated:
        raise NotCovered("it is simulated: nothing of it was measured that a prediction could be held against")
    if here.is_attached or not here.options or here.options.get("model") not in _TRANSFORMERS:
        raise NotCovered("what model it trains, and on what batch, is not recorded: it is no bundled transformer")
    if here.faults:
        raise NotCovered(f"faults were put in ({', '.join(here.faults)}), which no prediction is of")
    if here.options.get("compress", "none") != "none":
        raise NotCovered("its gradients were compressed")
    kind = device_kind(run)
    name = here.devices[0] if here.devices else "cpu" if kind == "cpu" else ""
    cores = here.cores if kind == "cpu" else 0
    nodes = max(here.nodes, 1)
    return Asked(architecture(here.options), candidate(here), max(here.ranks, 1), kind, name, cores, nodes)


def architecture(options: Mapping[str, Any]) -> Architecture:
    """The bundled transformer with these options: ungated, no biases, one token table, learned positions."""
    width, experts = int(options["width"]), int(options.get("experts", 1))
    return Architecture(
        name=str(options["model"]),
        layers=int(options["layers"]),
        d_model=width,
        heads=int(options["heads"]),
        kv_heads=int(options["heads"]),
        d_ff=4 * width,
        vocab=int(options["vocab"]),
        is_gated=False,
        is_tied=True,
        positions=int(options["seq"]),
        experts=experts if experts > 1 else 0,
        top_k=int(options.get("top_k", 1)) if experts > 1 else 0,
    )


def candidate(here: Experiment) -> Candidate:
    """How it was laid out. Raises NotCovered for a strategy that the model has no words for."""
    options, strategy = here.options, here.base_strategy
    plain = Candidate(
        strategy=strategy,
        framework="jax" if here.framework == "jax" else "torch",
        stack=here.framework,
        seq_len=int(options["seq"]),
        micro_batch=0.0,
        numerics=_numerics(here),
        accumulate=int(options.get("accumulate", 1)),
        checkpointing="full" if options.get("checkpoint_activations") else "none",
        is_compiled=here.framework == "jax" or bool(options.get("compile")),
        bucket_bytes=int(float(options.get("bucket_mb", 25.0)) * _MIB),
        is_bucket_view=bool(options.get("bucket_view", True)),
        prefetch=int(options.get("prefetch", 1)),
        reshards=bool(options.get("reshard", True)),
    )
    laid = _laid(plain, strategy, options, max(here.ranks, 1))
    slices = laid.data
    return replace(laid, micro_batch=int(options["batch"]) / (slices * laid.accumulate))


def _laid(plain: Candidate, strategy: str, options: Mapping[str, Any], ranks: int) -> Candidate:
    if strategy in _REPLICATED:
        stage = 1 if strategy == "zero1" else 0
        return replace(plain, shard=ranks, zero_stage=1) if stage else replace(plain, replicate=ranks)
    if strategy in _SHARDED or (strategy == "hsdp" and ranks > 1):
        replicas = int(options.get("replicas", 1))
        return replace(plain, replicate=replicas, shard=ranks // replicas, zero_stage=3)
    if strategy in _PIPELINES:
        schedule = _PIPELINES[strategy]
        return replace(plain, pipeline=ranks, schedule=schedule, virtual=_CHUNKS.get(schedule, 1))
    if strategy in ("tp", "pjit-tp"):
        return replace(plain, tensor=ranks)
    if strategy in ("fsdp-tp", "pjit-2d"):
        tensor = int(options.get("tensor", 1))
        return replace(plain, shard=ranks // tensor, zero_stage=3, tensor=tensor)
    if strategy == "cp":
        return replace(plain, context=ranks)
    raise NotCovered(f"the model does not know what {strategy or 'this strategy'} does in a step")


def _numerics(here: Experiment) -> Numerics:
    if here.options.get("precision", "fp32") != "bf16":
        return FP32
    # Autocast casts each weight as it is used; FSDP and Flax are told what to compute in.
    is_cast = here.framework == "jax" or here.base_strategy in ("fsdp", "hsdp")
    return BF16_MIXED if is_cast else AMP
