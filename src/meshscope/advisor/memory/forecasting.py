"""The memory of one candidate: categories, allocated, reserved, used, and whether it fits."""

from __future__ import annotations

from meshscope.advisor.architecture import Architecture
from meshscope.advisor.candidate import Candidate
from meshscope.advisor.cluster import Cluster
from meshscope.advisor.coverage import NotCovered
from meshscope.advisor.figures import Figure
from meshscope.advisor.forecast import MemoryForecast, Term
from meshscope.advisor.memory.device import beyond, fit, limit_bytes, on_device, outside, together
from meshscope.advisor.memory.parts import CATEGORIES, total
from meshscope.advisor.memory.peak import Peak, peak
from meshscope.advisor.memory.place import places

_RESERVED = "what is allocated, and what the allocator holds beyond"
_USED = "what is reserved, and what is no tensor's"
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
    found = _peak(architecture, candidate, cluster)
    categories: dict[str, Figure] = {
        name: total((part for part in found.parts if part.category == name), name) for name in CATEGORIES
    }
    allocated = _allocated(found)
    reserved = together(allocated, beyond(allocated, found, candidate, cluster), _RESERVED)
    used = together(reserved, outside(candidate, cluster), _USED)
    return MemoryForecast(
        categories, allocated, reserved, used, limit_bytes(cluster), fit(used, candidate, cluster), found.stage
    )


def terms(architecture: Architecture, candidate: Candidate, cluster: Cluster) -> tuple[Term, ...]:
    """The arithmetic in the order of `CATEGORIES`, each part as ``category: part``; their sum ``allocated``; what the
    allocator holds beyond and ``reserved``; what is outside of it and ``used``. Raises as `memory` does."""
    found = _peak(architecture, candidate, cluster)
    allocated = _allocated(found)
    held, apart = beyond(allocated, found, candidate, cluster), outside(candidate, cluster)
    reserved = together(allocated, held, _RESERVED)
    used = together(reserved, apart, _USED)
    parts = sorted(found.parts, key=lambda part: CATEGORIES.index(part.category))
    return (
        *(part.term for part in parts),
        _sum("allocated", allocated), *held,
        _sum("reserved", reserved), *apart,
        _sum("used", used),
    )  # fmt: skip


def _peak(architecture: Architecture, candidate: Candidate, cluster: Cluster) -> Peak:
    _check(architecture, candidate)
    return on_device(peak(places(architecture, candidate)), cluster)


def _allocated(found: Peak) -> Figure:
    return total(found.parts, f"all tensors alive {_SAID[found.moment]}, on stage {found.stage}")


def _sum(name: str, figure: Figure) -> Term:
    return Term(name, figure, 1.0, figure.where)


def _check(architecture: Architecture, candidate: Candidate) -> None:
    if architecture.layers < 1 or architecture.d_model < 1 or candidate.micro_batch <= 0 or candidate.seq_len < 1:
        raise NotCovered("the model or the batch has no size")
    if architecture.is_mixture and architecture.experts % candidate.expert:
        raise NotCovered(f"{architecture.experts} experts do not divide over {candidate.expert} ranks")
