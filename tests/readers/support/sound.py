"""What every answer keeps to, whatever the file was: parts add up, numbers are of their tables, counts are counts."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np

from meshscope.analysis.breakdown import Breakdown, breakdown
from meshscope.analysis.overlap import overlap
from meshscope.reports.analysis_json import analysis_json
from meshscope.reports.text import report
from meshscope.run import Run, open_traces
from meshscope.spans import COLUMNS, Window
from meshscope.units import printable

DAY_NS = 86_400 * 10**9


def check(path: Path, *, and_reports: bool = True) -> str:
    """``read`` or ``refused``. Raises AssertionError where an answer is not sound, and whatever a reader lets out."""
    opened = open_traces([path])
    for _, why, hint in opened.refused:
        assert why, "refused without a word"
        assert hint, "refused without a hint"
    for run in opened.runs:
        for window in run.windows:
            _check_window(window)
        _check_run(run)
        if and_reports:
            _check_reports(run)
    return "read" if opened.runs else "refused"


def _check_window(window: Window) -> None:
    spans = window.spans
    assert {len(getattr(spans, name)) for name in COLUMNS} == {len(spans)}
    assert bool((np.diff(spans.start_ns) >= 0).all()), "rows out of order"
    assert bool((spans.end_ns >= spans.start_ns).all()), "a row ends before it starts"
    for column, table in (
        (spans.name, spans.names), (spans.lane, spans.lanes), (spans.dtype, spans.dtypes), (spans.group, spans.groups),
        (spans.collective, spans.collectives), (spans.rule, spans.rules), (spans.link, spans),
    ):  # fmt: skip
        assert bool(((column >= -1) & (column < max(len(table), 1))).all()), "a number outside its table"
    assert window.end_ns >= window.start_ns
    assert window.step_ns.shape == (len(window.steps), 2)
    assert bool((window.step_ns[:, 1] >= window.step_ns[:, 0]).all())
    assert (window.device_kind == "none") == any(what == "breakdown" for what, _ in window.cannot_say)
    counts = window.counts
    assert 0 <= counts.device <= counts.read
    assert all(count > 0 for count in (*counts.dropped.values(), *counts.repaired.values())), "a count of nothing"
    assert sum(counts.repaired.values()) <= 2 * counts.read
    span_ns = window.end_ns - window.start_ns
    assert span_ns <= (counts.device + 1) * 2 * DAY_NS or window.device_kind == "none", "a span of years"


def _check_run(run: Run) -> None:
    for rank in breakdown(run):
        _check_parts(rank.total)
        for part in (rank.per_step, rank.newest):
            if part is not None:
                _check_parts(part)
    for found in overlap(run):
        assert math.isclose(found.hidden_ns + found.exposed_ns, found.busy_ns)


def _check_reports(run: Run) -> None:
    assert json.loads(analysis_json([run]))["format"] == 1
    for line in report([run], encoding="utf-8").splitlines():
        assert printable(line) == line, "a report that steers the terminal"


def _check_parts(found: Breakdown) -> None:
    parts = (found.compute_ns, found.collective_ns, found.copy_ns, found.hidden_ns, found.exposed_ns, found.idle_ns)
    assert min(parts) >= 0, f"a negative part: {found}"
    assert found.hidden_ns + found.exposed_ns == found.collective_ns, f"hidden and exposed are not all: {found}"
    assert found.busy_ns + found.idle_ns == found.span_ns, f"busy and idle are not the span: {found}"
    assert max(found.compute_ns, found.collective_ns, found.copy_ns) <= found.busy_ns <= found.span_ns, f"{found}"
    assert found.hidden_ns <= found.compute_ns, f"{found}"
    assert found.busy_ns <= found.compute_ns + found.collective_ns + found.copy_ns, f"{found}"
