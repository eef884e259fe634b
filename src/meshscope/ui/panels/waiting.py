"""Who comes late, step by step, and who waits for whom: ranks × steps as a heat strip, with each rank's waiting."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from textual.strip import Strip

from meshscope.analysis.progress import progress
from meshscope.analysis.rank_waits import (
    Band,
    RankRow,
    RankWaits,
    bands,
    named_late,
    per_cell,
    rank_waits,
    worst_first,
)
from meshscope.ui.about import waiting as about
from meshscope.ui.marks.cells import Line, Piece, cells, longest, strips, wrapped
from meshscope.ui.marks.cited import Cited
from meshscope.ui.marks.heat import heat_heading, heat_scale, heat_strip
from meshscope.ui.marks.table import Column, Placed, heading, placed, row, rows
from meshscope.ui.panel import UNSTATED, Frame, Fresh, Panel, note
from meshscope.ui.profiled import suits
from meshscope.ui.scene import Scene
from meshscope.ui.words import steps_of
from meshscope.units import UNKNOWN, counted, duration, durations, milliseconds, printable, ranges

_COLUMNS = (
    Column("rank", "rank", 6),
    Column("late", "late", 6, is_text=True, grows=True, most=240, least=4, gap=1),
    Column("wait", "wait, sum ms", 12, gap=1),
    Column("transfer", "transfer ms", 11, rank=2, gap=1),
    Column("held", "holds up ms", 11, rank=3, gap=1),
    Column("last", "last", 7, rank=1, gap=1),
)
_Value = TypeVar("_Value", int, float)

_LEVELS = (0.02, 0.05, 0.1, 0.2)
"""From which share of a step on a cell is of the next level; the first is what counts as late."""

_TALL, _TALLER = 8, 16
"""From how many lines on there is a note below, and another."""

_LONGEST_NAME = 9
"""Cells that the ranks of a row may take by their numbers."""

_FEWEST_ROWS, _FEWEST_ALONE = 4, 3
"""Rows that are shown however long the sentence is, and ranks that stand by themselves however even all are."""


@dataclass(frozen=True, eq=False)
class Lates:
    """``has_windows`` tells whether anything was traced; without that ``next_window_steps`` is when something will."""

    found: RankWaits
    worst: tuple[RankRow, ...] = ()
    fresh: Fresh = UNSTATED
    is_asked: bool = False
    has_windows: bool = False
    has_ended: bool = False
    is_lone: bool = False
    is_partial: bool = False
    next_window_steps: int | None = None


def question(scene: Scene) -> Lates:
    run = scene.run
    if run is None:
        return Lates(RankWaits())
    if scene.caveat:
        # A rank that is not read yet may be the one that came last.
        return Lates(RankWaits(), is_asked=True, has_windows=bool(run.windows), is_partial=True)
    found = rank_waits(run)
    newest = max((window.end_ns for window in run.windows), default=None)
    at = newest + run.experiment.t0_unix_ns if newest is not None and scene.is_recorded else None
    steps = [step for step in found.steps if step >= 0]
    over = steps_of(steps) or ("all that was traced" if found.rows else "")
    of = f"{over}; {found.matched} of {counted(found.spans, 'collective span')} matched" if found.rows else ""
    return Lates(
        found,
        worst_first(found),
        Fresh(of=of, at_unix_ns=at if found.rows else None),
        is_asked=True,
        has_windows=bool(run.windows),
        has_ended=run.ended is not None,
        is_lone=scene.is_recorded and run.experiment.ranks == 1,
        next_window_steps=progress(run).next_window_steps if scene.stance.is_live else None,
    )


def draw(answer: Lates, frame: Frame) -> list[Strip]:
    found = answer.found
    if not found.rows:
        return note(_empty(answer), frame)
    foot = 1 + (frame.height >= _TALL) + (frame.height >= _TALLER)
    room = frame.height - foot - 1
    # A third of the panel, or what every row leaves: words are not cut above blank lines.
    most = max(min(room - min(len(found.rows), _FEWEST_ROWS), frame.height // 3), room - len(found.rows), 1)
    said = wrapped(printable(found.words[:1].upper() + found.words[1:]), max(frame.width - 1, 1), most)
    lines: list[Line] = [[(" " + line, "warn" if found.is_bad else "text")] for line in said]
    shown = _shown(answer, frame.height - len(lines) - 1 - foot)
    if not shown:
        return strips([*lines, _scale(found, frame)], frame.width, frame.height, frame.look)
    columns = placed(_widened(shown), frame.width)
    lines.append(_heading(found, columns))
    lines += rows(columns, [_row(one, columns, frame) for one in shown])
    below = [_scale(found, frame), *_notes(found, shown, columns, frame, frame.height - len(lines) - 1)]
    gap: list[Line] = [[]] if len(lines) + len(below) < frame.height else []
    return strips([*lines, *gap, *below], frame.width, frame.height, frame.look)


@dataclass(frozen=True, eq=False)
class _Named:
    """A row by its name: a rank, or several of them, in each step the latest."""

    name: str
    rows: tuple[RankRow, ...]
    late_frac: npt.NDArray[np.float64]

    @property
    def count(self) -> int:
        return len(self.rows)

    @classmethod
    def alone(cls, row: RankRow) -> _Named:
        return cls(str(row.rank), (row,), row.late_frac)


def _shown(answer: Lates, room: int) -> list[_Named]:
    """All in the order of ranks; where they do not fit the worst first, and then all others folded in that order.

    Those that are late in the mean stand by themselves, if they are not too many: what is left of a bad node or a bad
    device is even then, and what roams shows in every row.
    """
    found = answer.found.rows
    if len(found) <= room or room < 1:
        return [_Named.alone(one) for one in found[: max(room, 0)]]
    late = max(named_late(answer.found), _FEWEST_ALONE)
    alone = min(late, room - 1 if late < room else room - room // 3) if room > 1 else 1
    shown = [_Named.alone(one) for one in answer.worst[:alone]]
    if room == 1:
        return shown
    others = sorted(answer.worst[alone:], key=lambda row: row.rank)
    return [*shown, *(_Named(_called(band), band.rows, band.late_frac) for band in bands(others, room - alone))]


def _called(band: Band) -> str:
    """Every rank of it, since those that stand by themselves may lie between; their number where that is too long."""
    named = ranges(band.ranks)
    first, last = band.ranks[0], band.ranks[-1]
    return named if len(named) <= _LONGEST_NAME else f"{first}…{last} ({len(band.ranks)})"


def _heading(found: RankWaits, columns: tuple[Placed, ...]) -> list[Piece]:
    """The steps of the strip's first and last cell stand above it."""
    width = next(place.width for place in columns if place.column.name == "late")
    titles = {place.column.name: [(place.column.heading, "quiet")] for place in columns}
    titles["late"] = [(heat_heading(found.steps, width) if found.is_stepped else "in all"[:width], "quiet")]
    return row(columns, titles) if width else heading(columns)


