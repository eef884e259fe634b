"""What ``analyze --json`` says of memory beyond the newest figures: over time, at the peak, headroom, and failures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from meshscope.analysis.allocations import Group, Holdings, holdings
from meshscope.analysis.headroom import headroom, headroom_doubt
from meshscope.analysis.memory import RankMemory, memory
from meshscope.analysis.memory_course import Moment, course
from meshscope.analysis.out_of_memory import OutOfMemory, out_of_memory
from meshscope.analysis.peak_place import NO_WINDOW, peak_places
from meshscope.records import Alive, Failure
from meshscope.run import Run

_MOST_SITES = 100


def alive_json(alive: Alive) -> dict[str, Any]:
    """``frac`` are shares of ``total_bytes``; of the sites the largest hundred."""
    return _holdings(holdings(alive))


def _holdings(found: Holdings) -> dict[str, Any]:
    said = {
        "moment": found.moment,
        "time_ns": found.time_ns,
        "total_bytes": found.total_bytes,
        "count": found.count,
        "rounding_bytes": found.rounding_bytes,
        "unplaced_bytes": found.unplaced_bytes,
    }
    groups = {"sites": found.sites[:_MOST_SITES], "parts": found.parts, "classes": found.classes,
              "largest": found.largest}  # fmt: skip
    return said | {name: [_group(group) for group in listed] for name, listed in groups.items()}


def _group(group: Group) -> dict[str, Any]:
    return {"name": group.name, "count": group.count, "bytes": group.size_bytes, "frac": group.frac}


def failure_json(failure: Failure) -> dict[str, Any]:
    """Without what is not told."""
    said = {name: value for name, value in vars(failure).items() if name != "alive" and value is not None}
    return said | ({"alive": alive_json(failure.alive)} if failure.alive is not None else {})


def measured_json(run: Run, rank: RankMemory) -> dict[str, Any]:
    """What the pool may take, the step and the phase of the peak, and the categories over time."""
    known = {"limit_bytes": rank.limit_bytes, "capacity_bytes": rank.capacity_bytes}
    if rank.record is None:
        known["largest_free_bytes"] = rank.largest_free_bytes
    said: dict[str, Any] = {name: value for name, value in known.items() if value is not None}
    place = next((one for one in peak_places(run) if one.rank == rank.rank), None) if rank.record is None else None
    if place is not None:
        said |= {"peak_step": place.step, "peak_step_from": place.seen_by}
        said |= {"peak_phase": place.phase} if place.phase else {}
    return said | {"over_time": [_moment(moment) for moment in course(run, rank)]}


def _moment(moment: Moment) -> dict[str, Any]:
    said: dict[str, Any] = {"t_ns": moment.t_ns}
    if moment.step >= 0:
        said["step"] = moment.step
    if moment.total_bytes is not None:
        said["total_bytes"] = moment.total_bytes
    return said | {"categories": moment.categories}


def headroom_json(run: Run) -> list[dict[str, Any]]:
    """``frac`` is the share of the capacity that was left at the fullest moment."""
    return [
        {name: value for name, value in asdict(one).items() if value is not None}
        | {"ranks": list(one.ranks), "frac": one.frac}
        for one in headroom(run)
    ]


def out_of_memory_json(run: Run) -> list[dict[str, Any]]:
    """A failure by rank, without what is not told."""
    return [_failed(one) for one in out_of_memory(run)]


def _failed(one: OutOfMemory) -> dict[str, Any]:
    skipped = ("holdings", "categories")
    said = {name: value for name, value in vars(one).items() if name not in skipped and value is not None}
    said |= {"cause": one.cause, "categories": {c.name: c.size_bytes for c in one.categories}}
    return said | ({"alive": _holdings(one.holdings)} if one.holdings is not None else {})


def memory_json_doubts(run: Run) -> Iterator[tuple[str, str]]:
    """(what, why)."""
    if why := headroom_doubt(run):
        yield "headroom", why
    measured = {rank.rank for rank in memory(run) if rank.record is None}
    if any(not place.phase for place in peak_places(run) if place.rank in measured):
        yield "memory.peak_phase", NO_WINDOW
