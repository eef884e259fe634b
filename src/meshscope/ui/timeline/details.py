"""A few lines about the span under the cursor: what it is, what it moved, who asked for it, what told its kind."""

from __future__ import annotations

import numpy as np

from meshscope.analysis.calls import SYNCHRONIZING
from meshscope.analysis.lane_rows import Lane
from meshscope.analysis.lane_streams import UNNAMED
from meshscope.analysis.lanes import ALL, Lanes
from meshscope.analysis.waiting import ONE_SIDED, Waiting
from meshscope.kinds import Kind
from meshscope.spans import SpanTable, Window
from meshscope.ui.marks.cells import Line
from meshscope.ui.timeline.going import chosen
from meshscope.ui.timeline.listing import current
from meshscope.ui.timeline.state import State
from meshscope.units import counted, duration, percent, printable, ratio, size

MOST_LINES = 6
_MOST_COUNTED = 1_000_000


def details(lanes: Lanes, state: State, waits: Waiting, *, is_pointed: bool = False) -> list[Line]:
    """At most six lines."""
    here = chosen(lanes, state)
    rest = [*_measured(lanes, state), *_searched(lanes, state)]
    sign: Line = [(" ◦ ", "match")] if is_pointed else [(" ▲ ", "accent")]
    if here is None:
        return [[*sign, (_nothing(lanes, state), "quiet")], *rest]
    number, row = here
    window = lanes.windows[number]
    told = _communication(lanes, number, row, waits) if window.spans.kind[row] == Kind.COLLECTIVE else []
    return [
        [*sign, (printable(name_of(window.spans, row)), "strong")],
        [(f"   {_facts(lanes, number, row)}", "text")],
        [(f"   {_more(window.spans, row)}", "quiet")],
        *([[(f"   {'; '.join(told)}", "text")]] if told else []),
        *rest,
    ]


def _nothing(lanes: Lanes, state: State) -> str:
    """Where the cursor is, and what comes next on its lane."""
    lane, where = current(lanes, state), duration(state.at_ns - lanes.start_ns)
    is_seen = lanes.profiled[lane.rank].within(state.at_ns, state.at_ns + 1)
    said = f"rank {lane.rank} has nothing {'' if is_seen else 'recorded '}here ({lane_name(lane)}), {where} in"
    after = int(np.searchsorted(lane.rows.start_ns, state.at_ns))
    if after == len(lane.rows):
        return f"{said}, and nothing later"
    name = name_of(lanes.windows[lane.rows.window[after]].spans, int(lane.rows.row[after]))
    return f"{said}; {duration(int(lane.rows.start_ns[after]) - state.at_ns)} later (w): {printable(name)}"


def lane_name(lane: Lane) -> str:
    if lane.role == ALL:
        return "all lanes"
    return printable(f"{lane.role} on {lane.branch}" if lane.branch else lane.role)


def _facts(lanes: Lanes, number: int, row: int) -> str:
    window = lanes.windows[number]
    spans = window.spans
    start_ns, end_ns = lanes.times(number, row)
    words = [duration(end_ns - start_ns), f"begins {duration(start_ns - lanes.start_ns)} in"]
    if spans.size_bytes[row] >= 0:
        words.append(size(int(spans.size_bytes[row])))
    words.append(_label(spans.dtypes, int(spans.dtype[row])))
    words.append(f"rank {window.rank}, {_label(spans.lanes, int(spans.lane[row])) or UNNAMED}")
    words += [f"step {spans.step[row]}"] if spans.step[row] >= 0 else []
    words += [f"sequence {spans.sequence[row]}"] if spans.sequence[row] >= 0 and spans.collective[row] >= 0 else []
    words.append(_group(window, row))
    return printable(" · ".join(filter(None, words)))


def name_of(spans: SpanTable, row: int) -> str:
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
    return rule if spans.rule[row] < 0 else f"the rule “{rule}”"


