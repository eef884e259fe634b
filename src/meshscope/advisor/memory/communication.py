"""Buffers of the data and pipeline axes: DDP's buckets, gathered parameters, what is reduced and what is sent."""

from __future__ import annotations

from meshscope.advisor.memory.constants import DEEPSPEED_BUCKET, DEEPSPEED_LIVE
from meshscope.advisor.memory.habits import is_deepspeed, is_megatron
from meshscope.advisor.memory.parts import Part, number, said
from meshscope.advisor.memory.place import Place
from meshscope.advisor.memory.state import Moment, parameters_are_sharded


def communication(place: Place, moment: Moment) -> tuple[Part, ...]:
    """Of one device at one moment."""
    parts = (*_data(place, moment), *_pipeline(place))
    return tuple(part for part in parts if part.size_bytes)


def gathered_bytes(place: Place) -> float:
    """Per element of a parameter that is gathered: in the compute type where parameters are cast, else as they are."""
    numerics = place.candidate.numerics
    return numerics.cast_bytes or numerics.parameter_bytes


def _data(place: Place, moment: Moment) -> tuple[Part, ...]:
    candidate = place.candidate
    if candidate.data * candidate.context == 1 or (is_megatron(candidate) and candidate.zero_stage < 2):
        return ()
    if candidate.framework == "jax":
        return _xla(place, moment) if parameters_are_sharded(place) else ()
    if is_deepspeed(candidate) and candidate.zero_stage:
        return _deepspeed(place, moment)
    if parameters_are_sharded(place):
        return _fsdp(place, moment)
    return _ddp(place)


def _ddp(place: Place) -> tuple[Part, ...]:
    """SOURCE: torch/nn/parallel/distributed.py and torch/csrc/distributed/c10d/reducer.cpp (first bucket 1 MiB, the
    order rebuilt after one step)."""
    candidate = place.candidate
    if candidate.is_bucket_view:
        return ()
    size = candidate.numerics.gradient_bytes * place.share.all
    words = f"buckets are a second copy of the gradients: {candidate.numerics.gradient_bytes:g} B × "
    words += (
        f"{number(place.share.all)} = {said(size)}, the first of 1 MiB, the others of {said(candidate.bucket_bytes)}"
    )
    return (Part("communication", "DDP's buckets", size, words, 0.99, 1.01),)


def _fsdp(place: Place, moment: Moment) -> tuple[Part, ...]:
    """Layers gathered at once, tables and all else that no layer holds (gathered from the first use to the last), and
    in the backward pass what is being reduced.
    SOURCE: torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py; torchtitan docs/fsdp.md."""
    if moment == "step":
        return ()
    if not place.candidate.reshards or place.candidate.zero_stage == 2:
        return (_all_gathered(place), *_reduced(place, moment))
    return (*_layers_gathered(place, moment), *_root_gathered(place, moment), *_reduced(place, moment))


def _xla(place: Place, moment: Moment) -> tuple[Part, ...]:
    """Gathered where it is used, one ahead; a gradient is reduced in the type it was made in. The scheduler decides how
    far ahead: hence the bounds."""
    each, share = gathered_bytes(place), place.share
    if moment in ("start", "step"):
        return ()
    if moment in ("loss", "head"):
        size = each * (share.tables + share.layer)
        words = f"output layer and one layer gathered: {each:g} B × {number(share.tables + share.layer)} = {said(size)}"
        return (Part("communication", "gathered output layer", size, words, 0.3, 1.5),)
    size = each * share.layer * (2 + place.candidate.prefetch)
    words = f"a layer, {place.candidate.prefetch} ahead and a whole gradient: {each:g} B × {number(share.layer)} each"
    return (Part("communication", "gathered layers", size, f"{words} = {said(size)}", 0.3, 1.7),)


def _all_gathered(place: Place) -> Part:
    each = gathered_bytes(place)
    size = each * place.share.all
    words = f"parameters stay gathered from forward to backward: {each:g} B × {number(place.share.all)} = {said(size)}"
    return Part("communication", "gathered parameters", size, words, 0.98, 1.1)


