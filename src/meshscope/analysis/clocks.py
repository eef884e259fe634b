"""Clocks of several ranks, aligned on the ends of the collectives they share: these end at the same time everywhere.

Ranks of one machine share a clock, and so do ranks whose ends agree as well as ends ever do: an offset that is smaller
than the ends' own scatter is no offset. What is left is corrected by the median difference of the ends, with a drift
where there is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

_SURE_NS, LOOSE_NS = 20_000, 200_000
"""Times of two devices of one machine are known to each other within something between these."""


@dataclass
class Known:
    """Offsets that follow from what was matched so far: a forest of ranks, each with its offset to its parent."""

    parent: dict[int, int] = field(default_factory=dict)
    ahead_ns: dict[int, int] = field(default_factory=dict)

    def root(self, rank: int) -> tuple[int, int]:
        """The root of a rank, and what the rank's clock is ahead of the root's."""
        total = 0
        while self.parent.get(rank, rank) != rank:
            total += self.ahead_ns[rank]
            rank = self.parent[rank]
        return rank, total

    def offset_ns(self, a: int, b: int) -> int | None:
        """What b's clock is ahead of a's; None where nothing relates the two."""
        (root_a, ahead_a), (root_b, ahead_b) = self.root(a), self.root(b)
        return ahead_b - ahead_a if root_a == root_b else None

    def join(self, a: int, b: int, offset_ns: int) -> None:
        """b's clock is ``offset_ns`` ahead of a's; nothing changes where that is known already."""
        (root_a, ahead_a), (root_b, ahead_b) = self.root(a), self.root(b)
        if root_a != root_b:
            self.parent[root_b] = root_a
            self.ahead_ns[root_b] = ahead_a + offset_ns - ahead_b


@dataclass(frozen=True, eq=False)
class Ends:
    """Ends of m collectives on some ranks, shape (len(ranks), m), each by its rank's own clock."""

    ranks: tuple[int, ...]
    end_ns: Ints


@dataclass(frozen=True)
class Clock:
    """A rank's clock is ``offset_ns`` ahead at the time ``at_ns`` (its own), and gains ``drift_ns_per_s``."""

    offset_ns: int = 0
    drift_ns_per_s: float = 0.0
    at_ns: int = 0

    def common(self, time_ns: Ints) -> Ints:
        """Times of this clock by the common one."""
        if not self.offset_ns and not self.drift_ns_per_s:
            return time_ns
        gained = (time_ns - self.at_ns) * (self.drift_ns_per_s / 1e9)
        return time_ns - self.offset_ns - gained.astype(np.int64)


def tolerance_ns(scatter_ns: float) -> int:
    """How far two times may contradict each other: by how far the ends scatter, which says how good the clocks are."""
    return round(min(max(scatter_ns, _SURE_NS), LOOSE_NS))


def clocks(known: Known, hosts: dict[int, str], ends: Sequence[Ends]) -> tuple[dict[int, Clock], int]:
    """A clock for every rank of ``hosts`` (which names the machine of each, "" where untold), and the ends' scatter."""
    ranks = sorted(hosts)
    first = {rank: known.root(rank)[1] for rank in ranks}
    apart = _apart(first, ends)
    own = {rank: first[rank] + _median(apart[rank]) for rank in ranks}
    scatter_ns = _scatter(apart)
    machines = _machines(ranks, known, hosts, own, scatter_ns)
    largest = max(machines, key=lambda members: (len(members), -members[0]), default=[])
    found: dict[int, Clock] = {}
    for members in machines:
        if known.offset_ns(largest[0], members[0]) is None:  # no collective relates them: nothing to align on
            found |= dict.fromkeys(members, Clock())
            continue
        zero_ns = _median(np.array([own[rank] for rank in largest], dtype=np.int64))
        offset_ns = _median(np.array([own[rank] for rank in members], dtype=np.int64)) - zero_ns
        found |= dict.fromkeys(members, Clock(0 if members is largest else offset_ns))
    return _drifting(found, machines, largest, ends), scatter_ns


