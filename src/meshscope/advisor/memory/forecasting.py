"""The memory of one candidate: categories, allocated, reserved, used, and whether it fits."""

from __future__ import annotations

from meshscope.advisor.architecture import Architecture
from meshscope.advisor.candidate import Candidate
from meshscope.advisor.cluster import Cluster
from meshscope.advisor.coverage import NotCovered
from meshscope.advisor.figures import Figure
from meshscope.advisor.forecast import MemoryForecast, Term
from meshscope.advisor.memory.device import fit, limit_bytes, reserved, used
from meshscope.advisor.memory.parts import CATEGORIES, Part, total
from meshscope.advisor.memory.peak import Peak, peak
from meshscope.advisor.memory.place import places

_SAID = {
    "start": "as the forward pass begins",
    "loss": "in the loss",
    "head": "in the output layer's backward pass",
    "backward": "in the last layer's backward pass",
    "end": "at the end of the backward pass",
    "step": "in the optimizer's step",
}


def memory(architecture: Architecture, candidate: Candidate, cluster: Cluster) -> MemoryForecast:
    """At the peak, of the device that needs most. Raises NotCovered where the layout cannot be."""
    _check(architecture, candidate)
    found = peak(places(architecture, candidate))
    categories: dict[str, Figure] = {
        name: total((part for part in found.parts if part.category == name), name) for name in CATEGORIES
    }
    allocated = total(found.parts, f"all tensors alive {_SAID[found.moment]}, on stage {found.stage}")
    held = reserved(allocated, found, candidate, cluster)
    taken = used(held, candidate, cluster)
    return MemoryForecast(
        categories, allocated, held, taken, limit_bytes(cluster), fit(taken, candidate, cluster), found.stage
    )


def terms(architecture: Architecture, candidate: Candidate, cluster: Cluster) -> tuple[Term, ...]:
    """The arithmetic, part by part, largest category first as in `memory`; then allocated, reserved and used."""
    forecast = memory(architecture, candidate, cluster)
    found = peak(places(architecture, candidate))
    sums = (("allocated", forecast.allocated), ("reserved", forecast.reserved), ("used", forecast.used))
    return (
        *(part.term for part in _ordered(found)),
        *(Term(name, figure, 1.0, figure.where) for name, figure in sums),
    )


def _ordered(found: Peak) -> list[Part]:
    return sorted(found.parts, key=lambda part: CATEGORIES.index(part.category))


def _check(architecture: Architecture, candidate: Candidate) -> None:
    if architecture.layers < 1 or architecture.d_model < 1 or candidate.micro_batch <= 0 or candidate.seq_len < 1:
        raise NotCovered("the model or the batch has no size")
    if architecture.is_mixture and architecture.experts % candidate.expert:
        raise NotCovered(f"{architecture.experts} experts do not divide over {candidate.expert} ranks")
