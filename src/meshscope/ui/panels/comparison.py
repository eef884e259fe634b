"""The strategies side by side: who leads, where a step of each goes, and how far each has come."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from rich.cells import cell_len
from textual.strip import Strip

from meshscope.analysis.comparison import Comparison, Row, comparison
from meshscope.analysis.standing import NO_STEP_YET
from meshscope.experiment import PlannedRun
from meshscope.ui.about import comparison as about
from meshscope.ui.marks.bars import stacked
from meshscope.ui.marks.cells import Line, Piece, cells, filled, strips, wrapped
from meshscope.ui.marks.cited import Cited
from meshscope.ui.marks.figures import Written, alike
from meshscope.ui.marks.table import Column, Placed, heading, placed
from meshscope.ui.marks.table import rows as table_rows
from meshscope.ui.palette import texture
from meshscope.ui.panel import Frame, Panel
from meshscope.ui.scene import Scene, version
from meshscope.ui.words import RUNNING, doing, doing_briefly, glyph, spread, times, whole_percent
from meshscope.units import NS_PER_MS, UNKNOWN, milliseconds, percent, printable, rate, size_unit, time_unit

SHARES = ("compute", "hidden", "exposed", "copy", "idle")

_COLUMNS = (
    Column("strategy", "   strategy", 11, is_text=True),
    Column("rate", "samples/s", 9),
    Column("time", "ms/step", 7),
    Column("speedup", "×1", 4, rank=4),
    Column("efficiency", "eff", 5, rank=5),
    Column("bar", "where it goes", 13, is_text=True, grows=True, most=140, least=8, gap=3),
    Column("exposed", "exposed", 7),
    Column("peak", "peak/rank", 9),
    Column("compile", "compile", 7, rank=6),
    Column("cost", "profiler", 8, rank=8),
    Column("lines", "lines", 5, rank=7),
    Column("state", "state", 12, rank=3, is_text=True, gap=3),
)
# From this width on a state has room for all its words.
_SPACIOUS = 150
# From these widths on a mean has room for a spread close beside it, and for one set apart.
_LEAST, _WIDE = 76, 100
_SPREAD = 3
_WIDEST_FIGURE = 9
_LINES = "   lines: of code that make it parallel"


@dataclass(frozen=True)
class Standing:
    """The comparison of what has started, and what is only planned; ``order`` names every strategy."""

    comparison: Comparison
    waiting: tuple[PlannedRun, ...]
    order: tuple[str, ...]

    def of(self, strategy: str) -> Row | None:
        return next((row for row in self.comparison.rows if row.strategy == strategy), None)


def question(scene: Scene) -> Standing:
    """The standing of every strategy, started or not."""
    started = {run.experiment.strategy for run in scene.runs}
    planned = scene.plan.runs if scene.plan else []
    waiting = tuple(run for run in planned if run.strategy not in started)
    return Standing(comparison(scene.runs), waiting, scene.strategies)


def height(standing: Standing) -> int:
    """How many lines a drawing needs: a heading, a line per strategy, one per failure, the legend, and what † means."""
    failures = sum(1 for row in standing.comparison.rows if row.progress.why)
    return 2 + len(standing.order) + failures + (1 if _apart(standing) else 0)


def _apart(standing: Standing) -> list[Row]:
    """The strategies that † stands beside."""
    return [row for row in standing.comparison.rows if _is_apart(row)]


def _is_apart(row: Row) -> bool:
    """Whether a strategy stays out of the ranking, for a reason that time alone does not mend."""
    return not (row.is_ranked or row.is_baseline or row.not_ranked_why == NO_STEP_YET)


def draw(standing: Standing, frame: Frame) -> list[Strip]:
    columns = _columns(standing, frame)
    alone = _alone(standing.comparison.rows, columns, frame)
    writing = _writing(standing.comparison.rows, columns)
    each = [(strategy, standing.of(strategy)) for strategy in standing.order]
    contents = [
        _row(found, columns, alone, writing, frame, leads=strategy == standing.comparison.leader)
        if found is not None
        else _waiting(strategy, columns, alone, frame)
        for strategy, found in each
    ]
    lines: list[Line] = [heading(columns)]
    for (_, found), line in zip(each, table_rows(columns, contents), strict=True):
        lines.append(line)
        if found is not None and found.progress.why:
            lines.append([("      ", "text"), (_failure(found), "bad")])
    lines.append(_legend(standing, columns, frame))
    lines += _footnotes(standing, frame, frame.height - len(lines))
    return strips(lines, frame.width, frame.height, frame.look)


def _writing(rows: Sequence[Row], columns: tuple[Placed, ...]) -> dict[str, Written]:
    """How peaks and compilations are written: each of them in one unit."""
    width = {place.column.name: place.width for place in columns}
    peaks, compiled = [row.peak_bytes for row in rows], [row.compile_ns for row in rows]
    return {
        "peak": alike(peaks, size_unit(peaks), width.get("peak", _WIDEST_FIGURE)),
        "compile": alike(compiled, time_unit(compiled), width.get("compile", _WIDEST_FIGURE)),
    }


def _columns(standing: Standing, frame: Frame) -> tuple[Placed, ...]:
    """The columns there is room for; those that no strategy has anything for stay out, so that others have more."""
    rows = standing.comparison.rows
    empty = {
        "speedup": all(math.isnan(row.speedup) for row in rows),
        "efficiency": all(math.isnan(row.efficiency_frac) for row in rows),
        "state": not standing.waiting and all(row.progress.state == "done" for row in rows),
    }
    longest = max((len(name) for name in standing.order), default=0)
    widths = {"strategy": min(max(3 + longest + 2, 11), 24), "state": 30 if frame.width >= _SPACIOUS else 12}
    if frame.width >= _WIDE:
        widths |= {"rate": 13, "time": 12, "bar": 17}
    elif frame.width >= _LEAST:
        widths |= {"rate": 9 + frame.look.is_ascii, "time": 8 + frame.look.is_ascii}
    if rows and not standing.waiting and not any(row.progress.state in RUNNING for row in rows):
        # No state changes any more: what it does not need may let a spread stand.
        widths["state"] = min(max(len(_state(row, frame)) for row in rows), widths["state"])
    kept = [column for column in _COLUMNS if not empty.get(column.name, False)]
    base = [replace(column, width=widths.get(column.name, column.width)) for column in kept]
    found = placed([replace(one, width=max(one.width, _widest(one.name, rows, frame))) for one in base], frame.width)
    if len(found) < len(narrow := placed(base, frame.width)):
        found = narrow
    return tuple(_headed(place) if place.column.name == "bar" else place for place in found)


def _means(row: Row, name: str) -> tuple[str, float]:
    """A mean as it is written, and half its spread."""
    if name == "rate":
        return rate(row.samples_per_s), row.samples_per_s_spread
    return milliseconds(row.median_ns), row.spread_ns / NS_PER_MS


def _widest(name: str, rows: Sequence[Row], frame: Frame) -> int:
    """What the widest mean of a column takes with its spread; 0 for a column of other things."""
    if name not in ("rate", "time") or frame.width < _LEAST:
        return 0
    return max((cells(_mean(*_means(row, name), frame, "text")) for row in rows), default=0)


def _headed(bar: Placed) -> Placed:
    words = next(
        (words for words in ("where a step goes", "where it goes", "step split") if len(words) <= bar.width), "split"
    )
    return replace(bar, column=replace(bar.column, heading=words))


def _row(
    found: Row,
    columns: tuple[Placed, ...],
    alone: frozenset[str],
    writing: dict[str, Written],
    frame: Frame,
    *,
    leads: bool,
) -> dict[str, list[Piece]]:
    is_chosen = found.strategy == frame.selected
    width = {place.column.name: place.width for place in columns}
    bar = width.get("bar", 0)
    text = "strong" if is_chosen else "text"
    state = _state(found, frame)
    cited = partial(Cited, run=found.strategy)
    has_state = any(place.column.name == "state" for place in columns)
    shares: list[Piece] = stacked([(name, found.share.get(name, 0.0)) for name in SHARES], bar, frame.look)
    return {
        "strategy": _name(found.strategy, found.progress.state, is_chosen=is_chosen, leads=leads, row=found),
        "rate": _mean(*_means(found, "rate"), frame, cited(text, "throughput"), is_alone="rate" in alone),
        "time": _mean(*_means(found, "time"), frame, cited(text, "step_time"), is_alone="time" in alone),
        "speedup": [(times(found.speedup), cited(text, "speedup"))],
        "efficiency": [(whole_percent(found.efficiency_frac), cited(text, "efficiency"))],
        "bar": shares if found.share else [(_unprofiled(found) if has_state else state, "faint")],
        "exposed": [(percent(found.exposed_frac), cited(text, "share.exposed"))],
        "peak": [(writing["peak"](found.peak_bytes), cited(text, "memory.peak"))],
        "compile": [(writing["compile"](found.compile_ns), cited(text, "compile"))],
        "cost": [(percent(found.profiler_cost_frac), cited("quiet", "profiler_cost"))],
        "lines": [(str(found.parallel_lines) if found.parallel_lines else UNKNOWN, text)],
        "state": [(state, "accent" if found.progress.state in RUNNING else "quiet")],
    }


def _alone(rows: Sequence[Row], columns: tuple[Placed, ...], frame: Frame) -> frozenset[str]:
    """The columns of means without spreads: one that finds no room takes all of them along, for it is the largest."""
    return frozenset(place.column.name for place in columns if place.width < _widest(place.column.name, rows, frame))


def _mean(mean: str, half: float, frame: Frame, role: str, *, is_alone: bool = False) -> list[Piece]:
    """A mean, with its spread beside it where there is room; the signs stand below each other."""
    if frame.width < _LEAST or is_alone:
        return [(mean, role)]
    sign, size = ("+-" if frame.look.is_ascii else "±"), _SPREAD
    if frame.width >= _WIDE:
        sign, size = ("+-" if frame.look.is_ascii else "± "), _SPREAD + 1
    return [(mean, role), (" " * (frame.width >= _WIDE) + spread(half, mean, size, sign), "quiet")]


def _name(strategy: str, state: str, *, is_chosen: bool, leads: bool, row: Row | None) -> list[Piece]:
    mark, role = glyph(state)
    is_apart = row is not None and _is_apart(row)
    name = "strong" if is_chosen else ("good" if leads else "text")
    return [
        ("▸" if is_chosen else " ", "accent"),
        (f"{mark} ", role),
        (printable(strategy), name),
        (" †" if is_apart else "", "warn"),
    ]


def _state(found: Row, frame: Frame) -> str:
    if found.is_baseline and found.progress.state == "done":
        return "one device"
    return doing(found.progress) if frame.width >= _SPACIOUS else doing_briefly(found.progress)


def _unprofiled(found: Row) -> str:
    return "not profiled yet" if found.progress.state in RUNNING else "not profiled"


def _waiting(strategy: str, columns: tuple[Placed, ...], alone: frozenset[str], frame: Frame) -> dict[str, list[Piece]]:
    has_state = any(place.column.name == "state" for place in columns)
    blank: dict[str, list[Piece]] = {
        name: [(UNKNOWN, "faint")] for name in ("speedup", "efficiency", "exposed", "peak", "compile")
    }
    blank |= {
        place.column.name: _mean(UNKNOWN, math.nan, frame, "faint", is_alone=place.column.name in alone)
        for place in columns
        if place.column.name in ("rate", "time")
    }
    is_chosen = strategy == frame.selected
    blank["strategy"] = _name(strategy, "waiting", is_chosen=is_chosen, leads=False, row=None)
    blank["state" if has_state else "bar"] = [("waiting", "quiet")]
    return blank


def _failure(found: Row) -> str:
    who = f"rank {found.progress.rank}: " if found.progress.rank >= 0 else ""
    why = printable(found.progress.why)
    return why if who and why.lower().startswith("rank") else who + why


def _legend(standing: Standing, columns: tuple[Placed, ...], frame: Frame) -> list[Piece]:
    start = next((place.start for place in columns if place.column.name == "bar"), 0)
    shown = [name for name in SHARES if name != "copy" or any(r.share.get("copy") for r in standing.comparison.rows)]
    keys: list[Piece] = []
    for index, name in enumerate(shown):
        keys += [("  " if index else "", "quiet"), (texture(name, frame.look), name), (f" {name}", "quiet")]
    profiled = max((row.profiled_steps for row in standing.comparison.rows), default=0)
    tail: list[Piece] = [("  shares of the profiled steps", "faint")] if profiled else []
    line = [*keys, *tail] if start + cells([*keys, *tail]) <= frame.width else keys
    at = max(min(start, frame.width - cells(line)), 1)
    if any(place.column.name == "lines" for place in columns) and cell_len(_LINES) < at:
        return [*filled([(_LINES, "faint")], at), *line]
    return [(" " * at, "text"), *line]


def _footnotes(standing: Standing, frame: Frame, room: int) -> list[Line]:
    """What the numbers stand on, as far as there is room."""
    apart = _apart(standing)
    lines: list[Line] = _marked(apart, frame, room)
    told = tuple(f"{row.strategy} is not ranked:" for row in apart)
    notes = [note for note in standing.comparison.footnotes if not note.startswith(told)]
    if room - len(lines) < 2 or not notes:
        return lines
    lines.append([])
    for text in notes:
        lines += [[("  " + line, "quiet")] for line in wrapped(printable(text), frame.width - 4, 3)]
    return lines[:room]


def _marked(apart: list[Row], frame: Frame, room: int) -> list[Line]:
    """What † means, directly below the table."""
    if not apart or room < 1:
        return []
    text = "not ranked: " + ", ".join(f"{row.strategy} ({row.not_ranked_why})" for row in apart)
    first, *more = wrapped(printable(text), frame.width - 4, min(room, 3))
    return [[("  † ", "warn"), (first, "quiet")], *([("    " + line, "quiet")] for line in more)]


def strategy_at(standing: Standing, line: int) -> str:
    """The strategy drawn on a line of the drawing; "" for the heading, the legend and what is below."""
    at = 1
    for strategy in standing.order:
        found = standing.of(strategy)
        lines = 2 if found is not None and found.progress.why else 1
        if at <= line < at + lines:
            return strategy
        at += lines
    return ""


def depends(scene: Scene) -> tuple[object, ...]:
    return (scene.strategies, tuple(version(run) for run in scene.runs))


PANEL = Panel(
    name="comparison",
    title="strategies",
    number=1,
    promise="A line for each strategy appears here as soon as the plan is read.",
    question=question,
    draw=draw,
    depends=depends,
    is_overall=True,
    help=about.HELP,
    data=lambda standing: about.strategies(standing.comparison, standing.order),
)
