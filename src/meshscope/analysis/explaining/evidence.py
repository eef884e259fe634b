"""The windows, spans, rules and dropped events behind a figure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from meshscope.analysis.device_steps import device_step_ns, device_steps
from meshscope.analysis.explaining.number import Events, Evidence, Place, Ruled, Shown
from meshscope.analysis.in_steps import steps_of
from meshscope.intervals import Intervals, complement, union
from meshscope.spans import Kind, SpanTable, Window
from meshscope.units import NS_PER_S

Ints = npt.NDArray[np.int64]

MOST_SHOWN = 5
WORK = (Kind.COMPUTE, Kind.COLLECTIVE, Kind.COPY)
_NO_RULE = "the trace's own category"


@dataclass(frozen=True, eq=False)
class Pick:
    """Spans of one window by their ``row``, of which the time within ``where`` counts."""

    window: Window
    row: Ints
    where: Intervals
    share_ns: Ints

    @classmethod
    def within(cls, window: Window, row: Ints, where: Intervals) -> Pick:
        """Those of the rows that have any time there."""
        spans = window.spans
        share_ns = covered_ns(where, spans.end_ns[row]) - covered_ns(where, spans.start_ns[row])
        keep = share_ns > 0
        return cls(window, row[keep], where, share_ns[keep])


def covered_ns(of: Intervals, at_ns: Ints) -> Ints:
    """How much of some intervals lies before each of some moments, shape of ``at_ns``."""
    if not len(of):
        return np.zeros(len(at_ns), dtype=np.int64)
    whole = np.concatenate(([0], np.cumsum(of.end_ns - of.start_ns)))
    begun = np.searchsorted(of.start_ns, at_ns, side="right")
    over_ns = np.where(begun > 0, np.maximum(of.end_ns[begun - 1] - at_ns, 0), 0)
    covered: Ints = whole[begun] - over_ns
    return covered


def rows_of(spans: SpanTable, *kinds: Kind) -> Ints:
    return np.flatnonzero(np.isin(spans.kind, kinds))


def evidence(picks: Sequence[Pick], what: str) -> Evidence:
    """The spans of several windows, by rule, and the few with most of the time."""
    return Evidence(
        what=what,
        count=sum(len(pick.row) for pick in picks),
        rules=_rules(picks),
        largest=tuple(sorted((one for pick in picks for one in _largest(pick)), key=_order)[:MOST_SHOWN]),
    )


def _order(found: Shown) -> tuple[int, int, int, str]:
    return -found.share_ns, found.rank, found.start_ns, found.name


def _largest(pick: Pick) -> Iterable[Shown]:
    spans = pick.window.spans
    for at in np.argsort(-pick.share_ns, kind="stable")[:MOST_SHOWN].tolist():
        row = int(pick.row[at])
        yield Shown(
            name=spans.name_of(row) if spans.name[row] >= 0 else "",
            lane=_lane(spans, row),
            rank=pick.window.rank,
            kind=Kind(spans.kind[row]).name.lower(),
            rule=spans.rule_of(row),
            start_ns=int(spans.start_ns[row]),
            duration_ns=int(spans.end_ns[row] - spans.start_ns[row]),
            share_ns=int(pick.share_ns[at]),
        )


def _lane(spans: SpanTable, row: int) -> str:
    return spans.lanes[spans.lane[row]] if 0 <= spans.lane[row] < len(spans.lanes) else ""


def _rules(picks: Sequence[Pick]) -> tuple[Ruled, ...]:
    counts: Counter[tuple[str, str, str]] = Counter()
    joined: Counter[tuple[str, str, str]] = Counter()
    for pick in picks:
        spans = pick.window.spans
        told = np.stack([column[pick.row].astype(np.int64) for column in (spans.kind, spans.collective, spans.rule)])
        keys, number = np.unique(told, axis=1, return_inverse=True)
        for at, (kind, collective, rule) in enumerate(keys.T.tolist()):
            rows = pick.row[number.reshape(-1) == at]
            name = spans.collectives[collective] if collective >= 0 else ""
            key = (Kind(kind).name.lower(), name, spans.rules[rule] if rule >= 0 else _NO_RULE)
            counts[key] += len(rows)
            joined[key] += (union(spans.start_ns[rows], spans.end_ns[rows]) & pick.where).total_ns
    found = [Ruled(*key, count, joined[key]) for key, count in counts.items()]
    return tuple(sorted(found, key=lambda one: (-one.joined_ns, -one.count, one.kind, one.collective, one.rule)))


def gaps(windows: Sequence[tuple[Window, Intervals]]) -> Evidence:
    """The stretches of some bounds in which no device work ran, by what ended them."""
    found: list[Shown] = []
    count = 0
    for window, bounds in windows:
        spans = window.spans
        rows = rows_of(spans, *WORK)
        order = rows[np.argsort(spans.start_ns[rows], kind="stable")]
        busy = union(spans.start_ns[rows], spans.end_ns[rows])
        for start_ns, end_ns in zip(bounds.start_ns.tolist(), bounds.end_ns.tolist(), strict=True):
            idle = complement(busy, start_ns, end_ns)
            count += len(idle)
            longest = np.argsort(idle.start_ns - idle.end_ns, kind="stable")[:MOST_SHOWN]
            ends = zip(idle.start_ns[longest].tolist(), idle.end_ns[longest].tolist(), strict=True)
            found += [_gap(window, order, *stretch) for stretch in ends]
    return Evidence("stretches without device work", count, (), tuple(sorted(found, key=_order)[:MOST_SHOWN]))


def stretches(found: Sequence[tuple[Window, Intervals]], what: str) -> Evidence:
    """Some stretches of each window, the longest by what begins after them."""
    shown: list[Shown] = []
    for window, when in found:
        rows = rows_of(window.spans, *WORK)
        order = rows[np.argsort(window.spans.start_ns[rows], kind="stable")]
        longest = np.argsort(when.start_ns - when.end_ns, kind="stable")[:MOST_SHOWN]
        ends = zip(when.start_ns[longest].tolist(), when.end_ns[longest].tolist(), strict=True)
        shown += [_gap(window, order, *stretch) for stretch in ends]
    count = sum(len(when) for _, when in found)
    return Evidence(what, count, (), tuple(sorted(shown, key=_order)[:MOST_SHOWN]))


def delays(found: Sequence[tuple[Window, Ints, Ints]], what: str) -> Evidence:
    """Some rows of each window that stand for a time of their own, such as a launch's: those with the longest."""
    shown: list[Shown] = []
    for window, row, length_ns in found:
        spans = window.spans
        for at in np.argsort(-length_ns, kind="stable")[:MOST_SHOWN].tolist():
            one, ns = int(row[at]), int(length_ns[at])
            name = spans.name_of(one) if spans.name[one] >= 0 else ""
            kind = Kind(spans.kind[one]).name.lower()
            shown.append(Shown(name, _lane(spans, one), window.rank, kind, "", int(spans.start_ns[one]), ns, ns))
    count = sum(len(row) for _, row, _ in found)
    return Evidence(what, count, (), tuple(sorted(shown, key=_order)[:MOST_SHOWN]))


