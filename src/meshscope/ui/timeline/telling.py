"""What there is to say of one span, in full: what it is, which rule told that, and how its numbers are made."""

from __future__ import annotations

from collections.abc import Iterator

from meshscope import kinds
from meshscope.analysis.bandwidth import algorithm_bytes_per_s
from meshscope.analysis.explaining.words import Said, exact, shown
from meshscope.analysis.lane_streams import UNNAMED
from meshscope.analysis.lanes import Lanes
from meshscope.analysis.waiting import Waiting
from meshscope.kinds import Kind
from meshscope.spans import SpanTable, Window
from meshscope.ui.timeline.details import name_of, unmatched_why, wait_of
from meshscope.units import NS_PER_S, counted, duration, printable, ranges, size

_LONGEST_NAME, _LONGEST_PATTERN = 2000, 300


def told(lanes: Lanes, number: int, row: int, waits: Waiting) -> list[Said]:
    """Paragraphs about span ``row`` of window ``number``."""
    window = lanes.windows[number]
    name = name_of(window.spans, row)
    name = name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}… ({len(name)} characters)"
    return [
        Said(printable(name), role="head"),
        *_kind(window.spans, row),
        *_time(lanes, number, row),
        *(_communication(lanes, number, row, waits) if window.spans.kind[row] == Kind.COLLECTIVE else ()),
        *_launch(window, row),
        *_source(window),
    ]


def _kind(spans: SpanTable, row: int) -> Iterator[Said]:
    kind = Kind(int(spans.kind[row])).name.lower()
    collective = spans.collectives[spans.collective[row]] if spans.collective[row] >= 0 else ""
    yield Said(printable(f"Taken for {' '.join(filter(None, (kind, collective)))}"), role="value")
    if spans.rule[row] < 0:
        yield Said("by the category that the trace itself gives it", 1)
    else:
        yield Said(printable(f"by {_rule(spans.rule_of(row))}"), 1)
    if spans.path[row] >= 0:
        yield Said(printable(f"scope in the program: {spans.paths[spans.path[row]]}"), 1)


def _rule(name: str) -> str:
    """A rule with what it looks for; a name may have another pattern in another kind of trace."""
    if name == kinds.RECORDED:
        return f"the rule “{name}”: the trace records which collective the kernel carries out"
    tables = (kinds.yours(), kinds.KERNELS, kinds.XLA_KERNELS, kinds.INSTRUCTIONS, kinds.OPERATORS)
    found = dict.fromkeys(rule.pattern for table in tables for rule in table if rule.name == name)
    if len(found) != 1:
        return f"the rule “{name}”"
    pattern = next(iter(found))
    if not pattern:
        return f"the rule “{name}”: no other rule finds its name"
    pattern = pattern if len(pattern) <= _LONGEST_PATTERN else f"{pattern[:_LONGEST_PATTERN]}…"
    return f"the rule “{name}”, the first that finds its name: {pattern}"


def _time(lanes: Lanes, number: int, row: int) -> Iterator[Said]:
    window, spans = lanes.windows[number], lanes.windows[number].spans
    start_ns, end_ns = int(spans.start_ns[row]), int(spans.end_ns[row])
    yield Said(f"Lasts {duration(end_ns - start_ns)}", role="value")
    ns = exact(end_ns - start_ns, "ns")
    yield Said(f"{ns} = {exact(end_ns, 'ns')} (end) − {exact(start_ns, 'ns')} (start), by the trace", 1)
    begins = lanes.times(number, row)[0] - lanes.start_ns
    yield Said(f"begins {exact(begins, 'ns')} after the first of what was profiled", 1)
    if lanes.ahead_ns[number]:
        ahead = exact(abs(lanes.ahead_ns[number]), "ns")
        how = "ahead of" if lanes.ahead_ns[number] > 0 else "behind"
        yield Said(f"drawn by the common clock: that of rank {window.rank} is {ahead} {how} it here", 1)
    lane = spans.lanes[spans.lane[row]] if 0 <= spans.lane[row] < len(spans.lanes) else UNNAMED
    step = f", in step {spans.step[row]}" if spans.step[row] >= 0 else ", in no step that the trace tells"
    yield Said(printable(f"rank {window.rank}, device {window.device}, {lane}{step}"), 1)


