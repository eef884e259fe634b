"""What happens when, in one rank's step: lanes that each do one thing at a time, and what waits for what.

A program is a tree: pieces of work in the order in which the host issues them, and repeats of such lists. Layers and
micro-batches alike are not played one by one: once a repetition moves every clock it reads by the same amount as the
one before, all others do too (clocks are only added to and compared, so what follows is the same, later), and they are
skipped at once. A replay with and without skipping is the same to rounding.

A piece of work on the compute lane takes longer while a collective is under way beside it (``contention``).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

COMPUTE, HOST = "compute", "host"

_KEPT = 12
"""How many past values of a signal, and intervals of a lane, later pieces may look back at."""

_LOOKED_BACK = 2
"""How many signals ago what follows a repeated body may ask for."""

State = dict[tuple[str, int], float]
Totals = tuple[dict[str, float], dict[str, float], float]

_SAME = 1e-9
"""Two moves are the same if they differ by less than this share."""


@dataclass(frozen=True, slots=True)
class Piece:
    """``seconds`` on ``lane``, not before the host has issued it (``host_s`` of its time) nor before the signals it
    ``waits`` for: pairs of a name and how many signals of that name ago (0 is the latest; one that was never given is
    not waited for). Its end is the signal ``gives``. ``name``, ``phase`` and ``kind`` are for those who look, as are
    ``parts``: the operations that it is made of, in order, with their seconds."""

    lane: str
    seconds: float
    name: str
    phase: str = ""
    kind: str = ""
    waits: tuple[tuple[str, int], ...] = ()
    gives: str = ""
    host_s: float = 0.0
    size_bytes: float = 0.0
    group: str = ""
    parts: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Repeat:
    """``body`` ``times`` over."""

    body: tuple[Piece | Repeat, ...]
    times: int = 1

    @cached_property
    def lanes(self) -> frozenset[str]:
        """That the body has work on."""
        own = {each.lane for each in self.body if isinstance(each, Piece)}
        host = {HOST} if any(each.host_s for each in self.body if isinstance(each, Piece)) else set()
        return frozenset(own | host).union(*(each.lanes for each in self.body if isinstance(each, Repeat)))

    @cached_property
    def gives(self) -> dict[str, int]:
        """How often one repetition gives each of its signals."""
        return self._counted(lambda piece: piece.gives, lambda inner: inner.gives)

    @cached_property
    def intervals(self) -> dict[str, int]:
        """How many pieces that take time one repetition has on each lane beside compute."""
        return self._counted(
            lambda piece: piece.lane if piece.seconds and piece.lane != COMPUTE else "", lambda inner: inner.intervals
        )

    def _counted(self, own: Callable[[Piece], str], nested: Callable[[Repeat], dict[str, int]]) -> dict[str, int]:
        found: dict[str, int] = {}
        for each in self.body:
            if isinstance(each, Piece):
                if own(each):
                    found[own(each)] = found.get(own(each), 0) + 1
            else:
                for name, many in nested(each).items():
                    found[name] = found.get(name, 0) + many * each.times
        return found

    @cached_property
    def reads(self) -> dict[str, int]:
        """The signals that the body waits for, and how far back."""
        found: dict[str, int] = {}
        for each in self.body:
            pairs = each.waits if isinstance(each, Piece) else each.reads.items()
            for name, lag in pairs:
                found[name] = max(lag, found.get(name, 0))
        return found


@dataclass(frozen=True, slots=True)
class Played:
    """One piece, as it ran."""

    piece: Piece
    start_s: float
    end_s: float


@dataclass
class Clocks:
    """Where every lane is, and when each signal was given. ``busy`` adds up what each lane did; ``waited`` how long the
    compute lane stood still for each lane's signals."""

    contention: float = 1.0
    lanes: dict[str, float] = field(default_factory=dict)
    signals: dict[str, deque[float]] = field(default_factory=dict)
    gave: dict[str, str] = field(default_factory=dict)
    recent: dict[str, deque[tuple[float, float]]] = field(default_factory=dict)
    busy: dict[str, float] = field(default_factory=dict)
    waited: dict[str, float] = field(default_factory=dict)
    slowed_s: float = 0.0
    played: list[Played] | None = None

    @property
    def now_s(self) -> float:
        return max((at for lane, at in self.lanes.items() if lane != HOST), default=0.0)


def play(program: Repeat, *, contention: float = 1.0, is_folded: bool = True, is_kept: bool = False) -> Clocks:
    """Plays a program. ``is_kept`` lists every piece as it ran (and then nothing is skipped)."""
    clocks = Clocks(contention, played=[] if is_kept else None)
    _repeat(clocks, program, is_folded=is_folded and not is_kept)
    return clocks


def _repeat(clocks: Clocks, node: Repeat, *, is_folded: bool) -> None:
    move = math.nan
    is_watched = is_folded and node.times > 3
    for number in range(node.times):
        if is_watched:
            start, totals = _state(clocks, node), _totals(clocks)
        for each in node.body:
            if isinstance(each, Piece):
                _piece(clocks, each)
            else:
                _repeat(clocks, each, is_folded=is_folded)
        if is_watched:
            moved = _moved(start, _state(clocks, node))
            if _is_close(moved, move) and _is_alone(clocks, node):
                _skip(clocks, node, start, moved, totals, node.times - number - 1)
                return
            move = moved


