"""Each kind of collective: how long it takes in a step, and how much of that hides under compute."""

from __future__ import annotations

from dataclasses import dataclass, replace

from textual.strip import Strip

from meshscope.analysis.overlap import CollectiveOverlap, overlap, overlap_by_rank
from meshscope.analysis.progress import progress
from meshscope.analysis.waiting_words import wait_name
from meshscope.ui.about import overlap as about
from meshscope.ui.marks.bars import stacked
from meshscope.ui.marks.cells import Line, Piece, aired, clip, longest, strips
from meshscope.ui.marks.cited import Cited
from meshscope.ui.marks.figures import Written, alike
from meshscope.ui.marks.table import Column, Placed, heading, placed
from meshscope.ui.marks.table import rows as table_rows
from meshscope.ui.palette import texture
from meshscope.ui.panel import UNSTATED, Frame, Fresh, Panel, note
from meshscope.ui.profiled import suits
from meshscope.ui.scene import Scene
from meshscope.ui.words import whole_percent
from meshscope.units import UNKNOWN, counted, milliseconds, percent, printable, ratio, reach, size_unit

_COLUMNS = (
    Column("name", " collective", 15, is_text=True, grows=True, most=16),
    Column("bar", "", 6, is_text=True, grows=True, most=160, gap=1),
    Column("busy", "busy ms", 7, gap=1),
    Column("hidden", "hidden", 6, gap=1),
    Column("wait", "wait ms", 8, rank=1),
    Column("count", "count", 6, rank=3),
    Column("size", "size", 10, rank=2),
)


_FEWEST_RANKS = 3
_KINDS_BY_RANK = 4


@dataclass(frozen=True)
class Overlaps:
    """By exposed time, largest first; means per profiled step and rank. ``by_rank`` are the first of them on each."""

    kinds: tuple[CollectiveOverlap, ...] = ()
    fresh: Fresh = UNSTATED
    has_windows: bool = False
    next_window_steps: int | None = None
    has_ended: bool = False
    is_live: bool = False
    is_partial: bool = False
    is_recorded: bool = True
    by_rank: tuple[tuple[CollectiveOverlap, ...], ...] = ()
    wait: str = "wait"


def question(scene: Scene) -> Overlaps:
    """The overlap of every kind of collective in the run that is looked at."""
    run = scene.run
    if run is None:
        return Overlaps()
    kinds = overlap(run)
    newest = max((window.end_ns for window in run.windows), default=None)
    at = newest + run.experiment.t0_unix_ns if newest is not None and scene.is_recorded else None
    fresh = Fresh(of=_of(kinds[0]) if kinds else "", at_unix_ns=at)
    return Overlaps(
        kinds,
        fresh,
        bool(run.windows),
        progress(run).next_window_steps,
        run.ended is not None,
        scene.stance.is_live,
        is_partial=bool(scene.caveat),
        is_recorded=scene.is_recorded,
        by_rank=tuple(overlap_by_rank(run, kind.name) for kind in kinds[:_KINDS_BY_RANK]),
        wait=wait_name(run),
    )


def _of(kind: CollectiveOverlap) -> str:
    ranks = counted(len(kind.ranks), "rank")
    return f"{counted(kind.steps, 'step')} × {ranks}" if kind.steps else f"{ranks}, no complete step"


def draw(answer: Overlaps, frame: Frame) -> list[Strip]:
    if not answer.kinds:
        return note(_empty(answer), frame)
    columns = placed(_known_columns(answer), frame.width)
    longest_ns = max(kind.busy_ns for kind in answer.kinds)
    has_reading = len(answer.kinds) + 4 <= frame.height
    lines: list[Line] = [[(" " + _reading(answer.kinds[0], frame.width - 1), "text")]] if has_reading else []
    lines.append(heading(columns))
    room = frame.height - len(lines) - 2
    shown = answer.kinds if len(answer.kinds) <= room else answer.kinds[: max(room - 1, 1)]
    sizes = [kind.size_bytes for kind in answer.kinds if kind.size_bytes is not None]
    scale = longest_ns, alike(sizes, size_unit(sizes), _COLUMNS[-1].width)
    drawn = [_kind(kind, " " + kind.name, scale, columns, frame) for kind in shown]
    rows: list[Line] = [*table_rows(columns, drawn)]
    by_rank: list[Line] = []
    for ranks in answer.by_rank:
        some = _by_rank(ranks, scale, columns, frame, room - len(rows) - len(by_rank) - 1)
        by_rank += [[], *some] if some else []
    lines += [*rows, *by_rank] if by_rank else aired(rows, room - 1)
    if len(shown) < len(answer.kinds):
        rest = answer.kinds[len(shown) :]
        lines.append([(f"  … {len(rest)} more: {milliseconds(sum(kind.busy_ns for kind in rest))} ms", "quiet")])
    lines += [*([[]] if lines[-1] else []), _legend(frame)]
    return strips(lines, frame.width, frame.height, frame.look)


