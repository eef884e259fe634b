"""A sweep: each strategy once for every number of ranks and every batch that were asked for, under names of their own.

A sweep is one plan, whose runs stand beside each other in one folder: ``ddp ranks 2`` in ``ddp-ranks-2``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from meshscope.capture.request import Request
from meshscope.discovery import Workload
from meshscope.experiment import PlannedRun


@dataclass(frozen=True)
class Combination:
    """One run. ``batch`` is None where the request leaves it to the model; ``name`` is that of no other run."""

    workload: Workload
    ranks: int
    batch: int | None
    name: str

    @property
    def folder(self) -> str:
        return self.name.replace(" ", "-")


def combinations(request: Request, workloads: Sequence[Workload], ranks: int) -> tuple[Combination, ...]:
    """Strategy by strategy, ranks before batches; ``ranks`` is their number where no list was asked for.

    What can only have one rank (a baseline) has one whatever the list says, so it runs once for each batch.
    """
    return tuple(
        Combination(workload, own_ranks, batch, _name(request, workload, own_ranks, batch))
        for workload in workloads
        for own_ranks in ((1,) if workload.max_ranks == 1 else request.ranks_each or (ranks,))
        for batch in request.batch_each or (request.batch,)
    )


def _name(request: Request, workload: Workload, ranks: int, batch: int | None) -> str:
    name = workload.strategy
    if request.ranks_each and workload.max_ranks != 1:
        name += f" ranks {ranks}"
    return f"{name} batch {batch}" if request.batch_each else name


def narrowed(request: Request, batch: int | None) -> Request:
    """The request of one run of a sweep."""
    return replace(request, batch=batch) if batch else request


def request_of(request: Request, planned: PlannedRun) -> Request:
    """What one planned run was asked for."""
    return narrowed(request, planned.batch or None)