def _widened(shown: Sequence[_Named]) -> tuple[Column, ...]:
    """The columns with room for the longest name, and for the figures of rows that stand for several ranks."""
    figures = [_figures_of(one) for one in shown]
    widths = {name: max(len(one[name]) for one in figures) for name in figures[0]}
    widths["rank"] = max(4, *(len(one.name) for one in shown)) + 2
    return tuple(replace(column, width=max(column.width, widths.get(column.name, 0))) for column in _COLUMNS)


def _row(one: _Named, columns: tuple[Placed, ...], frame: Frame) -> dict[str, list[Piece]]:
    width = next(place.width for place in columns if place.column.name == "late")
    content: dict[str, list[Piece]] = {
        "rank": [(one.name, "quiet" if one.count > 1 else "text")],
        "late": heat_strip(one.late_frac, width, _LEVELS, frame.look),
    }
    told = _figures_of(one)
    if one.count > 1:
        return content | {name: [(figure, "text")] for name, figure in told.items()}
    (row,) = one.rows
    for name, figure in told.items():
        number = "waiting.last" if name == "last" else f"waiting.per_step.{name}"
        own, of, calls = figure.partition("/")
        content[name] = [(own, Cited("text", number, rank=row.rank)), *([(of + calls, "text")] if of else [])]
    return content


def _figures_of(one: _Named) -> dict[str, str]:
    """By column the figure of a rank, or the least and the most of several: none of them is called what it is not."""
    of = one.rows
    return {
        "wait": _span([row.wait_ns for row in of], milliseconds),
        "transfer": _span([row.transfer_ns for row in of], milliseconds),
        "held": _span([row.held_ns for row in of], milliseconds),
        "last": f"{_span([row.last for row in of], str)}/{_span([row.calls for row in of], str)}",
    }


