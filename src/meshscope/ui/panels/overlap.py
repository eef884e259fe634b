"""Each kind of collective: how long it takes in a step, and how much of that hides under compute."""

from __future__ import annotations

from dataclasses import dataclass

from textual.strip import Strip

from meshscope.analysis.overlap import CollectiveOverlap, overlap
from meshscope.analysis.progress import progress
from meshscope.ui.about import overlap as about
from meshscope.ui.marks.bars import stacked
from meshscope.ui.marks.cells import Line, Piece, aired, strips
from meshscope.ui.marks.cited import Cited
from meshscope.ui.marks.table import Column, Placed, heading, placed, row
from meshscope.ui.palette import texture
from meshscope.ui.panel import UNSTATED, Frame, Fresh, Panel, note
from meshscope.ui.scene import Scene
from meshscope.ui.words import whole_percent
from meshscope.units import UNKNOWN, counted, milliseconds, printable, ratio, size

_COLUMNS = (
    Column("name", " collective", 15, is_text=True, grows=True, most=16),
    Column("bar", "", 6, is_text=True, grows=True, most=60, gap=1),
    Column("busy", "busy ms", 7, gap=1),
    Column("hidden", "hidden", 6, gap=1),
    Column("wait", "wait ms", 8, rank=1),
    Column("count", "count", 6, rank=3),
    Column("size", "size", 8, rank=2),
)


@dataclass(frozen=True)
class Overlaps:
    """By exposed time, largest first; means per profiled step and rank."""

    kinds: tuple[CollectiveOverlap, ...] = ()
    fresh: Fresh = UNSTATED
    has_windows: bool = False
    next_window_steps: int | None = None
    has_ended: bool = False
    is_live: bool = False
    is_partial: bool = False
    is_recorded: bool = True


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
    )


def _of(kind: CollectiveOverlap) -> str:
    ranks = counted(len(kind.ranks), "rank")
    return f"{counted(kind.steps, 'step')} × {ranks}" if kind.steps else f"{ranks}, no complete step"


def draw(answer: Overlaps, frame: Frame) -> list[Strip]:
    if not answer.kinds:
        return note(_empty(answer), frame)
    columns = placed(_known_columns(answer.kinds), frame.width)
    longest = max(kind.busy_ns for kind in answer.kinds)
    lines: list[Line] = [heading(columns)]
    room = frame.height - 3
    shown = answer.kinds if len(answer.kinds) <= room else answer.kinds[: max(room - 1, 1)]
    lines += aired([_kind(kind, longest, columns, frame) for kind in shown], room - 1)
    if len(shown) < len(answer.kinds):
        rest = answer.kinds[len(shown) :]
        lines.append([(f"  … {len(rest)} more: {milliseconds(sum(kind.busy_ns for kind in rest))} ms", "quiet")])
    lines += [*([[]] if lines[-1] else []), _legend(frame)]
    return strips(lines, frame.width, frame.height, frame.look)


def _known_columns(kinds: tuple[CollectiveOverlap, ...]) -> tuple[Column, ...]:
    """Without the columns that no trace here can fill."""
    unknown = {"wait": all(k.wait_ns is None for k in kinds), "size": all(k.size_bytes is None for k in kinds)}
    return tuple(column for column in _COLUMNS if not unknown.get(column.name, False))


def _kind(kind: CollectiveOverlap, longest: float, columns: tuple[Placed, ...], frame: Frame) -> list[Piece]:
    width = next(place.width for place in columns if place.column.name == "bar")
    parts = [("hidden", ratio(kind.hidden_ns, longest)), ("exposed", ratio(kind.exposed_ns, longest))]
    cited = {what: Cited("text", f"by_kind.{kind.name}.{what}") for what in ("busy", "hidden", "wait", "count", "size")}
    content: dict[str, list[Piece]] = {
        "name": [(" " + printable(kind.name), "text")],
        "bar": stacked(parts, width, frame.look),
        "busy": [(milliseconds(kind.busy_ns), cited["busy"])],
        "hidden": [(whole_percent(ratio(kind.hidden_ns, kind.busy_ns)), cited["hidden"])],
        "wait": [(UNKNOWN if kind.wait_ns is None else milliseconds(kind.wait_ns), cited["wait"])],
        "count": [(str(kind.count), cited["count"])],
        "size": [(UNKNOWN if kind.size_bytes is None else size(kind.size_bytes), cited["size"])],
    }
    return row(columns, content)


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
    suits=lambda scene: scene.is_recorded or scene.run is None or bool(scene.run.windows),
    help=about.HELP,
    data=lambda answer: about.kinds(answer.kinds),
)
