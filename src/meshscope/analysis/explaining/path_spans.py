"""The spans behind pieces of the critical path."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from meshscope.analysis.explaining.evidence import MOST_SHOWN
from meshscope.analysis.explaining.number import Evidence, Ruled, Shown
from meshscope.analysis.graph import Part
from meshscope.analysis.graph_run import RoundGraph
from meshscope.analysis.path_pieces import NAMED, NAMES, Pieces
from meshscope.analysis.path_works import phase_by_row
from meshscope.analysis.phase_names import BACKWARD, PHASES
from meshscope.kinds import Kind

Flags = npt.NDArray[np.bool_]


def name_of(found: RoundGraph, window: int, row: int) -> str:
    """The name of a span of one of the round's windows, "" where it has none."""
    spans = found.ranges[window].spans
    return spans.name_of(row) if spans.name[row] >= 0 else ""


def is_named(found: RoundGraph, pieces: Pieces, name: str) -> Flags:
    """Which pieces are of spans of that name, "" for those that have none; shape (k,)."""
    keep = np.zeros(len(pieces.row), dtype=bool)
    for number, mine in pieces.by_window():
        row, spans = pieces.row[mine], found.ranges[number].spans
        code = np.where(row >= 0, spans.name[row], -1)
        wanted = [at for at, one in enumerate(spans.names) if one == name]
        keep[mine] = np.isin(code, wanted if name else [*wanted, -1])
    return keep


def is_backward(found: RoundGraph, pieces: Pieces) -> Flags:
    """Which pieces are of spans that were asked for in a backward pass; shape (k,)."""
    keep = np.zeros(len(pieces.row), dtype=bool)
    for number, at in pieces.by_window():
        mine = at[pieces.row[at] >= 0]
        keep[mine] = phase_by_row(found.ranges[number].window)[pieces.row[mine]] == PHASES.index(BACKWARD)
    return keep


def on_path(found: RoundGraph, pieces: Pieces) -> Evidence:
    """The pieces of a path, by the rule that told what their spans are, and the longest of them."""
    length_ns = pieces.length_ns
    longest = np.argsort(-length_ns, kind="stable")[:MOST_SHOWN].tolist()
    return Evidence("pieces of the path", len(length_ns), _rules(found, pieces), _shown(found, pieces, longest))


def _rules(found: RoundGraph, pieces: Pieces) -> tuple[Ruled, ...]:
    count: Counter[tuple[str, str, str]] = Counter()
    total: Counter[tuple[str, str, str]] = Counter()
    is_named = np.isin(pieces.part, NAMED) & (pieces.row >= 0)
    for window, row, ns in zip(
        pieces.window[is_named].tolist(), pieces.row[is_named].tolist(), pieces.length_ns[is_named].tolist(),
        strict=True,
    ):  # fmt: skip
        spans = found.ranges[window].spans
        name = spans.collectives[spans.collective[row]] if spans.collective[row] >= 0 else ""
        key = (Kind(spans.kind[row]).name.lower(), name, spans.rule_of(row))
        count[key] += 1
        total[key] += ns
    rules = [Ruled(*key, count[key], total[key]) for key in count]
    return tuple(sorted(rules, key=lambda one: (-one.joined_ns, -one.count, one.kind, one.collective, one.rule)))


def _shown(found: RoundGraph, pieces: Pieces, at: Sequence[int]) -> tuple[Shown, ...]:
    shown = []
    for one in at:
        part, window, row = (int(column[one]) for column in (pieces.part, pieces.window, pieces.row))
        start_ns, ns = int(pieces.from_ns[one]), int(pieces.to_ns[one] - pieces.from_ns[one])
        word, name, lane, rule = NAMES[Part(part)], "", "", ""
        if window >= 0 and row >= 0:
            spans = found.ranges[window].spans
            name = name_of(found, window, row)
            lane = spans.lanes[spans.lane[row]] if 0 <= spans.lane[row] < len(spans.lanes) else ""
            rule = spans.rule_of(row) if part in NAMED else ""
        text = name if part in NAMED and name else f"{word} before {name}" if name else word
        shown.append(Shown(text, lane, int(pieces.rank[one]), word, rule, start_ns, ns, ns))
    return tuple(shown)