def _layers_gathered(place: Place, moment: Moment) -> tuple[Part, ...]:
    """One layer in use, and ``prefetch`` more on their way. In the loss the last layer may still lie there."""
    each, ahead = gathered_bytes(place), place.candidate.prefetch + _freed_late(place)
    layer = each * place.share.layer
    words = f"{each:g} B × {number(place.share.layer)}"
    coming = Part("communication", "layers on their way", layer * ahead, f"{ahead} × {words} = {said(layer * ahead)}",
                  0.0, 2.0, pool="gather")  # fmt: skip
    if moment == "start":
        return (coming,)
    in_use = Part("communication", "gathered layer", layer, f"{words} = {said(layer)}", 0.0, 2.0)
    return (in_use,) if moment == "loss" else (in_use, coming)


def _freed_late(place: Place) -> int:
    """The first FSDP lets the allocator find out when another stream is done with a layer: one more lies there.
    SOURCE: torchtitan docs/fsdp.md."""
    return 1 if any(name in place.candidate.stack for name in ("fsdp1", "composer")) else 0


def _root_gathered(place: Place, moment: Moment) -> tuple[Part, ...]:
    """Received in one piece, then copied out."""
    each = gathered_bytes(place)
    size = each * place.share.tables
    words = f"{each:g} B × {number(place.share.tables)} = {said(size)}"
    stays = Part("communication", "root group", size, f"tables and output layer stay gathered: {words}", 0.5, 1.1)
    if moment != "start":
        return (stays,)
    return (stays, Part("communication", "root group as received", size, words, 0.0, 1.1, pool="gather"))


def _reduced(place: Place, moment: Moment) -> tuple[Part, ...]:
    """An unsharded gradient in the compute type and the reduce-scatter's input, of a layer; of the output layer its
    gradient waits for the end, as the root group reduces last."""
    reduced = place.candidate.numerics.reduce_bytes
    each = gathered_bytes(place) + reduced
    layer = each * place.share.layer
    words = f"a layer's whole gradient and the reduce-scatter's input: {each:g} B × {number(place.share.layer)}"
    parts = [Part("communication", "gradients being reduced", layer, f"{words} = {said(layer)}", 0.4, 1.8)]
    if place.stage.has_head and place.share.tables:
        head = gathered_bytes(place) * place.architecture.vocab * place.architecture.d_model / place.candidate.tensor
        words = (
            f"the output layer's whole gradient waits for the root group: {gathered_bytes(place):g} B = {said(head)}"
        )
        parts.append(Part("communication", "output layer's gradient", head, words, 0.0, 1.1))
    if moment in ("start", "loss"):
        return ()
    return tuple(parts[1:]) if moment == "head" else tuple(parts)


def _deepspeed(place: Place, moment: Moment) -> tuple[Part, ...]:
    """Buckets of a fixed number of elements by default; transformers sets smaller ones, hence the low bound."""
    if moment == "step":
        return ()
    each = min(2.0, place.candidate.numerics.parameter_bytes)
    if place.candidate.zero_stage < 3:
        size = 2 * each * min(DEEPSPEED_BUCKET, place.share.all)
        words = f"two buckets of at most 5e8 elements × {each:g} B = {said(size)}"
        return (Part("communication", "DeepSpeed's buckets", size, words, 0.2, 1.6),)
    live = each * min(DEEPSPEED_LIVE, place.share.all)
    bucket = each * min(DEEPSPEED_BUCKET, place.share.all)
    words = f"at most 1e9 live parameters × {each:g} B = {said(live)}"
    return (
        Part("communication", "live parameters", live, words, 0.3, 1.2),
        Part("communication", "reduce bucket", bucket, f"5e8 elements × {each:g} B = {said(bucket)}", 0.3, 1.5),
    )


def _pipeline(place: Place) -> tuple[Part, ...]:
    candidate = place.candidate
    if candidate.pipeline == 1:
        return ()
    sequence = candidate.tensor if candidate.is_sequence_parallel else 1
    size = 2 * 2.0 * place.architecture.d_model * place.tokens / sequence
    return (Part("communication", "sent between stages", size, f"one in, one out, 2 B each = {said(size)}", 0.5, 2.0),)
