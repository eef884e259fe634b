"""What each pipeline stage holds: its layers, the tables, and how many micro-batches are in flight."""

from __future__ import annotations

from dataclasses import dataclass

from meshscope.advisor.architecture import Architecture
from meshscope.advisor.candidate import Candidate
from meshscope.advisor.coverage import NotCovered


@dataclass(frozen=True)
class Stage:
    """One pipeline rank. ``plain_layers`` have an MLP, ``mixture_layers`` experts.

    ``in_flight``: how many micro-batches' activations of all its layers are alive at the peak, a fraction where stages
    are virtual.
    """

    index: int
    plain_layers: int
    mixture_layers: int
    has_embedding: bool
    has_head: bool
    in_flight: float

    @property
    def layers(self) -> int:
        return self.plain_layers + self.mixture_layers


def stages(architecture: Architecture, candidate: Candidate) -> tuple[Stage, ...]:
    """All stages, first to last. Layers that do not divide go to the stages in the middle: the first has the token
    table beside its layers, the last the output layer."""
    if candidate.pipeline > architecture.layers:
        raise NotCovered(
            f"{candidate.pipeline} pipeline stages are more than the {architecture.layers} layers",
            hint="Use at most one stage per layer.",
        )
    counts = _spread(architecture.layers, candidate.pipeline)
    plain_left = architecture.layers - architecture.mixture_layers
    found = []
    for index, count in enumerate(counts):
        plain = min(plain_left, count)
        plain_left -= plain
        found.append(_stage(candidate, index, plain, count - plain))
    return tuple(found)


def _stage(candidate: Candidate, index: int, plain: int, mixture: int) -> Stage:
    is_last = index == candidate.pipeline - 1
    return Stage(index, plain, mixture, index == 0, is_last, in_flight(candidate, index))


def _spread(layers: int, pipeline: int) -> list[int]:
    base, extra = divmod(layers, pipeline)
    order = [*range(1, pipeline - 1), 0, pipeline - 1] if pipeline > 1 else [0]
    counts = [base] * pipeline
    for index in order[:extra]:
        counts[index] += 1
    return counts


def in_flight(candidate: Candidate, index: int) -> float:
    """Micro-batches whose activations stage ``index`` (from 0) keeps at its peak.

    GPipe keeps all; 1F1B as many as stages come after, and the one at work; interleaved stages keep
    ``2 (p - i - 1) + (v - 1) p + 1`` chunks of a v-th of the stage, which for the first stage is
    ``1 + (p - 1) / (p v)`` of the whole model's layers.
    SOURCE: Korthikanti et al., arXiv 2205.05198, sections 4.2.3 and 5; Narayanan et al., arXiv 2104.04473, section 2.2.
    """
    pipeline, batches, virtual = candidate.pipeline, candidate.accumulate, candidate.virtual
    if pipeline == 1:
        return 1.0
    if candidate.schedule == "gpipe":
        return float(batches)
    if virtual > 1:
        chunks = 2 * (pipeline - index - 1) + (virtual - 1) * pipeline + 1
        return min(chunks, batches * virtual) / virtual
    return float(min(pipeline - index, batches))