def _state(clocks: Clocks, node: Repeat) -> State:
    """Every clock that the body reads or moves, and the latest signals that what follows may read; NaN where there is
    none yet. Lanes are at place -1."""
    state = {(lane, -1): clocks.lanes.get(lane, math.nan) for lane in node.lanes}
    for name in node.gives.keys() | node.reads.keys():
        values = clocks.signals.get(name, ())
        for back in range(max(node.reads.get(name, 0), _LOOKED_BACK) + 1):
            if back < len(values):
                state[name, back] = values[back]
            elif name in node.gives:
                state[name, back] = math.nan
    return state


def _totals(clocks: Clocks) -> Totals:
    return dict(clocks.busy), dict(clocks.waited), clocks.slowed_s


def _is_close(left: float, right: float) -> bool:
    return abs(left - right) <= _SAME * max(abs(left), abs(right), 1e-12)


def _is_alone(clocks: Clocks, node: Repeat) -> bool:
    """Whether no lane beside the body's is still at work, which would slow some repetitions and not others."""
    now = clocks.lanes.get(COMPUTE, 0.0)
    others = (intervals for lane, intervals in clocks.recent.items() if lane not in node.lanes)
    return clocks.contention == 1.0 or all(intervals[-1][1] <= now for intervals in others)


def _moved(before: State, after: State) -> float:
    """By how much all clocks moved, if by the same, else NaN; those that did not move at all are nobody's."""
    moves = [after[place] - old for place, old in before.items() if after[place] != old]
    if not moves:
        return 0.0
    low, high = min(moves), max(moves)
    return (low + high) / 2 if not any(map(math.isnan, moves)) and _is_close(low, high) else math.nan


def _skip(clocks: Clocks, node: Repeat, before: State, move: float, totals: Totals, times: int) -> None:
    """Moves on what moves, as often as it would."""
    for lane in node.lanes:
        if clocks.lanes.get(lane, math.nan) != before[lane, -1]:
            clocks.lanes[lane] += move * times
    for name, many in node.gives.items():
        if clocks.signals[name][0] != before[name, 0]:
            clocks.signals[name] = deque(_later(list(clocks.signals[name]), many, move, times), maxlen=_KEPT)
    for lane, many in node.intervals.items():
        pairs = list(clocks.recent[lane])[::-1]
        starts = _later([start for start, _ in pairs], many, move, times)
        ends = _later([end for _, end in pairs], many, move, times)
        clocks.recent[lane] = deque(list(zip(starts, ends, strict=True))[::-1], maxlen=_KEPT)
    busy, waited, slowed_s = totals
    for name in clocks.busy:
        clocks.busy[name] += (clocks.busy[name] - busy.get(name, 0.0)) * times
    for name in clocks.waited:
        clocks.waited[name] += (clocks.waited[name] - waited.get(name, 0.0)) * times
    clocks.slowed_s += (clocks.slowed_s - slowed_s) * times


def _later(newest: list[float], many: int, move: float, times: int) -> list[float]:
    """Times that come ``many`` per repetition, newest first, ``times`` repetitions on: each repetition has what the one
    before had, moved, and what was there before the last lies as many places further back."""
    skipped = many * times
    return [
        newest[place % many] + (times - place // many) * move if place < skipped + many else newest[place - skipped]
        for place in range(min(_KEPT, len(newest) + skipped))
    ]


def _piece(clocks: Clocks, piece: Piece) -> None:
    free = clocks.lanes.get(piece.lane, 0.0)
    ready, waited_for = free, ""
    if piece.host_s:
        issued = clocks.lanes.get(HOST, 0.0) + piece.host_s
        clocks.lanes[HOST] = issued
        if issued > ready:
            ready, waited_for = issued, HOST
    for name, lag in piece.waits:
        values = clocks.signals.get(name)
        if values is not None and lag < len(values) and values[lag] > ready:
            ready, waited_for = values[lag], clocks.gave[name]
    end = ready + piece.seconds
    if piece.lane == COMPUTE:
        if waited_for:
            clocks.waited[waited_for] = clocks.waited.get(waited_for, 0.0) + ready - free
        end += _slowed(clocks, ready, end)
    elif piece.seconds:
        clocks.recent.setdefault(piece.lane, deque(maxlen=_KEPT)).append((ready, end))
    clocks.lanes[piece.lane] = end
    clocks.busy[piece.lane] = clocks.busy.get(piece.lane, 0.0) + end - ready
    if piece.gives:
        clocks.signals.setdefault(piece.gives, deque(maxlen=_KEPT)).appendleft(end)
        clocks.gave[piece.gives] = piece.lane
    if clocks.played is not None:
        clocks.played.append(Played(piece, ready, end))


def _slowed(clocks: Clocks, start: float, end: float) -> float:
    """What collectives beside it add to a piece of compute."""
    if clocks.contention == 1.0:
        return 0.0
    beside = 0.0
    for intervals in clocks.recent.values():
        for begun, ended in reversed(intervals):
            if ended <= start:
                break
            beside += max(0.0, min(end, ended) - max(start, begun))
    more = (clocks.contention - 1.0) * min(beside, end - start)
    clocks.slowed_s += more
    return more
