"""Which collectives were stuck, where and on whom they waited: the flight recorders of several ranks, side by side.

Calls are matched by process group and sequence number. A recorder keeps the newest calls only, so a call is missing on
a rank when that rank's newest call of the group comes before it, never because it is no longer in the buffer. A call
that has completed somewhere is not called missing elsewhere: dumps are not made at one moment.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from meshscope.records import Call, FlightRecord, Group
from meshscope.run import Run

Key = tuple[str, int]


@dataclass(frozen=True)
class Unfinished:
    """A collective (or a point-to-point operation) that at least one rank was in and had not left when it was dumped.

    ``waiting`` ranks have called it and not completed it, ``done`` ranks have completed it, ``absent`` ranks of the
    group have not called it, by their own newest call; ``unknown`` ranks of the group have left no dump. ``last`` maps
    an absent rank to its newest call of the group in words.
    """

    group: str
    description: str
    sequence: int
    collective: str
    waiting: tuple[int, ...]
    done: tuple[int, ...]
    absent: tuple[int, ...]
    unknown: tuple[int, ...]
    last: dict[int, str]
    since_ns: int
    timeout_ns: int
    where: str


@dataclass(frozen=True)
class Mismatch:
    """Ranks that differ in what they call under one number of a group; ``calls`` maps what, in words, to the ranks."""

    group: str
    description: str
    sequence: int
    of: str
    calls: dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class Called:
    """One kind of call over all ranks: how many, how many of them are not done, and the last number of it."""

    collective: str
    group: str
    ranks: tuple[int, ...]
    count: int
    unfinished: int
    last_sequence: int


@dataclass(frozen=True)
class Flight:
    """``ranks`` have a dump. ``has_members`` is false where no dump tells which ranks a group has."""

    ranks: tuple[int, ...]
    records: tuple[FlightRecord, ...]
    calls: tuple[Called, ...]
    unfinished: tuple[Unfinished, ...]
    mismatches: tuple[Mismatch, ...]
    has_members: bool


def flight(run: Run) -> Flight | None:
    """None where the run has no flight recorder's dump."""
    records = tuple(sorted((r for r in run.records if isinstance(r, FlightRecord)), key=lambda record: record.rank))
    if not records:
        return None
    groups = _members(records)
    by_key = _by_key(records)
    newest = _newest(records)
    return Flight(
        ranks=tuple(record.rank for record in records),
        records=records,
        calls=_called(records),
        unfinished=(
            *(
                _unfinished(key, calls, groups.get(key[0], Group(key[0], "", ())), newest, records)
                for key, calls in by_key.items()
                if not all(call.is_done for call in calls.values())
            ),
            *(
                _alone(record.rank, call)
                for record in records
                for call in record.calls
                if call.is_p2p and not call.is_done
            ),
        ),
        mismatches=tuple(
            found for key, calls in by_key.items() if (found := _mismatch(key, calls, groups.get(key[0]))) is not None
        ),
        has_members=any(group.ranks for group in groups.values()),
    )


def _members(records: Sequence[FlightRecord]) -> dict[str, Group]:
    """Each group as the dump tells it that says most of it."""
    groups: dict[str, Group] = {}
    for record in records:
        for name, group in record.groups.items():
            if name not in groups or (len(group.ranks), group.description) > (
                len(groups[name].ranks), groups[name].description
            ):  # fmt: skip
                groups[name] = group
    return groups


def _by_key(records: Sequence[FlightRecord]) -> dict[Key, dict[int, Call]]:
    """Collectives by group and number, each with the call of every rank that has it; in order."""
    found: dict[Key, dict[int, Call]] = defaultdict(dict)
    for record in records:
        for call in record.calls:
            if not call.is_p2p and call.sequence >= 0:
                found[call.group, call.sequence].setdefault(record.rank, call)
    return dict(sorted(found.items()))


def _newest(records: Sequence[FlightRecord]) -> dict[tuple[str, int], Call]:
    """By group and rank, the newest collective."""
    newest: dict[tuple[str, int], Call] = {}
    for record in records:
        for call in record.calls:
            known = newest.get((call.group, record.rank))
            if not call.is_p2p and (known is None or call.sequence > known.sequence):
                newest[call.group, record.rank] = call
    return newest