def _launch(spans: SpanTable, row: int) -> list[str]:
    launch = int(spans.link[row])
    if launch >= 0:
        ahead_ns = int(spans.start_ns[row] - spans.start_ns[launch])
        when = f"{duration(ahead_ns)} before" if ahead_ns >= 0 else f"{duration(-ahead_ns)} after it began"
        return [f"asked for {when} by {name_of(spans, launch)}"]
    # Nothing else asks for work, and counting goes over all spans.
    if spans.kind[row] not in (Kind.LAUNCH, Kind.HOST) or len(spans) > _MOST_COUNTED:
        return []
    asked = int((spans.link == row).sum())
    return [f"asks for {counted(asked, 'span')} of work"] if asked else []


def _communication(lanes: Lanes, number: int, row: int, waits: Waiting) -> list[str]:
    window = lanes.windows[number]
    start_ns, end_ns = lanes.times(number, row)
    exposed_ns = lanes.exposed[window.rank].within(start_ns, end_ns)
    share = percent(ratio(exposed_ns, end_ns - start_ns))
    words = [f"{duration(exposed_ns)} exposed ({share} of it)"] if end_ns > start_ns else []
    split = wait_of(window, row, waits)
    if split is None:
        return [*words, f"waiting cannot be told from transfer: {unmatched_why(window, row, waits)}"]
    wait_ns, last = split
    who = "" if last < 0 else " (it came last itself)" if last == window.rank else f" for rank {last}"
    return [f"waits {duration(wait_ns)}{who}, transfers {duration(end_ns - start_ns - wait_ns)}", *words]


def wait_of(window: Window, row: int, waits: Waiting) -> tuple[int, int] | None:
    """How long a collective waits, and the rank that came last (−1: nobody did); None where that is not known."""
    found = waits.windows.get(window)
    if found is None:
        return None
    at = int(np.searchsorted(found.row, row))
    if at == len(found.row) or found.row[at] != row:
        return None
    return int(found.wait_ns[at]), int(found.last_rank[at])


def unmatched_why(window: Window, row: int, waits: Waiting) -> str:
    """Why a collective has no counterpart on every rank; of several reasons in the run, none is picked out."""
    kind = _label(window.spans.collectives, int(window.spans.collective[row]))
    if kind and kind not in SYNCHRONIZING:
        return ONE_SIDED
    reasons = [why for why, _ in waits.unmatched if why != ONE_SIDED]
    own = [why for what, why in window.cannot_say if what == "wait_ns"]
    return reasons[0] if len(reasons) == 1 else own[0] if own else "it is not matched over ranks"


def _measured(lanes: Lanes, state: State) -> list[Line]:
    """Between two marks: how long, how busy the cursor's lane is, and how many spans begin."""
    if len(state.marks) < 2:
        away = state.at_ns - state.marks[0] if state.marks else 0
        said = f" A to here: {'−' if away < 0 else ''}{duration(abs(away))}   m sets B"
        return [[(said, "good")]] if state.marks else []
    low, high = sorted(state.marks)
    lane = current(lanes, state)
    busy = [(meaning, lane.covered_ns(low, high, meaning)) for meaning, _ in lane.layers]
    words = [f"{meaning} {duration(ns)} ({percent(ratio(ns, high - low))})" for meaning, ns in busy if ns]
    first, last = lane.rows.begun_in(low, high)
    words.append(f"{counted(last - first, 'span')} begin{'s' if last - first == 1 else ''}")
    said = f" A to B: {duration(high - low)}; rank {lane.rank} {lane_name(lane)}: {', '.join(words)}"
    return [[(said, "good")]]


def _searched(lanes: Lanes, state: State) -> list[Line]:
    if state.search is None:
        return []
    lane = current(lanes, state)
    here = f"{counted(len(state.search.places(lane)), 'span')} of rank {lane.rank} {lane_name(lane)}"
    said = f" “{printable(state.search.text)}”: {here}, {state.search.count} in all   ] [ next, previous"
    return [[(said, "good")]]
