"""When and where memory is at its peak: every moment of every stage is added up, and the largest counts."""

from __future__ import annotations

from dataclasses import dataclass

from meshscope.advisor.memory.activations import activations
from meshscope.advisor.memory.communication import communication
from meshscope.advisor.memory.loss import logits
from meshscope.advisor.memory.parts import Part
from meshscope.advisor.memory.place import Place
from meshscope.advisor.memory.state import MOMENTS, Moment, state
from meshscope.advisor.memory.temporaries import temporaries


@dataclass(frozen=True)
class Peak:
    stage: int
    moment: Moment
    parts: tuple[Part, ...]

    @property
    def size_bytes(self) -> float:
        return sum(part.size_bytes for part in self.parts)


def peak(places: tuple[Place, ...]) -> Peak:
    """The largest of all stages and moments."""
    return max((at(place, moment) for place in places for moment in MOMENTS), key=lambda each: each.size_bytes)


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