def _unfinished(
    key: Key,
    calls: dict[int, Call],
    group: Group,
    newest: dict[tuple[str, int], Call],
    records: Sequence[FlightRecord],
) -> Unfinished:
    name, sequence = key
    waiting = sorted(rank for rank, call in calls.items() if not call.is_done)
    dumped = {record.rank for record in records}
    # Without a list of its members, a group has the ranks that have called in it.
    members = set(group.ranks) or {record.rank for record in records if name in record.groups}
    absent = [rank for rank in sorted(members & dumped) if rank not in calls and _is_behind(rank, key, newest)]
    first = calls[waiting[0]]
    return Unfinished(
        group=name,
        description=group.description,
        sequence=sequence,
        collective=first.collective,
        waiting=tuple(waiting),
        done=tuple(sorted(rank for rank, call in calls.items() if call.is_done)),
        absent=tuple(absent),
        unknown=tuple(sorted(members - dumped)),
        last={rank: _last(newest.get((name, rank))) for rank in absent},
        since_ns=min((calls[rank].created_ns for rank in waiting if calls[rank].created_ns), default=0),
        timeout_ns=first.timeout_ns,
        where=next((calls[rank].where for rank in waiting if calls[rank].where), ""),
    )


def _alone(rank: int, call: Call) -> Unfinished:
    """A point-to-point operation: whom it is between stands in its name, and only its own rank waits in it."""
    return Unfinished(
        group=call.group,
        description="",
        sequence=call.sequence,
        collective=f"{call.collective} {call.peers}".strip(),
        waiting=(rank,),
        done=(),
        absent=(),
        unknown=(),
        last={},
        since_ns=call.created_ns,
        timeout_ns=call.timeout_ns,
        where=call.where,
    )


def _is_behind(rank: int, key: Key, newest: dict[tuple[str, int], Call]) -> bool:
    last = newest.get((key[0], rank))
    return last is None or last.sequence < key[1]


def _last(call: Call | None) -> str:
    if call is None:
        return "no call of this group"
    return f"{call.collective} {call.sequence}{'' if call.is_done else ', not completed'}"


def _mismatch(key: Key, calls: dict[int, Call], group: Group | None) -> Mismatch | None:
    """What ranks call must be the same collective, and for most of them of one size and one type."""
    for of, said in (("collective", _operation), ("size", _size), ("type", _dtype)):
        ranks: dict[str, list[int]] = defaultdict(list)
        for rank, call in sorted(calls.items()):
            ranks[said(call)].append(rank)
        if len(ranks) > 1:
            words = {what: tuple(who) for what, who in ranks.items()}
            return Mismatch(key[0], group.description if group else "", key[1], of, words)
    return None


def _operation(call: Call) -> str:
    return call.collective


# What each rank may have a size of its own for.
_UNEVEN_IN = ("all_to_all", "scatter", "gather", "broadcast", "reduce")


def _size(call: Call) -> str:
    if call.collective in (*_UNEVEN_IN, "barrier", "send_recv", "unnamed"):
        return call.collective
    # An uneven all-gather or reduce-scatter differs on one side; the other is that of all ranks.
    sides = {"all_gather": call.output_sizes, "reduce_scatter": call.input_sizes}
    sizes = sides.get(call.collective, call.input_sizes)
    return f"{call.collective} of {_shapes(sizes)}"


def _dtype(call: Call) -> str:
    if call.collective in ("barrier", "scatter", "gather", "broadcast", "unnamed"):
        return call.collective
    return f"{call.collective} of {', '.join(dict.fromkeys(call.input_dtypes)) or 'no type told'}"


def _shapes(sizes: Iterable[tuple[int, ...]]) -> str:
    words = ["×".join(map(str, shape)) or "scalar" for shape in sizes]
    return ", ".join(words[:4]) + (f" and {len(words) - 4} more" if len(words) > 4 else "") or "no size told"


def _called(records: Sequence[FlightRecord]) -> tuple[Called, ...]:
    counts: Counter[tuple[str, str]] = Counter()
    left: Counter[tuple[str, str]] = Counter()
    ranks: dict[tuple[str, str], set[int]] = defaultdict(set)
    last: dict[tuple[str, str], int] = {}
    for record in records:
        for call in record.calls:
            key = (call.collective, call.group)
            counts[key] += 1
            left[key] += not call.is_done
            ranks[key].add(record.rank)
            last[key] = max(last.get(key, -1), call.sequence)
    return tuple(
        Called(name, group, tuple(sorted(ranks[name, group])), count, left[name, group], last[name, group])
        for (name, group), count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    )