def _communication(lanes: Lanes, number: int, row: int, waits: Waiting) -> Iterator[Said]:
    window = lanes.windows[number]
    start_ns, end_ns = lanes.times(number, row)
    length_ns = end_ns - start_ns
    split = wait_of(window, row, waits)
    if split is None:
        yield Said("Waiting cannot be told from transfer", role="value")
        yield Said(printable(unmatched_why(window, row, waits)), 1)
    else:
        yield from _split(window, length_ns, *split)
    out_ns = lanes.exposed[window.rank].within(start_ns, end_ns)
    yield Said(f"{duration(out_ns)} of it exposed", role="value")
    hidden = exact(length_ns - out_ns, "ns")
    yield Said(f"{exact(out_ns, 'ns')} = {exact(length_ns, 'ns')} − {hidden} in which rank {window.rank} computes", 1)
    yield from _moved(window.spans, row, length_ns - split[0] if split else 0)


def _split(window: Window, length_ns: int, wait_ns: int, last: int) -> Iterator[Said]:
    yield Said(f"Waits {duration(wait_ns)}, transfers {duration(length_ns - wait_ns)}", role="value")
    whole, wait = exact(length_ns, "ns"), exact(wait_ns, "ns")
    who = "nobody came later than the clocks can tell"
    if last >= 0:
        who = "it came last itself" if last == window.rank else f"until rank {last}, the last one, has come"
    yield Said(f"waits {wait}: {who}", 1)
    yield Said(f"transfers {exact(length_ns - wait_ns, 'ns')} = {whole} − {wait}", 1)


def _moved(spans: SpanTable, row: int, transfer_ns: int) -> Iterator[Said]:
    if spans.size_bytes[row] < 0:
        return
    group = f", group {spans.groups[spans.group[row]]}" if spans.group[row] >= 0 else ""
    number = f", number {spans.sequence[row]} of its group" if spans.sequence[row] >= 0 else ""
    yield Said(printable(f"Moves {size(int(spans.size_bytes[row]))}{group}{number}"), role="value")
    rate = algorithm_bytes_per_s(int(spans.size_bytes[row]), transfer_ns)
    if rate is not None:
        parts = f"{exact(int(spans.size_bytes[row]), 'B')} / {exact(transfer_ns, 'ns')} × {exact(NS_PER_S)} ns/s"
        yield Said(f"algorithm bandwidth {shown(rate, 'bytes/s')} = {parts}", 1)


def _launch(window: Window, row: int) -> Iterator[Said]:
    spans = window.spans
    launch = int(spans.link[row])
    if launch >= 0:
        ahead_ns = int(spans.start_ns[row] - spans.start_ns[launch])
        yield Said(printable(f"Asked for by {name_of(spans, launch)}"), role="value")
        lane = spans.lanes[spans.lane[launch]] if 0 <= spans.lane[launch] < len(spans.lanes) else UNNAMED
        when = f"{exact(abs(ahead_ns), 'ns')} {'before this began' if ahead_ns >= 0 else 'after this began'}"
        yield Said(printable(f"which began {when}, on {lane} and lasted "
                             f"{duration(int(spans.end_ns[launch] - spans.start_ns[launch]))}"), 1)  # fmt: skip
        return
    asked = int((spans.link == row).sum())
    said = f"Asks for {counted(asked, 'span')} of work" if asked else "The trace links it to no launch"
    if asked or spans.kind[row] not in (Kind.HOST, Kind.LAUNCH):
        yield Said(said, role="value")


def _source(window: Window) -> Iterator[Said]:
    counts = window.counts
    steps = (
        f"{'step' if len(window.steps) == 1 else 'steps'} {ranges(window.steps)}" if window.steps else "no whole step"
    )
    yield Said(printable(f"From {window.source}"), role="value")
    yield Said(
        f"{exact(counts.read)} events read of it, {steps}{'' if window.is_complete else '; the file is cut off'}", 1
    )
    for verb, reasons in (("dropped", counts.dropped), ("repaired", counts.repaired)):
        for reason, count in sorted(reasons.items()):
            yield Said(printable(f"{verb}: {count} ({reason})"), 1)
    if counts.repaired:
        yield Said("These count the whole file: whether this span is one of the repaired is not kept.", 1, "quiet")
    elif not counts.dropped:
        yield Said("none dropped, none repaired", 1)
    for what, why in window.cannot_say:
        yield Said(printable(f"cannot say {what}: {why}"), 1, "quiet")
