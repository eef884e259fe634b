"""Who comes late, step by step, and who waits for whom: ranks × steps as a heat strip, with each rank's waiting."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import groupby

from textual.strip import Strip

from meshscope.analysis.progress import progress
from meshscope.analysis.rank_waits import Floats, RankRow, RankWaits, binned, median_row, rank_waits, worst_first
from meshscope.ui.about import waiting as about
from meshscope.ui.marks.cells import Line, Piece, cells, strips, wrapped
from meshscope.ui.marks.cited import Cited
from meshscope.ui.marks.table import Column, Placed, heading, placed, row
from meshscope.ui.palette import heat
from meshscope.ui.panel import UNSTATED, Frame, Fresh, Panel, note
from meshscope.ui.scene import Scene
from meshscope.ui.words import steps_of
from meshscope.units import UNKNOWN, counted, duration, milliseconds, printable

_COLUMNS = (
    Column("rank", "rank", 6),
    Column("late", "late", 6, is_text=True, grows=True, most=160, least=4, gap=1),
    Column("wait", "wait ms", 7, gap=1),
    Column("transfer", "transfer ms", 11, rank=2, gap=1),
    Column("held", "holds up ms", 11, rank=3, gap=1),
    Column("last", "last", 7, rank=1, gap=1),
)
_LEVELS = (0.02, 0.05, 0.1, 0.2)
"""From which share of a step on a cell is of the next level; the first is what counts as late."""

_MOST_PER_STEP = 6
_TALL = 8
_FEWEST_ROWS = 4
"""Ranks that are shown however long the sentence is."""


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
    below = _scale(found, frame)
    most = max(frame.height - len(below) - 1 - min(len(found.rows), _FEWEST_ROWS), 1)
    said = wrapped(printable(found.words[:1].upper() + found.words[1:]), max(frame.width - 1, 1), most)
    lines: list[Line] = [[(" " + line, "warn" if found.is_bad else "text")] for line in said]
    room = frame.height - len(lines) - 1 - len(below)
    if room < 1:
        return strips(lines, frame.width, frame.height, frame.look)
    columns = placed(_COLUMNS, frame.width)
    lines.append(_heading(found, columns))
    lines += [_row(one, name, columns, frame) for one, name in _shown(answer, room)]
    spare = frame.height - len(lines) - len(below)
    return strips([*lines, *([[]] if spare > 0 else []), *below], frame.width, frame.height, frame.look)


def _shown(answer: Lates, room: int) -> list[tuple[RankRow, str]]:
    """All in the order of ranks; where they do not fit, the worst first and the rest as one row of medians."""
    rows = answer.found.rows
    if len(rows) <= room:
        return [(one, str(one.rank)) for one in rows]
    shown, rest = answer.worst[: max(room - 1, 1)], answer.worst[max(room - 1, 1) :]
    median = [(median_row(rest), f"+{len(rest)}")] if room > 1 else []
    return [(one, str(one.rank)) for one in shown] + median


def _heading(found: RankWaits, columns: tuple[Placed, ...]) -> list[Piece]:
    """The steps of the strip's first and last cell stand above it."""
    width = next(place.width for place in columns if place.column.name == "late")
    titles = {place.column.name: [(place.column.heading, "quiet")] for place in columns}
    titles["late"] = [(_span(found, width), "quiet")]
    return row(columns, titles) if width else heading(columns)


def _span(found: RankWaits, width: int) -> str:
    if not found.is_stepped:
        return "in all"[:width]
    first, last = found.steps[0], found.steps[-1]
    if len(found.steps) == 1:
        return f"step {first}" if width >= len(f"step {first}") else str(first)
    used = _per_step(len(found.steps), width) * len(found.steps)
    ends = min(max(used, len(f"{first}–{last}")), width)
    gap = ends - len(f"step {first}") - len(str(last))
    return f"step {first}{' ' * gap}{last}" if gap > 0 else f"{first}–{last}"


def _per_step(steps: int, width: int) -> int:
    """How many cells a step takes where there is room."""
    return min(max(width // max(steps, 1), 1), _MOST_PER_STEP)


def _row(one: RankRow, name: str, columns: tuple[Placed, ...], frame: Frame) -> list[Piece]:
    width = next(place.width for place in columns if place.column.name == "late")
    content: dict[str, list[Piece]] = {
        "rank": [(name, "quiet" if one.rank < 0 else "text")],
        "late": _cells(one.late_frac, width, frame),
        "wait": [(milliseconds(one.wait_ns), _cited("per_step.wait", one))],
        "transfer": [(milliseconds(one.transfer_ns), _cited("per_step.transfer", one))],
        "held": [(milliseconds(one.held_ns), _cited("per_step.held", one))],
        "last": [(str(one.last), _cited("last", one)), (f"/{one.calls}", "text")],
    }
    return row(columns, content)


def _cited(number: str, one: RankRow) -> str:
    """The row of medians is of no rank, so nothing is said of what it is made of."""
    return Cited("text", f"waiting.{number}", rank=one.rank) if one.rank >= 0 else "text"


def _cells(late_frac: Floats, width: int, frame: Frame) -> list[Piece]:
    """A level for each step; the worst of several where they share a cell."""
    each = _per_step(len(late_frac), width)
    levels = [_level(value) for value in binned(late_frac, width).tolist()]
    return [
        (" " * count if level < 0 else heat(level, frame.look) * count, "text" if level < 0 else f"heat{level}")
        for level, run in groupby(levels)
        if (count := each * len(list(run)))
    ]


def _level(frac: float) -> int:
    return -1 if math.isnan(frac) else sum(frac >= bar for bar in _LEVELS)


def _scale(found: RankWaits, frame: Frame) -> list[Line]:
    """What the characters stand for, in shares of a step and in time; what the figures are, and how far to trust it."""
    line: list[Piece] = [(" late by", "quiet")]
    for level, bar in enumerate(_LEVELS, start=1):
        line += [(" " + heat(level, frame.look), f"heat{level}"), (f" {bar * 100:.0f}", "quiet")]
    of = "a step" if found.is_stepped else "the time"
    time = f" ({duration(_LEVELS[0] * found.step_ns)} to {duration(_LEVELS[-1] * found.step_ns)})"
    full = (f" % of {of} or more{time}, over all collectives", f" % of {of} or more{time}")
    short = (f" % of {of}", " %")
    words = short if math.isnan(found.step_ns) else full + short
    line.append((_longest(words, frame.width - cells(line)), "quiet"))
    return [line, [(_figures(found, frame), "faint")]] if frame.height >= _TALL else [line]


def _figures(found: RankWaits, frame: Frame) -> str:
    """What the figures and the last row are, and how far the clocks can be trusted."""
    each = "per step" if found.is_stepped else "in all"
    more = "; +n: the median of n more" if len(found.rows) + 2 * _FEWEST_ROWS > frame.height else ""
    ends = UNKNOWN if found.residual_ns is None else duration(found.residual_ns)
    return _longest(
        (
            f" ms: {each}, added up over calls{more}; ends of a collective agree to {ends}",
            f" ms {each}, over calls{more}; ends agree to {ends}",
            f" ends agree to {ends}",
        ),
        frame.width,
    )


def _longest(words: Sequence[str], width: int) -> str:
    """The first that fits, or the last."""
    return next((text for text in words if len(text) <= width), words[-1])


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
    suits=lambda scene: scene.is_recorded or scene.run is None or bool(scene.run.windows),
    help=about.HELP,
    data=lambda answer: about.ranks(answer.found),
)
