"""Parameters, gradients and what the optimizer keeps: what is there from step to step."""

from __future__ import annotations

from typing import Literal

from meshscope.advisor.coverage import NotCovered
from meshscope.advisor.memory.constants import ADAM_8BIT_BYTES, MOMENTS_KEPT
from meshscope.advisor.memory.parts import Part, Pool, number, said
from meshscope.advisor.memory.place import Place

Moment = Literal["start", "loss", "head", "backward", "end", "step"]
"""When memory may be at its peak: as the first tables are gathered; in the loss; in the output layer's backward pass;
in the last layer's, all activations there; in the first layer's, all gradients there; in the optimizer's step."""

MOMENTS: tuple[Moment, ...] = ("start", "loss", "head", "backward", "end", "step")


def state(place: Place, moment: Moment) -> tuple[Part, ...]:
    """Of one device at one moment."""
    parts = (_parameters(place), _gradients(place, moment), _master(place), _moments(place))
    return tuple(part for part in parts if part.size_bytes or part.category == "gradients")


def parameters_are_sharded(place: Place) -> bool:
    """ZeRO-3; and FSDP's second stage, which keeps shards between steps and gathers all of them within one."""
    return place.candidate.zero_stage == 3 or place.gathers


def divided(place: Place, *, is_sharded: bool) -> float:
    """Parameters of a device, after ZeRO has divided them where it does."""
    if not is_sharded:
        return place.share.all
    return place.share.plain / place.candidate.sharded_over + place.share.experts / place.expert_ranks


def _ranks(place: Place, *, is_sharded: bool) -> str:
    if not is_sharded or place.candidate.sharded_over == 1:
        return f"{number(place.share.all)} parameters of this rank"
    plain = f"{number(place.share.plain)} parameters / {place.candidate.sharded_over} ranks"
    if not place.share.experts:
        return plain
    return f"({plain} + {number(place.share.experts)} of experts / {place.expert_ranks:g})"


def _counted(place: Place, per_parameter: float, *, is_sharded: bool) -> tuple[float, str]:
    size = per_parameter * divided(place, is_sharded=is_sharded)
    return size, f"{per_parameter:.3g} B × {_ranks(place, is_sharded=is_sharded)} = {said(size)}"


def _parameters(place: Place) -> Part:
    size, words = _counted(place, place.candidate.numerics.parameter_bytes, is_sharded=parameters_are_sharded(place))
    return Part("parameters", "trained copy", size, words, 0.99, 1.01)


def _gradients(place: Place, moment: Moment) -> Part:
    size, words = _counted(place, place.candidate.numerics.gradient_bytes, is_sharded=place.candidate.zero_stage >= 2)
    made = ("head", "backward", "end", "step") if place.candidate.framework == "jax" else ("end", "step")
    if not (place.own.keeps_gradients or place.accumulates or moment in made):
        spare = size if place.own.may_zero_gradients and moment != "start" else 0.0
        words = f"none yet at this moment; {words} at the end of backward"
        return Part("gradients", "not made yet", 0.0, words, spare_bytes=spare)
    pool: Pool = "reduce" if place.gathers and not place.own.keeps_gradients else "main"
    return Part("gradients", "accumulated", size, words, 0.99, 1.01, pool=pool)


def _master(place: Place) -> Part:
    size, words = _counted(place, place.candidate.numerics.master_bytes, is_sharded=place.candidate.zero_stage >= 1)
    return Part("optimizer", "fp32 copy of the parameters", size, words, 0.99, 1.01)


def _moments(place: Place) -> Part:
    per_parameter = moment_bytes(place)
    size, words = _counted(place, per_parameter, is_sharded=place.candidate.zero_stage >= 1)
    return Part("optimizer", f"{place.candidate.optimizer}'s moments", size, words, 0.98, 1.02)


def _optimizer(place: Place) -> str:
    name = place.candidate.optimizer.lower()
    return "adam8bit" if name in ("adamw8bit", "adamw-8bit", "adam-8bit") else name


def moment_bytes(place: Place) -> float:
    """Bytes per parameter, averaged over the device's. ``Numerics.optimizer_bytes`` is of AdamW's two moments."""
    each, optimizer = place.candidate.numerics.optimizer_bytes / 2, _optimizer(place)
    if optimizer not in MOMENTS_KEPT:
        known = ", ".join(MOMENTS_KEPT)
        raise NotCovered(f"what {optimizer} keeps per parameter is not known", hint=f"Known are {known}.")
    if optimizer == "adam8bit":
        return min(ADAM_8BIT_BYTES, 2 * each)
    if optimizer == "adafactor":
        narrow = min(place.architecture.d_model, max(1, place.architecture.d_ff))
        return 2 * 4.0 / narrow
    if optimizer == "muon":
        tables = place.share.tables / place.share.all
        return each * (1 + tables)
    return each * MOMENTS_KEPT[optimizer]