def _span(values: Sequence[_Value], write: Callable[[_Value], str]) -> str:
    """``404–445``."""
    low, high = write(min(values)), write(max(values))
    return low if low == high else f"{low}–{high}"


def _scale(found: RankWaits, frame: Frame) -> list[Piece]:
    """What the characters stand for, in shares of a step and in time."""
    line: list[Piece] = [(" late by", "quiet"), *heat_scale(_LEVELS, frame.look)]
    of = "a step" if found.is_stepped else "the time"
    low, high = durations(_LEVELS[0] * found.step_ns, _LEVELS[-1] * found.step_ns)
    time = f" ({low} to {high})"
    full = (f" % of {of} or more{time}, over all collectives", f" % of {of} or more{time}")
    short = (f" % of {of}", " %")
    words = short if math.isnan(found.step_ns) else full + short
    return [*line, (longest(words, frame.width - cells(line)), "quiet")]


def _notes(
    found: RankWaits, shown: Sequence[_Named], columns: tuple[Placed, ...], frame: Frame, room: int
) -> list[Line]:
    """What was folded into a cell, then what the figures are and how far the clocks can be trusted."""
    width = next(place.width for place in columns if place.column.name == "late")
    folding = _folding(per_cell(len(found.steps), width), max(one.count for one in shown), frame)
    lines: list[Line] = [[(line, "faint")] for line in (folding, _figures(found, frame)) if line]
    return lines[: max(room, 0)]


def _folding(steps: int, ranks: int, frame: Frame) -> str:
    """How many steps and ranks are in one cell, and what of them; "" where nothing was folded."""
    of = [f"{count} {what}" for count, what in ((steps, "steps"), (ranks, "ranks")) if count > 1]
    if not of:
        return ""
    least = "; figures of several ranks: least–most" if ranks > 1 else ""
    both, brief = " and ".join(of), " × ".join(of)
    return longest(
        (f" a cell is the latest of {both}{least}", f" a cell: the latest of {both}", f" cell: latest of {brief}"),
        frame.width,
    )


def _figures(found: RankWaits, frame: Frame) -> str:
    """What the figures are, and how far the clocks can be trusted."""
    each = "per step" if found.is_stepped else "in all"
    ends = UNKNOWN if found.residual_ns is None else duration(found.residual_ns)
    return longest(
        (
            f" ms {each}; wait: until the last rank came, added up over calls, at once or not; ends agree to {ends}",
            f" ms: {each}, added up over calls, at once or not; ends of a collective agree to {ends}",
            f" ms {each}; wait: until the last rank came; ends agree to {ends}",
            f" ms {each}, over calls; ends agree to {ends}",
            f" ends agree to {ends}",
        ),
        frame.width,
    )


def _empty(answer: Lates) -> str:
    if not answer.is_asked:
        return PANEL.promise
    if answer.is_lone:
        return "One rank trains by itself: it waits for nobody, and nobody for it."
    if answer.is_partial:
        return "Who is late shows when every rank's trace is read: another may have come last."
    if answer.has_windows:
        return f"Cannot say who waits for whom: {answer.found.why}."
    if answer.has_ended:
        return "Nothing was profiled in this run, so it is not known who waits for whom."
    when = f", in {counted(answer.next_window_steps, 'step')}" if answer.next_window_steps else ""
    return f"Fills with the first profiled steps{when}: which rank comes late, and who waits for it."


def depends(scene: Scene) -> Hashable:
    """Windows; before there are any also the steps that are left until the first.

    A straggler that the journal of all steps shows comes with more steps, not with each.
    """
    run = scene.run
    if run is None:
        return ()
    step = len(run.steps) // (8 * max(run.experiment.ranks, 1)) if run.windows else len(run.steps)
    read = sum(window.counts.read for window in run.windows)
    return (run.path, len(run.windows), read, scene.caveat != "", run.ended is not None, step, scene.stance.is_live)


PANEL = Panel(
    name="waiting",
    title="waiting & stragglers",
    number=8,
    promise="How late each rank comes, step by step; how long each waits, and for whom.",
    question=question,
    draw=draw,
    fresh=lambda answer: answer.fresh,
    depends=depends,
    of=("recording", "traces"),
    suits=suits,
    help=about.HELP,
    data=lambda answer: about.ranks(answer.found),
)
