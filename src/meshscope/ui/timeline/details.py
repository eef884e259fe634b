"""A few lines about the span under the cursor: what it is, what it moved, who asked for it, what told its kind."""

from __future__ import annotations

import numpy as np

from meshscope.analysis.lanes import COLLECTIVES, Lanes
from meshscope.analysis.waiting import Waiting
from meshscope.kinds import Kind
from meshscope.spans import SpanTable, Window
from meshscope.ui.marks.cells import Line
from meshscope.ui.timeline.going import chosen, lane_of, matching
from meshscope.ui.timeline.state import State, current
from meshscope.units import counted, duration, percent, printable, ratio, size


def times(lanes: Lanes, number: int, row: int) -> tuple[int, int]:
    """Start and end of a span by the common clock."""
    spans, ahead_ns = lanes.windows[number].spans, lanes.ahead_ns[number]
    return int(spans.start_ns[row]) - ahead_ns, int(spans.end_ns[row]) - ahead_ns


def details(lanes: Lanes, state: State, waits: Waiting) -> list[Line]:
    """At most six lines."""
    here = chosen(lanes, state)
    first = _measured(lanes, state)
    if here is None:
        lane = current(lanes, state)
        where = duration(state.at_ns - lanes.start_ns)
        return [
            [(f" {where} into what was profiled: rank {lane.rank} has no span here ({lane.role})", "quiet")],
            *first,
        ]
    number, row = here
    window = lanes.windows[number]
    told = _communication(lanes, number, row, waits) if window.spans.kind[row] == Kind.COLLECTIVE else []
    return [
        [(" ▲ ", "accent"), (printable(_name(window.spans, row)), "strong")],
        [(f"   {_facts(lanes, number, row)}", "text")],
        [(f"   {_more(window.spans, row)}", "quiet")],
        *([[(f"   {'; '.join(told)}", "text")]] if told else []),
        *first,
    ]


def _facts(lanes: Lanes, number: int, row: int) -> str:
    window = lanes.windows[number]
    spans = window.spans
    start_ns, end_ns = times(lanes, number, row)
    words = [duration(end_ns - start_ns), f"begins {duration(start_ns - lanes.start_ns)} in"]
    if spans.size_bytes[row] >= 0:
        words.append(size(int(spans.size_bytes[row])))
    words += [label for label in (_label(spans.dtypes, int(spans.dtype[row])), _group(window, row)) if label]
    words += [f"sequence {spans.sequence[row]}"] if spans.sequence[row] >= 0 and spans.collective[row] >= 0 else []
    words.append(_label(spans.lanes, int(spans.lane[row])) or "a lane that the trace does not name")
    words += [f"step {spans.step[row]}"] if spans.step[row] >= 0 else []
    return printable(" · ".join(words))


def _name(spans: SpanTable, row: int) -> str:
    name = _label(spans.names, int(spans.name[row])) or _label(spans.collectives, int(spans.collective[row]))
    return name or "a span without a name"


def _group(window: Window, row: int) -> str:
    name = _label(window.spans.groups, int(window.spans.group[row]))
    return f"group {name}" if name else ""


def _label(table: tuple[str, ...], number: int) -> str:
    return table[number] if 0 <= number < len(table) else ""


def _more(spans: SpanTable, row: int) -> str:
    words = [f"{Kind(int(spans.kind[row])).name.lower()} by {_rule(spans, row)}"]
    words += _launch(spans, row)
    return printable("; ".join(words))


def _rule(spans: SpanTable, row: int) -> str:
    rule = spans.rule_of(row)
    return rule if spans.rule[row] < 0 else f"the rule {rule!r}"


def _launch(spans: SpanTable, row: int) -> list[str]:
    launch = int(spans.link[row])
    if launch >= 0:
        ahead = duration(int(spans.start_ns[row] - spans.start_ns[launch]))
        return [f"asked for {ahead} before by {_name(spans, launch)}"]
    if spans.kind[row] not in (Kind.LAUNCH, Kind.HOST):  # nothing else asks for work, and counting goes over all spans
        return []
    asked = int((spans.link == row).sum())
    return [f"asks for {counted(asked, 'span')} of work"] if asked else []


def _communication(lanes: Lanes, number: int, row: int, waits: Waiting) -> list[str]:
    window = lanes.windows[number]
    start_ns, end_ns = times(lanes, number, row)
    exposed_ns = _exposed_ns(lanes, window.rank, start_ns, end_ns)
    share = ratio(exposed_ns, end_ns - start_ns)
    words = [f"{duration(exposed_ns)} exposed ({percent(share)} of it)"] if end_ns > start_ns else []
    found = waits.windows.get(window)
    at = np.flatnonzero(found.row == row) if found is not None else np.empty(0, dtype=np.int64)
    if found is None or not len(at):
        return ["waiting cannot be told from transfer: not matched over ranks", *words]
    wait_ns, last = int(found.wait_ns[at[0]]), int(found.last_rank[at[0]])
    transfer_ns = end_ns - start_ns - wait_ns
    who = "" if last < 0 else " (it came last itself)" if last == window.rank else f" for rank {last}"
    return [f"waits {duration(wait_ns)}{who}, transfers {duration(transfer_ns)}", *words]


def _exposed_ns(lanes: Lanes, rank: int, start_ns: int, end_ns: int) -> int:
    """By running totals: this is asked for every frame."""
    lane = lane_of(lanes, rank, COLLECTIVES)
    edges = np.array([start_ns, end_ns], dtype=np.int64)
    parts = [covered for meaning, covered in lane.layers if meaning in ("exposed", "wait")] if lane is not None else []
    return sum(int(np.diff(part.upto(edges))[0]) for part in parts)


def _measured(lanes: Lanes, state: State) -> list[Line]:
    """Between two marks: how long, and how busy the cursor's lane is; and what a search found."""
    lines: list[Line] = []
    if len(state.marks) == 2:
        low, high = sorted(state.marks)
        lane = current(lanes, state)
        edges = np.array([low, high], dtype=np.int64)
        busy = [(meaning, int(np.diff(covered.upto(edges))[0])) for meaning, covered in lane.layers]
        shares = ", ".join(f"{meaning} {duration(ns)} ({percent(ratio(ns, high - low))})" for meaning, ns in busy if ns)
        said = f" A to B: {duration(high - low)}; rank {lane.rank} {lane.role}: {shares or 'nothing'}"
        lines.append([(said, "good")])
    elif len(state.marks) == 1:
        away = state.at_ns - state.marks[0]
        lines.append([(f" A to here: {'−' if away < 0 else ''}{duration(abs(away))}   m marks B", "good")])
    if state.search is not None:
        lane = current(lanes, state)
        some = np.arange(len(lane.rows))
        found = int(matching(lanes, lane, state.search, some).sum()) if len(some) <= _MOST_SEARCHED else None
        many = counted(found, "span") if found is not None else "more spans than are counted"
        lines.append(
            [
                (
                    f" “{printable(state.search.text)}”: {many} of rank {lane.rank} {lane.role}   ] [ next, previous",
                    "good",
                )
            ]
        )
    return lines


_MOST_SEARCHED = 200_000
