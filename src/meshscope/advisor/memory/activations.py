"""What is kept between the forward and the backward pass."""

from __future__ import annotations

from dataclasses import replace

from meshscope.advisor.memory.block import kept, widths
from meshscope.advisor.memory.constants import UNEVEN_EXPERTS
from meshscope.advisor.memory.habits import is_megatron
from meshscope.advisor.memory.parts import Part, number, said
from meshscope.advisor.memory.place import Place
from meshscope.advisor.memory.state import Moment


def activations(place: Place, moment: Moment) -> tuple[Part, ...]:
    """Of one device at one moment. At the end of backward the micro-batch that is done has freed all but a layer's."""
    if moment in ("start", "step"):
        return ()
    in_flight = place.stage.in_flight if moment != "end" else max(0.0, place.stage.in_flight - 1)
    parts = [*_layers(place, in_flight), *_embedding(place, in_flight), *_cast_weights(place, moment)]
    if moment in ("backward", "end") and place.candidate.checkpointing != "none":
        parts.append(_recomputed(place))
    elif moment == "end":
        parts.append(_last_one(place))
    return tuple(part for part in parts if part.size_bytes)


def layer_bytes(place: Place, *, is_mixture: bool) -> float:
    """Per token, of one layer that keeps everything."""
    found = kept(place.architecture, place.candidate, place.own, is_mixture=is_mixture)
    return sum(each.bytes_per_token for each in found)


def checkpointed_bytes(place: Place, *, is_mixture: bool) -> float:
    """Per token, of one layer as the candidate has it."""
    if place.candidate.checkpointing == "full":
        width = widths(place.candidate, place.own)
        return width.stream * place.architecture.d_model / width.sequence
    if place.candidate.checkpointing == "selective" and not is_megatron(place.candidate):
        return _every_other_product(place)
    return layer_bytes(place, is_mixture=is_mixture)


def _every_other_product(place: Place) -> float:
    """torchtitan's selective checkpointing by operation: the layer's input, attention's output, and of its products
    every second one, from the first (queries, values, the gate's, the last, which nothing needs, as a compiler sees).
    JAX's ``save_dots`` keeps a little more.
    SOURCE: torchtitan/parallelisms/parallelize_llama.py, ``_custom_policy``."""
    shape, width = place.architecture, widths(place.candidate, place.own)
    wide = shape.attention_width * 2 + shape.kv_width + shape.d_ff * (max(1, shape.top_k) if shape.is_mixture else 1)
    last = 0.0 if place.own.recomputes_cheap else width.compute * shape.d_model
    ends = width.stream * shape.d_model / width.sequence + last
    if width.tensor > 1:
        # What a row-wise product gives is reduced and scattered: kept once scattered, twice where nothing is left out.
        ends += (1 if place.own.recomputes_cheap else 2) * width.compute * shape.d_model / width.sequence
    return width.compute * wide / width.tensor + ends


def _layers(place: Place, in_flight: float) -> list[Part]:
    parts = []
    kinds = ((place.stage.plain_layers, False, "layers"), (place.stage.mixture_layers, True, "layers with experts"))
    for many, is_mixture, name in kinds:
        if not many:
            continue
        each = checkpointed_bytes(place, is_mixture=is_mixture)
        size = each * place.tokens * many * in_flight
        words = (
            f"{many} {name} × {each:,.0f} B × {number(place.tokens)} tokens × {in_flight:.3g} micro-batches in flight"
        )
        parts.append(_part(place, name, size, f"{words} = {said(size)}", is_mixture=is_mixture))
    return parts


def _part(place: Place, name: str, size: float, words: str, *, is_mixture: bool = False) -> Part:
    """Full checkpointing keeps layer inputs and nothing else: sure. How tokens spread over experts is not."""
    own = place.own
    if place.candidate.checkpointing == "full":
        return Part("activations", name, size, words, 0.95, 1.1)
    off, on = UNEVEN_EXPERTS if is_mixture else (0.0, 0.0)
    least, most = own.activations_least_frac - off, own.activations_most_frac + on
    return Part("activations", name, size, words, least, most)


def _embedding(place: Place, in_flight: float) -> list[Part]:
    """The dropout mask after the tables; of the head its norm's input and output."""
    shape, width = place.architecture, widths(place.candidate, place.own)
    per_token = 1.0 * shape.d_model if place.own.has_dropout and place.stage.has_embedding else 0.0
    size = per_token * place.tokens / width.sequence * in_flight
    both = width.stream / width.sequence + width.compute / width.gathered
    head = both * shape.d_model * place.tokens if place.stage.has_head else 0.0
    return [
        Part("activations", "mask after the tables", size, f"1 B × {shape.d_model} = {said(size)}"),
        Part("activations", "last norm", head, f"input and output of the last norm = {said(head)}", 0.5, 1.5),
    ]


def _cast_weights(place: Place, moment: Moment) -> list[Part]:
    """autocast keeps its cast of every matrix until the backward pass has used it; XLA may cast layer by layer or all
    at once.
    SOURCE: aten/src/ATen/autocast_mode.cpp, ``cached_cast``."""
    numerics = place.candidate.numerics
    is_jax = place.candidate.framework == "jax" and place.candidate.zero_stage < 3
    if not numerics.cast_bytes or moment == "end" or not (place.own.is_autocast or is_jax):
        return []
    size = numerics.cast_bytes * place.share.all
    words = f"{numerics.cast_bytes:g} B × {number(place.share.all)} parameters cast = {said(size)}"
    if is_jax:
        return [Part("activations", "weights cast to the compute type", size, words, 0.0, 1.05)]
    return [Part("activations", "autocast's cache of weights", size, words, 0.8, 1.02)]


def _recomputed(place: Place) -> Part:
    """One layer's; of Megatron's selective checkpointing its scores alone, which flash attention has none of."""
    each = layer_bytes(place, is_mixture=bool(place.stage.mixture_layers))
    if place.candidate.checkpointing == "selective" and is_megatron(place.candidate):
        kept_all = replace(place, candidate=replace(place.candidate, checkpointing="none"))
        each = layer_bytes(kept_all, is_mixture=bool(place.stage.mixture_layers)) - each
    size = each * place.tokens
    words = f"one layer computed again: {each:,.0f} B × {number(place.tokens)} tokens = {said(size)}"
    return Part("activations", "layer computed again", size, words, 0.7, 1.3)


def _last_one(place: Place) -> Part:
    each = layer_bytes(place, is_mixture=place.stage.plain_layers == 0)
    size = each * place.tokens
    words = f"the first layer's, still in use: {each:,.0f} B × {number(place.tokens)} tokens = {said(size)}"
    return Part("activations", "layer in use", size, words, 0.5, 1.2)
