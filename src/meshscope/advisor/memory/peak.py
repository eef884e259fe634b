"""When and where memory is at its peak: every moment of every stage is added up, and the largest counts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from meshscope.advisor.memory.activations import activations
from meshscope.advisor.memory.communication import communication
from meshscope.advisor.memory.loss import hole, logits
from meshscope.advisor.memory.parts import Part, Pool
from meshscope.advisor.memory.place import Place
from meshscope.advisor.memory.state import MOMENTS, Moment, state
from meshscope.advisor.memory.temporaries import temporaries


@dataclass(frozen=True)
class Peak:
    """``parts`` are alive at the peak; ``held`` is what streams beside the main one held at moments of their own,
    and what nothing can use."""

    stage: int
    moment: Moment
    parts: tuple[Part, ...]
    held: tuple[Part, ...] = ()

    @property
    def size_bytes(self) -> float:
        return sum(part.size_bytes for part in self.parts)


def peak(places: tuple[Place, ...]) -> Peak:
    """The largest of all stages and moments."""
    return max((_stage_peak(place) for place in places), key=lambda each: each.size_bytes)


def _stage_peak(place: Place) -> Peak:
    moments = [at(place, moment) for moment in _moments(place)]
    found = max(moments, key=lambda each: each.size_bytes)
    held = (*_held(found, moments, "gather"), *_held(found, moments, "reduce"), *hole(place, found.moment))
    return replace(found, held=held)


def _moments(place: Place) -> tuple[Moment, ...]:
    """A stage without the output layer has no loss, and a forward pass that gathers nothing begins with less than it
    ends with."""
    if not place.stage.has_head:
        return ("start", "backward", "end", "step") if place.gathers else ("backward", "end", "step")
    return MOMENTS if place.gathers else MOMENTS[1:]


def _held(found: Peak, moments: list[Peak], pool: Pool) -> tuple[Part, ...]:
    """What the pool held at its widest, less what of it is alive at the peak."""
    widest = max(moments, key=lambda each: _in_pool(each, pool))
    alive = {part.name for part in found.parts if part.pool == pool}
    return tuple(part for part in widest.parts if part.pool == pool and part.name not in alive)


def _in_pool(moment: Peak, pool: Pool) -> float:
    return sum(part.size_bytes for part in moment.parts if part.pool == pool)


def at(place: Place, moment: Moment) -> Peak:
    """All parts of one moment of one stage."""
    parts = (
        *state(place, moment),
        *activations(place, moment),
        *logits(place, moment),
        *communication(place, moment),
        *temporaries(place, moment),
    )
    return Peak(place.stage.index, moment, parts)
