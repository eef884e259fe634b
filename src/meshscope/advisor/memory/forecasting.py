"""The memory of one candidate: categories, allocated, reserved, used, and whether it fits."""

from __future__ import annotations

from meshscope.advisor.architecture import Architecture
from meshscope.advisor.candidate import Candidate
from meshscope.advisor.cluster import Cluster
from meshscope.advisor.coverage import NotCovered
from meshscope.advisor.figures import Figure
from meshscope.advisor.forecast import MemoryForecast, Term
from meshscope.advisor.memory.device import fit, limit_bytes, reserved, used
from meshscope.advisor.memory.parts import CATEGORIES, total
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
    return _forecast(_peak(architecture, candidate), candidate, cluster)


def terms(architecture: Architecture, candidate: Candidate, cluster: Cluster) -> tuple[Term, ...]:
    """The arithmetic, part by part, in the order of `CATEGORIES`; then allocated, reserved and used. Raises as
    `memory` does."""
    found = _peak(architecture, candidate)
    forecast = _forecast(found, candidate, cluster)
    sums = (("allocated", forecast.allocated), ("reserved", forecast.reserved), ("used", forecast.used))
    ordered = sorted(found.parts, key=lambda part: CATEGORIES.index(part.category))
    return (
        *(part.term for part in ordered),
        *(Term(name, figure, 1.0, figure.where) for name, figure in sums),
    )


def _peak(architecture: Architecture, candidate: Candidate) -> Peak:
    _check(architecture, candidate)
    return peak(places(architecture, candidate))


def _forecast(found: Peak, candidate: Candidate, cluster: Cluster) -> MemoryForecast:
    categories: dict[str, Figure] = {
        name: total((part for part in found.parts if part.category == name), name) for name in CATEGORIES
    }
    allocated = total(found.parts, f"all tensors alive {_SAID[found.moment]}, on stage {found.stage}")
    held = reserved(allocated, found, candidate, cluster)
    taken = used(held, candidate, cluster)
    return MemoryForecast(
        categories, allocated, held, taken, limit_bytes(cluster), fit(taken, candidate, cluster), found.stage
    )


def _check(architecture: Architecture, candidate: Candidate) -> None:
    if architecture.layers < 1 or architecture.d_model < 1 or candidate.micro_batch <= 0 or candidate.seq_len < 1:
        raise NotCovered("the model or the batch has no size")
    if architecture.is_mixture and architecture.experts % candidate.expert:
        raise NotCovered(f"{architecture.experts} experts do not divide over {candidate.expert} ranks")