def _gap(window: Window, order: Ints, start_ns: int, end_ns: int) -> Shown:
    spans = window.spans
    after = int(np.searchsorted(spans.start_ns[order], end_ns, side="left"))
    row = int(order[after]) if after < len(order) else -1
    name = f"until {spans.name_of(row)}" if row >= 0 and spans.name[row] >= 0 else "until the end"
    lane = _lane(spans, row) if row >= 0 else ""
    return Shown(name, lane, window.rank, "idle", "", start_ns, end_ns - start_ns, end_ns - start_ns)


def place(window: Window, steps: Sequence[int] | None = None) -> Place:
    """The window, with the steps that count of it (all that lie wholly inside when None)."""
    counting = tuple(window.steps) if steps is None else tuple(steps)
    bounds = device_step_ns(window)[np.isin(window.steps, counting)]
    steps_ns = union(bounds[:, 0], bounds[:, 1]).total_ns
    return Place(
        source=window.source,
        rank=window.rank,
        start_ns=window.start_ns,
        end_ns=window.end_ns,
        steps=counting,
        is_complete=window.is_complete,
        steps_ns=steps_ns,
        is_behind=device_steps(window).ahead_ns > 0,
    )


def labels(windows: Sequence[Window]) -> list[str]:
    """What to call each of some windows: its rank, and where that has several, when it began."""
    ranks = Counter(window.rank for window in windows)
    return [
        f"rank {window.rank}"
        if ranks[window.rank] == 1
        else f"rank {window.rank} from {window.start_ns / NS_PER_S:.6f} s"
        for window in windows
    ]


def events(windows: Sequence[Window]) -> Events:
    """Of the files of these windows; one file may hold several ranks, and is counted once."""
    dropped: Counter[str] = Counter()
    repaired: Counter[str] = Counter()
    files = {window.source: window.counts for window in windows}
    for counts in files.values():
        dropped.update(counts.dropped)
        repaired.update(counts.repaired)
    return Events(
        read=sum(counts.read for counts in files.values()),
        device=sum(window.counts.device for window in windows),
        dropped=dict(dropped),
        repaired=dict(repaired),
    )


def whole(window: Window) -> Intervals:
    """All of a window's time."""
    spans = window.spans
    if not len(spans):
        return union(np.array([window.start_ns]), np.array([window.end_ns]))
    first, last = min(int(spans.start_ns.min()), window.start_ns), max(int(spans.end_ns.max()), window.end_ns)
    return union(np.array([first], dtype=np.int64), np.array([last], dtype=np.int64))


def stepped(window: Window) -> Intervals:
    """The time of its complete steps where its work runs."""
    return steps_of(window)
