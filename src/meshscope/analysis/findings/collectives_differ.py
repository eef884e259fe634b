"""Collectives that differ in kind, size or type between ranks under one number of one process group.

Fires on what flight recorders show, and on traces that record sequence numbers. By order alone nothing is said: windows
that do not begin together, or files of two runs in one folder, would look the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from meshscope.analysis.calls import Calls, Queue, calls
from meshscope.analysis.findings.rule import Finding, Rule
from meshscope.analysis.flight import flight
from meshscope.analysis.flight_words import mismatch_words, ranks_words
from meshscope.analysis.rounds import Round, rounds
from meshscope.run import Run
from meshscope.spans import Window
from meshscope.units import size

_MOST = 3
_MOSTLY = 0.5
"""Windows that differ in more of their common numbers than this are not of one run."""

_FIX = """# compares every collective's kind and shape over ranks before it runs:
TORCH_DISTRIBUTED_DEBUG=DETAIL torchrun …"""


def collectives_differ(run: Run) -> tuple[Finding, ...]:
    found = flight(run)
    said = [mismatch_words(one) for one in found.mismatches] if found else []
    said += [words for members in rounds(run) for words in _traced(members)]
    if not said:
        return ()
    more = (f"{len(said) - _MOST} more such calls",) if len(said) > _MOST else ()
    return (
        Finding(
            code=FINDING.code,
            title="collectives differ between ranks",
            evidence=(*said[:_MOST], *more),
            advice="Ranks must call the same collectives in the same order and of the same size: look for a branch or "
            "a batch that only some ranks have. Such a run hangs, or its result is wrong.",
            fix=_FIX,
            is_grave=True,
        ),
    )


def _traced(members: Round) -> Iterator[str]:
    """By group and sequence number, with what every rank of the round called. Groups whose ranks are not told are left
    out: two groups may share a name. So are queues without numbers, or with several calls of one."""
    called: dict[tuple[Queue, int], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for window in members:
        for queue, some in calls(window).items():
            numbers = some.sequence.tolist()
            if not queue.ranks or min(numbers, default=-1) < 0 or len(set(numbers)) < len(numbers):
                continue
            for number, words in zip(numbers, _words(window, some), strict=True):
                called[queue, number][words].append(window.rank)
    common = {key: what for key, what in called.items() if sum(map(len, what.values())) > 1}
    differing = {key: what for key, what in common.items() if len(what) > 1}
    if len(differing) > _MOSTLY * len(common):
        return
    for (queue, number), what in sorted(differing.items()):
        said = "; ".join(f"{ranks_words(sorted(ranks))}: {words}" for words, ranks in what.items())
        yield f"call {number} of group {queue.group} differs: {said}"


def _words(window: Window, some: Calls) -> list[str]:
    """What each call was; the size only where it has to be the same on all ranks."""
    spans = window.spans
    names = [spans.collectives[number] for number in spans.collective[some.row].tolist()]
    sizes = [f" of {size(size_bytes)}" if size_bytes >= 0 else "" for size_bytes in some.size_bytes.tolist()]
    return [name + of for name, of in zip(names, sizes, strict=True)]


FINDING = Rule("collectives-differ", collectives_differ)
