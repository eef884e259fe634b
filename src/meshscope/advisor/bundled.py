"""Which bundled workload a candidate is, and the flags that make it the same: what a framework can be asked about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from meshscope.advisor.candidate import Candidate
from meshscope.advisor.coverage import NotCovered
from meshscope.capture import scripts
from meshscope.capture.own_models import is_own
from meshscope.capture.request import Request
from meshscope.discovery import Workload

_MIB = 2**20
_SCHEDULES = {"gpipe": "gpipe", "1f1b": "1f1b", "interleaved": "interleaved"}


@dataclass(frozen=True)
class Bundled:
    """A workload as rank-independent flags: what ``meshscope run STRATEGY FLAGS --ranks devices`` would train."""

    workload: Workload
    flags: tuple[str, ...]
    devices: int
    options: Any


def bundled(model: str, candidate: Candidate, devices: int, *, flags: tuple[str, ...] = ()) -> Bundled:
    """``model`` is a preset of the workloads or a factory; ``flags`` are further ones of the workloads' own.

    Raises NotCovered where no workload lays a model out this way, InputError where the workload refuses it.
    """
    _check(candidate, devices)
    strategy = _strategy(candidate, devices)
    return of_strategy(strategy, ("--model", model, *_flags(model, candidate, strategy), *flags), devices)


def of_strategy(strategy: str, flags: tuple[str, ...], devices: int) -> Bundled:
    """A workload by its name, with flags as they stand on a command line."""
    request = Request(strategies=(strategy,), model=_model(flags), ranks=devices, options=flags)
    known = scripts.workloads(request)
    (workload,) = scripts.chosen(request, known)
    options = scripts.resolved(request, workload, devices)
    return Bundled(workload, tuple(scripts.arguments(workload, options)), devices, options)


def is_known(model: str) -> bool:
    """Whether the workloads can build it."""
    request = Request(strategies=())
    return is_own(model) or model in scripts.options_module(scripts.folder(request)).PRESETS


def _model(flags: tuple[str, ...]) -> str:
    places = [place for place, flag in enumerate(flags[:-1]) if flag == "--model"]
    return flags[places[-1] + 1] if places else "tiny"


def _check(candidate: Candidate, devices: int) -> None:
    if candidate.devices != devices:
        raise NotCovered(f"The candidate lies over {candidate.devices} devices, not over {devices}.")
    for is_so, reason in (
        (candidate.context > 1, "Ranks that share a sequence need a GPU's attention, which fake tensors do not have."),
        (candidate.expert > 1, "How many tokens go to a rank's experts depends on numbers, which fake tensors lack."),
        (candidate.checkpointing == "selective", "The bundled models compute whole blocks again, or nothing."),
        (candidate.is_compiled and candidate.framework == "torch", "What torch.compile keeps shows in a real run."),
        (candidate.is_logits_chunked, "The bundled models compute their loss in one piece."),
        (candidate.optimizer != "adamw", f"The bundled workloads train with adamw, not {candidate.optimizer}."),
        (candidate.micro_batch % 1 != 0, "A micro-batch of the bundled workloads is a whole number of samples."),
    ):
        if is_so:
            raise NotCovered(reason)
    _check_numerics(candidate)


def _check_numerics(candidate: Candidate) -> None:
    """The bundled workloads keep parameters, gradients and both moments in fp32, and multiply in fp32 or bf16."""
    found = candidate.numerics
    is_theirs = (found.parameter_bytes, found.gradient_bytes, found.optimizer_bytes, found.master_bytes) == (4, 4, 8, 0)
    if not is_theirs or found.compute not in ("fp32", "tf32", "bf16"):
        raise NotCovered(
            f"The bundled workloads keep their state in fp32 and multiply in fp32 or bf16, unlike {found.name}."
        )


def _strategy(candidate: Candidate, devices: int) -> str:
    """By the name that the candidate gives itself where a workload has it, else by its degrees."""
    known = scripts.workloads(Request(strategies=()))
    named = known.get(candidate.strategy)
    if named is not None and named.framework == candidate.framework:
        return candidate.strategy
    return _of_torch(candidate, devices) if candidate.framework == "torch" else _of_jax(candidate, devices)


def _of_torch(candidate: Candidate, devices: int) -> str:
    if devices == 1:
        return "torch-single"
    if candidate.pipeline > 1:
        return f"pp-{_SCHEDULES[candidate.schedule]}" if candidate.pipeline == devices else _refused(candidate)
    if candidate.tensor > 1:
        is_alone = candidate.tensor == devices
        is_mixed = candidate.zero_stage == 3 and candidate.replicate == 1 and candidate.shard > 1
        return "tp" if is_alone else "fsdp-tp" if is_mixed else _refused(candidate)
    if candidate.zero_stage == 0:
        return "ddp"
    if candidate.zero_stage == 1:
        return "zero1" if candidate.replicate == 1 else _refused(candidate)
    return "hsdp" if candidate.replicate > 1 else "fsdp"


def _of_jax(candidate: Candidate, devices: int) -> str:
    if devices == 1:
        return "jax-single"
    if candidate.pipeline > 1:
        return "jax-pp" if candidate.pipeline == devices else _refused(candidate)
    if candidate.tensor > 1:
        is_mixed = candidate.zero_stage == 3 and candidate.replicate == 1 and candidate.shard > 1
        return "pjit-tp" if candidate.tensor == devices else "pjit-2d" if is_mixed else _refused(candidate)
    if candidate.zero_stage == 0:
        return "pjit-dp"
    return "pjit" if candidate.zero_stage == 3 and candidate.replicate == 1 else _refused(candidate)


def _refused(candidate: Candidate) -> str:
    degrees = {
        "replicated": candidate.replicate,
        "sharded": candidate.shard,
        "tensor parallel": candidate.tensor,
        "pipeline": candidate.pipeline,
    }
    mix = " × ".join(f"{name} {degree}" for name, degree in degrees.items() if degree > 1)
    raise NotCovered(
        f"No bundled {candidate.framework} workload lays a model out as {mix}, ZeRO {candidate.zero_stage}."
    )


def _flags(model: str, candidate: Candidate, strategy: str) -> list[str]:
    batch = int(candidate.micro_batch) * candidate.accumulate * candidate.data
    precision = "bf16" if candidate.numerics.compute == "bf16" else "fp32"
    flags = ["--batch", str(batch), "--accumulate", str(candidate.accumulate), "--precision", precision]
    if candidate.checkpointing == "full":
        flags.append("--checkpoint-activations")
    if candidate.seq_len and _has_tokens(model):
        flags += ["--seq", str(candidate.seq_len)]
    if strategy in ("ddp", "zero1"):
        flags += ["--bucket-mb", str(candidate.bucket_bytes / _MIB)]
    if strategy == "ddp":
        flags.append("--bucket-view" if candidate.is_bucket_view else "--no-bucket-view")
    if strategy in ("fsdp", "hsdp", "fsdp-tp"):
        flags.append("--reshard" if candidate.reshards and candidate.zero_stage == 3 else "--no-reshard")
    if strategy in ("fsdp", "hsdp"):
        flags += ["--prefetch", str(max(1, candidate.prefetch))]
    if strategy == "hsdp":
        flags += ["--replicas", str(candidate.replicate)]
    if strategy in ("fsdp-tp", "pjit-2d"):
        flags += ["--tensor", str(candidate.tensor)]
    return flags


def _has_tokens(model: str) -> bool:
    module = scripts.options_module(scripts.folder(Request(strategies=())))
    preset = module.PRESETS.get(model)
    return preset is not None and hasattr(module, "sequence_length") and module.sequence_length(preset) > 0