def _apart(offset_ns: dict[int, int], ends: Sequence[Ends]) -> dict[int, Ints]:
    """How far the ends of each rank lie from the median end of their collective, by corrected clocks."""
    parts: dict[int, list[Ints]] = {rank: [np.empty(0, dtype=np.int64)] for rank in offset_ns}
    for one in ends:
        corrected = one.end_ns - np.array([[offset_ns[rank]] for rank in one.ranks], dtype=np.int64)
        away = corrected - np.median(corrected, axis=0).astype(np.int64)
        for rank, row in zip(one.ranks, away, strict=True):
            parts[rank].append(row)
    return {rank: np.concatenate(rows) for rank, rows in parts.items()}


def _median(values: Ints) -> int:
    return int(np.median(values)) if len(values) else 0


def _scatter(apart: dict[int, Ints]) -> int:
    """How far ends lie from their rank's own median: 19 of 20 within this."""
    around = [np.abs(values - _median(values)) for values in apart.values() if len(values)]
    return int(np.percentile(np.concatenate(around), 95)) if around else 0


def _machines(
    ranks: list[int], known: Known, hosts: dict[int, str], own: dict[int, int], scatter_ns: int
) -> list[list[int]]:
    """Ranks that share a clock, by rank: those of one host, and those whose offsets cannot be told apart."""
    groups: dict[tuple[int, str], list[int]] = {}
    for rank in ranks:
        groups.setdefault((known.root(rank)[0], hosts[rank] or f"rank {rank}"), []).append(rank)
    middle = {key: _median(np.array([own[rank] for rank in members])) for key, members in groups.items()}
    found: list[list[int]] = []
    last: tuple[int, int] | None = None
    for key in sorted(groups, key=lambda key: (key[0], middle[key])):
        if last is not None and last[0] == key[0] and middle[key] - last[1] <= scatter_ns:
            found[-1] += groups[key]
        else:
            found.append(list(groups[key]))
        last = key[0], middle[key]
    return [sorted(members) for members in found]


def _drifting(
    found: dict[int, Clock], machines: list[list[int]], largest: list[int], ends: Sequence[Ends]
) -> dict[int, Clock]:
    """The clocks of the other machines with their drift, where that explains most of what is left."""
    for members in machines:
        if members is largest:
            continue
        time_ns, away_ns = _against(members, largest, found, ends)
        drift = _drift(time_ns, away_ns)
        if drift is not None:
            at_ns, slope, middle_ns = drift
            offset_ns = found[members[0]].offset_ns + middle_ns
            found |= dict.fromkeys(members, Clock(offset_ns, slope * 1e9, at_ns))
    return found


def _against(
    members: list[int], largest: list[int], found: dict[int, Clock], ends: Sequence[Ends]
) -> tuple[Ints, Ints]:
    """Where and how far the members' ends lie from those of the largest machine, collective by collective."""
    times, away = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for one in ends:
        mine = [at for at, rank in enumerate(one.ranks) if rank in members]
        theirs = [at for at, rank in enumerate(one.ranks) if rank in largest]
        if mine and theirs:
            own_ns = np.median(one.end_ns[mine], axis=0).astype(np.int64)
            times.append(own_ns)
            away.append(own_ns - found[members[0]].offset_ns - np.median(one.end_ns[theirs], axis=0).astype(np.int64))
    return np.concatenate(times), np.concatenate(away)


def _drift(time_ns: Ints, away_ns: Ints) -> tuple[int, float, int] | None:
    """(when, slope, how far there) by the medians of the first and the last third; None where it explains little."""
    if len(time_ns) < 9:
        return None
    order = np.argsort(time_ns, kind="stable")
    time_ns, away_ns = time_ns[order], away_ns[order]
    third = len(order) // 3
    early, late = int(np.median(time_ns[:third])), int(np.median(time_ns[-third:]))
    if late <= early:
        return None
    slope = (float(np.median(away_ns[-third:])) - float(np.median(away_ns[:third]))) / (late - early)
    at_ns = (early + late) // 2
    level = away_ns - (time_ns - at_ns) * slope
    middle_ns = int(np.median(level))
    before, after = np.abs(away_ns - np.median(away_ns)), np.abs(level - middle_ns)
    return (at_ns, slope, middle_ns) if np.percentile(after, 95) < 0.5 * np.percentile(before, 95) else None
