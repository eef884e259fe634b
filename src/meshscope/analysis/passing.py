"""What one rank sends and another receives, matched: the k-th send of a pair of ranks is its k-th receive.

A receiver that asks before the sender has sent waits for what the sender still computes; what is left, until one of
them is done with it, is transfer. A rank that looks late whether it is done makes that longer than the network took:
gloo's span ends when its caller looks. It begins when the call that it carries out has ended, by when all may have been
received: what tells when a rank comes is the call.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from meshscope.analysis.clocks import LOOSE_NS
from meshscope.analysis.device_steps import step_numbers
from meshscope.analysis.rounds import Round
from meshscope.spans import Kind, SpanTable, Window

Ints = npt.NDArray[np.int64]

PASSES = ("send", "recv")
_PAIR = re.compile(r"ranks (\d{1,9}) to (\d{1,9})")

NO_PEER = "which rank a send is to, or a receive from, is not told"
ALONE = "the other rank of a send or receive cannot be seen"
OTHER_CLOCK = "a send and its receive are on machines whose clocks nothing aligns"
UNEQUAL = "a send has no receive, or a receive no send, in the other rank's step"
CONTRADICTION = "a receive was done before its send began"


@dataclass(frozen=True, eq=False)
class Passed:
    """k messages of one pair, as columns of shape (k,): ``row`` of ``at``'s spans, sender first in all.

    ``came_ns`` is when each of them came, ``done_ns`` when the first of them was done.
    """

    at: tuple[int, int]
    row: tuple[Ints, Ints]
    came_ns: tuple[Ints, Ints]
    done_ns: Ints
    step: Ints


@dataclass(frozen=True, eq=False)
class Passing:
    """``unmatched`` counts spans by the reason why they have no counterpart."""

    found: tuple[Passed, ...] = ()
    unmatched: Counter[str] = field(default_factory=Counter)


def pair_of(group: str) -> tuple[int, int] | None:
    """Sender and receiver by the name of a pair of ranks; None for any other group."""
    named = _PAIR.fullmatch(group)
    return (int(named[1]), int(named[2])) if named else None


def passing(windows: Round, clock: Mapping[int, str]) -> Passing:
    """Sends and receives of a round of windows; ``clock`` names each rank's, "" where untold."""
    unmatched: Counter[str] = Counter()
    ends: dict[tuple[int, int], dict[str, tuple[int, Ints]]] = defaultdict(dict)
    for at, window in enumerate(windows):
        for kind, pair, rows in _spans(window):
            if pair is None:
                unmatched[NO_PEER] += len(rows)
            else:
                ends[pair][kind] = (at, rows)
    found = []
    for pair, sides in sorted(ends.items()):
        if why := _apart(pair, sides, clock):
            unmatched[why] += sum(len(rows) for _, rows in sides.values())
            continue
        passed, left = _matched(windows, *(sides[kind] for kind in PASSES))
        unmatched += left
        if len(passed.step):
            found.append(passed)
    return Passing(tuple(found), +unmatched)


def _spans(window: Window) -> Iterator[tuple[str, tuple[int, int] | None, Ints]]:
    """The rows of each kind and pair, in the order in which they were called."""
    spans = window.spans
    for code, kind in enumerate(spans.collectives):
        if kind not in PASSES:
            continue
        rows = np.flatnonzero((spans.kind == Kind.COLLECTIVE) & (spans.collective == code))
        rows = rows[np.argsort(spans.start_ns[rows], kind="stable")]
        for group in np.unique(spans.group[rows]).tolist():
            yield kind, pair_of(spans.groups[group]) if group >= 0 else None, rows[spans.group[rows] == group]


def _apart(pair: tuple[int, int], sides: Mapping[str, tuple[int, Ints]], clock: Mapping[int, str]) -> str:
    """Why a pair cannot be matched at all."""
    if len(sides) < len(PASSES):
        return ALONE
    source, target = (clock.get(rank, "") for rank in pair)
    return "" if source and source == target else OTHER_CLOCK


def _matched(windows: Round, sent: tuple[int, Ints], received: tuple[int, Ints]) -> tuple[Passed, Counter[str]]:
    """By order within each step; a step in which they are not equally many, or not equally large, is left out."""
    source, target = windows[sent[0]].spans, windows[received[0]].spans
    sent_in, received_in = (step_numbers(windows[at], rows) for at, rows in (sent, received))
    rows: tuple[list[Ints], list[Ints]] = ([], [])
    left: Counter[str] = Counter()
    for step in np.union1d(sent_in, received_in).tolist():
        mine, theirs = sent[1][sent_in == step], received[1][received_in == step]
        if len(mine) != len(theirs) or _differ(source.size_bytes[mine], target.size_bytes[theirs]):
            left[UNEQUAL] += len(mine) + len(theirs)
            continue
        is_sound = target.end_ns[theirs] + LOOSE_NS >= _came_ns(source, mine)
        left[CONTRADICTION] += 2 * int((~is_sound).sum())
        rows[0].append(mine[is_sound])
        rows[1].append(theirs[is_sound])
    mine, theirs = (np.concatenate([np.empty(0, dtype=np.int64), *side]).astype(np.int64) for side in rows)
    came_ns = _came_ns(source, mine), _came_ns(target, theirs)
    done_ns = np.maximum(np.minimum(source.end_ns[mine], target.end_ns[theirs]), np.maximum(*came_ns))
    step = step_numbers(windows[sent[0]], mine)
    return Passed((sent[0], received[0]), (mine, theirs), came_ns, done_ns, step), left


def _came_ns(spans: SpanTable, rows: Ints) -> Ints:
    """When the call of each began, where the span names it; else when the span did."""
    link = spans.link[rows]
    is_call = (link >= 0) & (spans.start_ns[link] < spans.start_ns[rows])
    came_ns: Ints = np.where(is_call, spans.start_ns[link], spans.start_ns[rows])
    return came_ns


def _differ(sent_bytes: Ints, received_bytes: Ints) -> bool:
    is_known = (sent_bytes >= 0) & (received_bytes >= 0)
    return bool((sent_bytes != received_bytes)[is_known].any())
