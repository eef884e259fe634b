"""What a person asks in words, as a question: names are looked up, what was left out is chosen and said."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from meshscope.advisor.candidate import Checkpointing
from meshscope.advisor.cluster import Cluster
from meshscope.advisor.hardware import cluster
from meshscope.advisor.multipliers import NEUTRAL, Multipliers
from meshscope.advisor.numerics import numerics
from meshscope.advisor.presets import Preset, preset
from meshscope.advisor.question import EVERY_CHECKPOINTING, Framework, Question, usual_batch
from meshscope.advisor.stacks import STACKS
from meshscope.errors import InputError

TORCH_WORDS = ("single", "ddp", "zero1", "zero2", "fsdp", "hsdp", "tp", "pp", "cp", "ep")
JAX_WORDS = ("pmap", "pjit", "dp")
_OTHER_WORDS = {"zero3": "fsdp", "zero-3": "fsdp", "zero-2": "zero2", "zero-1": "zero1", "fsdp2": "fsdp",
                "tensor": "tp", "pipeline": "pp", "context": "cp", "expert": "ep"}  # fmt: skip
_LONGEST = 2**24
_MOST_BATCH = 2**30


@dataclass(frozen=True)
class Request:
    """As given on a command line; 0, "" and () for what was not. ``is_compiled`` None: compiled, except on CPU."""

    model: str
    devices: str
    batch: int = 0
    micro_batch: int = 0
    seq_len: int = 0
    precision: str = ""
    framework: str = ""
    strategies: tuple[str, ...] = ()
    checkpointing: tuple[Checkpointing, ...] = ()
    is_compiled: bool | None = None
    software: str = ""
    most_tensor: int = 0
    hardware: Path | None = None


@dataclass(frozen=True)
class Posed:
    """``notes`` say what was chosen where nothing was asked for."""

    question: Question
    model: Preset
    notes: tuple[str, ...]


def posed(request: Request, multipliers: Multipliers = NEUTRAL) -> Posed:
    """The question that is meant. InputError: it cannot be asked so."""
    model = preset(request.model)
    where = cluster(request.devices, request.hardware)
    strategies = words_of(request)
    seq_len = _within(request.seq_len or model.seq_len, _LONGEST, "sequence length")
    batch, said = _batch(request, where, seq_len)
    frameworks = _frameworks(request.framework, strategies, where)
    is_cpu = where.device.family == "cpu"
    question = Question(
        architecture=model.architecture,
        cluster=where,
        seq_len=seq_len,
        global_batch=batch,
        precision=numerics(request.precision).name if request.precision else "",
        frameworks=frameworks,
        strategies=strategies,
        micro_batch=request.micro_batch,
        checkpointing=request.checkpointing or EVERY_CHECKPOINTING,
        is_compiled=not is_cpu if request.is_compiled is None else request.is_compiled,
        software=_software(request.software),
        most_tensor=request.most_tensor,
        multipliers=multipliers,
    )
    return Posed(question, model, tuple(_notes(question, model, said)))


def words_of(request: Request) -> tuple[str, ...]:
    """The strategies that come into question, as `space` calls them. InputError: there is one of no such name."""
    return tuple(_word(asked) for asked in request.strategies)


def _notes(question: Question, model: Preset, said: str) -> Iterable[str]:
    if model.note:
        yield model.note
    if said:
        yield said + "."
    where = question.cluster
    if where.is_between_assumed and where.nodes > 1:
        gbit = where.between.bytes_per_s * 8 / 1e9
        yield (
            f"The network between nodes was not said: {where.between.name}, {gbit:.0f} Gbit/s per device "
            f"(write {where.devices}x{where.device.name}@GBIT)."
        )
    positions = question.architecture.positions
    if positions and question.seq_len > positions:
        yield f"{model.name} knows {positions:,} positions; a sequence of {question.seq_len:,} needs a longer table."


def _batch(request: Request, where: Cluster, seq_len: int) -> tuple[int, str]:
    if request.batch:
        return _within(request.batch, _MOST_BATCH, "batch"), ""
    if request.micro_batch:
        chosen = _within(request.micro_batch * where.devices, _MOST_BATCH, "batch")
        return (
            chosen,
            f"No batch was given: {chosen:,} samples, one micro-batch of {request.micro_batch} on each device",
        )
    return usual_batch(where, seq_len)


def _frameworks(asked: str, strategies: tuple[str, ...], where: Cluster) -> tuple[Framework, ...]:
    if asked == "both":
        return ("torch", "jax")
    if asked in ("torch", "jax"):
        return ("jax",) if asked == "jax" else ("torch",)
    words = {word for strategy in strategies for word in strategy.removeprefix("=").replace("-", "+").split("+")}
    is_jax = where.device.family.startswith("tpu") or (
        words and words & set(JAX_WORDS) and not words & {"ddp", "zero1"}
    )
    return ("jax",) if is_jax else ("torch",)


def _software(name: str) -> str:
    """A name of `stacks` for torch, or "" where none was given. InputError: there is none of it."""
    known = [each.name for each in STACKS.values() if each.framework == "torch"]
    if name and name not in known:
        raise InputError(f"There is no software {name!r}.", hint=f"There are {', '.join(known)}.")
    return name


def _word(asked: str) -> str:
    """A strategy, or a part of one, as `space` calls it. InputError: there is none."""
    plain = asked.strip().lower()
    is_whole, plain = plain.startswith("="), plain.removeprefix("=")
    parts = [_OTHER_WORDS.get(part, part) for part in plain.removeprefix("pjit-").split("+")]
    known = (*TORCH_WORDS, *JAX_WORDS)
    wrong = next((part for part in parts if part not in known), None)
    if wrong is not None:
        near = difflib.get_close_matches(wrong, known, 1)
        hint = f"Did you mean {near[0]}? " if near else ""
        raise InputError(f"There is no strategy {asked!r}.", hint=f"{hint}There are {', '.join(known)}, joined with +.")
    joined = ("pjit-" if plain.startswith("pjit-") else "") + "+".join(parts)
    return f"={joined}" if is_whole or len(parts) > 1 or joined.startswith("pjit-") else joined


def _within(value: int, most: int, what: str) -> int:
    if not 0 < value <= most:
        raise InputError(f"A {what} of {value:,} makes no sense.", hint=f"Give 1 to {most:,}.")
    return value
