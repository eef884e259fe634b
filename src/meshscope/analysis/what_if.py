"""What the steps would take if one thing were different, by a replay of what waited for what.

A replay counts the one thing and nothing else: kernels keep their measured times, also where they would compete with
others for the device, and the host keeps its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from meshscope.analysis.bucket_size import bucket_sizes
from meshscope.analysis.graph import Graph, Part
from meshscope.analysis.graph_blocked import LEAST_NS, held_by
from meshscope.analysis.graph_run import RoundGraph
from meshscope.analysis.replay import replay
from meshscope.spans import Kind
from meshscope.units import counted, duration, ratio

Ints = npt.NDArray[np.int64]

TWICE, FREE, EVEN, HOST = "communication_twice_as_fast", "communication_hidden", "no_straggler", "host_never_late"
BUCKET = "bucket_size"

MOST_UNMATCHED = 0.01
"""Collectives whose waiting is not known may take this share of the time: they are then left as they are."""


MOST_UNSURE = 0.05
"""An answer that is further off than this, if hosts waited for their devices unseen, is none."""


@dataclass(frozen=True)
class WhatIf:
    """``total_ns`` is what the steps would take instead of the measured time, ``saved_frac`` the share that would go.

    ``bucket_bytes`` is given where the question was the size of DDP's buckets. ``caveat`` says why the answer may be
    off although the replay is right, "" where nothing is known against it.
    """

    name: str
    total_ns: int
    step_ns: float
    saved_frac: float
    bucket_bytes: int | None = None
    caveat: str = ""


def what_ifs(found: RoundGraph) -> tuple[tuple[WhatIf, ...], tuple[tuple[str, str], ...]]:
    """The answers, and (name, why) of the questions that the trace cannot answer.

    Without a collective, questions about communication are not asked.
    """
    graph = found.graph
    if graph is None:
        return (), ()
    asked: dict[str, int | str] = {}
    if found.collectives:
        asked = {
            FREE: _replayed(graph, FREE),
            TWICE: _untold(found) or _replayed(graph, TWICE),
            EVEN: _even(graph, found),
        }
    if found.has_host:
        asked[HOST] = _replayed(graph, HOST)
    answers = [_answer(found, name, said) for name, said in asked.items() if isinstance(said, int)]
    untold = [(name, said) for name, said in asked.items() if isinstance(said, str)]
    buckets = bucket_sizes(found) if found.collectives else ""
    if isinstance(buckets, str):
        untold += [(BUCKET, buckets)] if buckets else []
    else:
        least_ns = next(one.total_ns for one in answers if one.name == FREE)
        answers += [_answer(found, BUCKET, max(ns, least_ns), size_bytes) for size_bytes, ns in buckets.items()]
    unmatched = _untold(found)
    if unmatched:
        answers = [
            replace(one, caveat=unmatched + _WAITING[one.name]) if one.name in _WAITING else one for one in answers
        ]
    return tuple(answers), tuple(untold)


WITH_WAITING = "waiting is part of their time"
_WAITING = {FREE: ", and goes with it", HOST: ", and stays, also where a late host caused it"}
"""What a replay does with waiting that it cannot tell from communication."""


def _answer(found: RoundGraph, name: str, total_ns: int, bucket_bytes: int | None = None) -> WhatIf:
    length_ns = found.graph.length_ns if found.graph is not None else 0
    steps = max(1, len(found.steps))
    return WhatIf(name, total_ns, total_ns / steps, ratio(length_ns - total_ns, length_ns), bucket_bytes)


def _untold(found: RoundGraph) -> str:
    """Why communication cannot be told from waiting, "" where it can."""
    length_ns = found.graph.length_ns if found.graph is not None else 0
    if found.unmatched_ns <= MOST_UNMATCHED * length_ns:
        return ""
    of = counted(found.collectives, "collective span")
    have = "has" if found.unmatched == 1 else "have"
    return f"{found.unmatched} of {of} {have} no counterpart on every rank, so {WITH_WAITING}"


def _end(graph: Graph, times_ns: Ints) -> int:
    return int(times_ns[-1]) - graph.start_ns


def changed(graph: Graph, name: str) -> Ints:
    """The weights of a replay with one thing changed: half the transfer, none, or a host that takes no time.

    Where communication is free ranks still wait for each other; where that waiting is not told apart it goes as well.
    """
    if name == TWICE:
        return np.where(graph.part == Part.TRANSFER, (graph.weight_ns + 1) // 2, graph.weight_ns)
    parts = (Part.TRANSFER, Part.WAITED) if name == FREE else (Part.HOST, Part.LAUNCH)
    return np.where(np.isin(graph.part, parts), 0, graph.weight_ns)


def _replayed(graph: Graph, name: str) -> int:
    return _end(graph, replay(graph, changed(graph, name)))


def _even(graph: Graph, found: RoundGraph) -> int | str:
    """Every rank by itself, and of those the median one (the earlier of two): what remains if nobody is waited for."""
    if len(found.ranges) < 2:
        return "only one rank can be seen"
    if found.is_passing:
        return "ranks pass on what others go on with, and none of them would get through a step by itself"
    why = _untold(found)
    if why:
        return why
    total_ns = _median(alone(graph, found, graph.weight_ns))
    weight_ns = _unheld(graph, found)
    least_ns = _median(alone(graph, found, weight_ns))
    if total_ns - least_ns > MOST_UNSURE * graph.length_ns:
        at = int((graph.weight_ns - weight_ns).argmax())
        return (
            f"rank {graph.rank[at]}'s host launches nothing for {duration(int(graph.weight_ns[at]))}, mostly while its "
            "device is in a collective, and whether it waits for that is not recorded: if no rank were late the steps "
            f"would take between {duration(least_ns)} and {duration(total_ns)} instead of {duration(graph.length_ns)}"
        )
    return total_ns


def alone(graph: Graph, found: RoundGraph, weight_ns: Ints) -> list[int]:
    """What the steps would take each rank (in the order of ``found.ranges``) if none waited for another."""
    times_ns = replay(graph, weight_ns, together=False)
    last_ns = np.full(len(found.ranges), np.iinfo(np.int64).min)
    is_of_one = graph.window >= 0
    np.maximum.at(last_ns, graph.window[is_of_one], times_ns[is_of_one])
    lengths: list[int] = (last_ns - np.array([here.start_ns for here in found.ranges])).tolist()
    return lengths


def _median(lengths_ns: list[int]) -> int:
    return sorted(lengths_ns)[(len(lengths_ns) - 1) // 2]


def _unheld(graph: Graph, found: RoundGraph) -> Ints:
    """The weights if hosts that may have waited for their device all did: what is left is after the wait."""
    weight_ns = graph.weight_ns.copy()
    is_host = (graph.part == Part.HOST) & (graph.row >= 0) & (graph.weight_ns >= LEAST_NS)
    for here in found.ranges:
        at = np.flatnonzero(is_host & (graph.window == here.number))
        at = at[here.spans.kind[graph.row[at]] == Kind.LAUNCH]
        row = held_by(here, graph.row[at], graph.time_ns[at] - graph.weight_ns[at])
        at, row = at[row >= 0], row[row >= 0]
        weight_ns[at] = np.minimum(weight_ns[at], graph.time_ns[at] - here.spans.end_ns[row])
    return weight_ns
