"""Runs of traces that were opened by themselves, one row each: what was traced, and where its time goes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from rich.cells import cell_len
from textual.strip import Strip

from meshscope.analysis.traced import Traced, traced, unfinished
from meshscope.ui.about import traces as about
from meshscope.ui.marks.bars import stacked
from meshscope.ui.marks.cells import Line, Piece, cells, clip, strips
from meshscope.ui.marks.cited import Cited
from meshscope.ui.marks.figures import Written, alike
from meshscope.ui.marks.table import Column, Placed, heading, placed
from meshscope.ui.marks.table import rows as table_rows
from meshscope.ui.palette import texture
from meshscope.ui.panel import Frame, Panel, note
from meshscope.ui.scene import Scene, version
from meshscope.ui.words import grouped, steps_of
from meshscope.units import UNKNOWN, counted, percent, printable, ratio, time_unit

SHARES = ("compute", "hidden", "exposed", "copy", "idle")

_TIME_WIDTH = 9
_COLUMNS = (
    Column("name", "   trace", 20, is_text=True),
    Column("of", "of", 12, rank=2, is_text=True),
    Column("ranks", "ranks", 5),
    Column("steps", "profiled", 8, rank=4),
    Column("time", "traced", _TIME_WIDTH),
    Column("bar", "where it goes", 13, is_text=True, grows=True, most=140, least=8, gap=3),
    Column("exposed", "exposed", 7),
    Column("idle", "idle", 7, rank=1),
    Column("events", "events", 10, rank=5),
    Column("state", "", 12, is_text=True, gap=3),
)
_LONGEST_NAME = 44
_SPACIOUS = 150


@dataclass(frozen=True)
class Table:
    """One row per run; ``partial`` and ``is_read`` as in the scene."""

    rows: tuple[Traced, ...] = ()
    partial: dict[str, float] = field(default_factory=dict)
    is_read: bool = False

    def of(self, name: str) -> Traced | None:
        return next((found for found in self.rows if found.name == name), None)


def question(scene: Scene) -> Table:
    """The rows of all runs that are known so far."""
    return Table(
        tuple(unfinished(traced(run)) if run.name in scene.partial else traced(run) for run in scene.runs),
        dict(scene.partial),
        scene.is_read,
    )


def height(table: Table | None) -> int:
    """How many lines a drawing needs: a heading, a line per run, and the legend."""
    return 2 + len(table.rows) if table is not None and table.rows else 2


def draw(table: Table, frame: Frame) -> list[Strip]:
    if not table.rows:
        if table.is_read:
            return note("None of the files could be read: below it says why, file by file.", frame)
        return note("The first file that is read appears here, and a big one after its first part.", frame)
    columns = _columns(table, frame)
    lines: list[Line] = [heading(columns)]
    room = max(frame.height - 2, 1)
    at = next((number for number, found in enumerate(table.rows) if found.name == frame.selected), 0)
    first = max(min(at - room // 2, len(table.rows) - room), 0)
    spans_ns = [found.mean.span_ns for found in table.rows if found.mean]
    write = alike(spans_ns, time_unit(spans_ns), _TIME_WIDTH)
    shown = [_row(found, table, write, columns, frame) for found in table.rows[first : first + room]]
    lines += table_rows(columns, shown)
    lines.append(_legend(table, columns, frame))
    return strips(lines, frame.width, frame.height, frame.look)


def name_at(table: Table, line: int, frame_height: int, selected: str) -> str:
    """The run that is drawn on a line; "" for none."""
    room = max(frame_height - 2, 1)
    at = next((number for number, found in enumerate(table.rows) if found.name == selected), 0)
    number = max(min(at - room // 2, len(table.rows) - room), 0) + line - 1
    return table.rows[number].name if 1 <= line <= room and 0 <= number < len(table.rows) else ""


def _columns(table: Table, frame: Frame) -> tuple[Placed, ...]:
    rows = table.rows
    longest = max(len(found.name) for found in rows) + 4
    widths = {
        "name": min(max(longest, 12), max(frame.width // 4, 16), _LONGEST_NAME),
        "of": max(len(_of(found)) for found in rows),
        "events": max(len(grouped(found.events)) for found in rows),
        "steps": max(*(len(steps_of(found.steps)) for found in rows), 8),
    }
    empty = {
        "exposed": not any(found.mean and found.mean.collective_ns for found in rows),
        "steps": not any(found.steps for found in rows),
        "state": not table.partial,
        # What was read has a panel of its own.
        "events": frame.width < _SPACIOUS,
    }
    kept = [column for column in _COLUMNS if not empty.get(column.name, False)]
    found = placed([replace(column, width=widths.get(column.name, column.width)) for column in kept], frame.width)
    is_stepped = all(one.is_stepped for one in rows if one.mean)
    headings = {
        "time": "step" if is_stepped else "traced",
        "bar": "where a step goes" if is_stepped else "where it goes",
    }
    return tuple(_headed(place, headings) for place in found)


def _headed(place: Placed, headings: dict[str, str]) -> Placed:
    words = headings.get(place.column.name, place.column.heading)
    return replace(place, column=replace(place.column, heading=words if len(words) <= place.width else "split"))


def _clipped(name: str, width: int) -> str:
    """A name with its beginning and its end: two runs of one folder differ in the end."""
    if cell_len(name) <= width or width < 16:
        return clip(name, width)
    end = name[-8:]
    return clip(name, width - cell_len(end)) + end


def _of(found: Traced) -> str:
    if found.told:
        return printable(found.framework)
    kind = found.device_kind.upper() if found.device_kind != "none" else "host"
    return f"{printable(found.framework)} · {kind}" if found.framework else kind


def _row(
    found: Traced, table: Table, write: Written, columns: tuple[Placed, ...], frame: Frame
) -> dict[str, list[Piece]]:
    is_chosen = found.name == frame.selected
    text = "strong" if is_chosen else "text"
    place = next((place for place in columns if place.column.name == "bar"), None)
    width = place.width if place else 0
    bar: list[Piece] = stacked([(name, found.share.get(name, 0.0)) for name in SHARES], width, frame.look)
    mean = found.mean
    share = table.partial.get(found.name)
    name = next((place.width for place in columns if place.column.name == "name"), 12)
    return {
        "name": [
            ("▸" if is_chosen else " ", "accent"),
            ("◐ " if share is not None else "✓ ", "accent" if share is not None else "good"),
            (_clipped(printable(found.name), name - 3), text),
        ],
        "of": [(_of(found), "quiet")],
        "ranks": [(str(found.ranks), text)],
        "steps": [(steps_of(found.steps) or UNKNOWN, text)],
        "time": [(write(mean.span_ns) if mean else UNKNOWN, text)],
        "bar": bar if found.share else [(clip(found.told or "no device work", width), "faint")],
        "exposed": [(percent(ratio(mean.exposed_ns, mean.span_ns)) if mean else UNKNOWN,
                     Cited(text, "share.exposed", run=found.name))],
        "idle": [(percent(ratio(mean.idle_ns, mean.span_ns)) if mean else UNKNOWN,
                  Cited(text, "share.idle", run=found.name))],
        "events": [(grouped(found.events), "quiet")],
        "state": [(f"so far {share * 100:.0f} %", "warn")] if share is not None else [],
    }  # fmt: skip


def _legend(table: Table, columns: tuple[Placed, ...], frame: Frame) -> list[Piece]:
    start = next((place.start for place in columns if place.column.name == "bar"), 0)
    has = {name for found in table.rows for name, share in found.share.items() if share}
    shown = [name for name in SHARES if name in has or name in ("compute", "idle")]
    keys: list[Piece] = []
    for index, name in enumerate(shown):
        keys += [("  " if index else "", "quiet"), (texture(name, frame.look), name), (f" {name}", "quiet")]
    tail: list[Piece] = [(f"  shares of {_whole(table)}", "faint")]
    line = [*keys, *tail] if start + cells([*keys, *tail]) <= frame.width else keys
    return [(" " * max(min(start, frame.width - cells(line)), 1), "text"), *line]


def _whole(table: Table) -> str:
    """What the bars are a share of."""
    kinds = {found.is_stepped for found in table.rows if found.mean}
    if kinds == {True}:
        return "the mean complete step over all ranks"
    return "the traced time, mean over ranks" if kinds == {False} else "a step, or of the traced time without steps"


def subject(table: Table | None, files: int) -> str:
    """``2 runs · 8 files``."""
    runs = f"{counted(len(table.rows), 'run')} · " if table is not None and len(table.rows) > 1 else ""
    return f"{runs}{counted(files, 'file')}"


PANEL = Panel(
    name="traces",
    title="traces",
    number=1,
    promise="What was traced, and where its time goes.",
    question=question,
    draw=draw,
    depends=lambda scene: (tuple(version(run) for run in scene.runs), tuple(scene.partial.items()), scene.is_read),
    is_overall=True,
    of=("traces",),
    help=about.HELP,
    data=lambda table: about.runs(table.rows, table.partial),
)