def _reading(kind: CollectiveOverlap, width: int) -> str:
    """What is most exposed, as a share of what."""
    name, exposed, busy = printable(kind.name), milliseconds(kind.exposed_ns), milliseconds(kind.busy_ns)
    share = percent(ratio(kind.exposed_ns, kind.busy_ns))
    most = f"Most exposed: {name}, {exposed} of its {busy} ms ({share})"
    each = " in a step of a rank" if kind.steps else " in a window of a rank"
    short = f"{name} exposed: {exposed} of {busy} ms"
    return longest((most + each, most, f"{short} ({share})", short, f"{name} {share} exposed"), width)


_Scale = tuple[float, Written]
"""How long the longest bar is, ns, and how sizes are written."""


def _by_rank(
    ranks: tuple[CollectiveOverlap, ...], scale: _Scale, columns: tuple[Placed, ...], frame: Frame, room: int
) -> list[Line]:
    """A kind rank by rank, where there is room for three of them or all."""
    if len(ranks) < 2 or room < min(len(ranks), _FEWEST_RANKS) + 1:
        return []
    shown = ranks if len(ranks) <= room - 1 else ranks[: room - 2]
    title = f" {printable(ranks[0].name)} by rank"
    title = longest((f"{title}, most exposed first", f"{title}, most first", title), frame.width)
    lines: list[Line] = [[(clip(title, frame.width), "quiet")]]
    drawn = [_kind(one, f" {one.ranks[0]}", scale, columns, frame, is_cited=False) for one in shown]
    lines += table_rows(columns, drawn)
    rest = [one.exposed_ns for one in ranks[len(shown) :]]
    if rest:
        least_to_most = reach(milliseconds(min(rest)), milliseconds(max(rest)))
        more = f"  … {len(rest)} more: {least_to_most} ms"
        words = longest((f"{more} exposed each", f"{more} each", more), frame.width)
        lines.append([(clip(words, frame.width), "quiet")])
    return lines


def _known_columns(answer: Overlaps) -> tuple[Column, ...]:
    """Without the columns that no trace here can fill; waiting by the name of how it was measured."""
    kinds, title = answer.kinds, f"{answer.wait} ms"
    unknown = {"wait": all(k.wait_ns is None for k in kinds), "size": all(k.size_bytes is None for k in kinds)}
    return tuple(
        replace(column, heading=title, width=len(title) + 1) if column.name == "wait" else column
        for column in _COLUMNS
        if not unknown.get(column.name, False)
    )


def _kind(
    kind: CollectiveOverlap,
    name: str,
    scale: _Scale,
    columns: tuple[Placed, ...],
    frame: Frame,
    *,
    is_cited: bool = True,
) -> dict[str, list[Piece]]:
    longest_ns, write = scale
    width = next(place.width for place in columns if place.column.name == "bar")
    parts = [("hidden", ratio(kind.hidden_ns, longest_ns)), ("exposed", ratio(kind.exposed_ns, longest_ns))]
    figures = {
        "busy": milliseconds(kind.busy_ns),
        "hidden": whole_percent(ratio(kind.hidden_ns, kind.busy_ns)),
        "wait": UNKNOWN if kind.wait_ns is None else milliseconds(kind.wait_ns),
        "count": str(kind.count),
        "size": UNKNOWN if kind.size_bytes is None else write(kind.size_bytes),
    }
    content: dict[str, list[Piece]] = {
        what: [(figure, Cited("text", f"by_kind.{kind.name}.{what}") if is_cited else "quiet")]
        for what, figure in figures.items()
    }
    return content | {"name": [(printable(name), "text")], "bar": stacked(parts, width, frame.look)}


def _legend(frame: Frame) -> list[Piece]:
    return [
        (" ", "text"),
        (texture("hidden", frame.look), "hidden"),
        (" hidden under compute  ", "quiet"),
        (texture("exposed", frame.look), "exposed"),
        (" exposed", "quiet"),
    ]


def _empty(answer: Overlaps) -> str:
    if answer.is_partial:
        return "No collective in what is read so far."
    if answer.has_windows and not answer.is_recorded:
        return "The trace holds no collective: nothing is exchanged between devices, or nothing of it was recorded."
    if answer.has_windows:
        return "The profiled steps hold no collective: nothing is exchanged between devices."
    if answer.has_ended:
        return "Nothing was profiled in this run, so its collectives are not known."
    when = f", in {counted(answer.next_window_steps, 'step')}" if answer.next_window_steps and answer.is_live else ""
    return f"Fills with the first profiled steps{when}: each kind of collective, hidden or exposed."


def depends(scene: Scene) -> tuple[object, ...]:
    """Windows alone, once there is one; before that also the steps that are left until the first."""
    run = scene.run
    if run is None:
        return ()
    return (
        len(run.windows),
        sum(window.counts.read for window in run.windows),
        len(run.refused),
        scene.caveat != "",
        run.ended,
        (0, False) if run.windows else (len(run.steps), scene.stance.is_live),
    )


PANEL = Panel(
    name="overlap",
    title="collectives by kind",
    number=3,
    promise="Each kind of collective: how long it takes in a step, and how much of that hides under compute.",
    question=question,
    draw=draw,
    fresh=lambda answer: answer.fresh,
    depends=depends,
    of=("recording", "traces"),
    suits=suits,
    help=about.HELP,
    data=lambda answer: about.kinds(answer.kinds),
)
