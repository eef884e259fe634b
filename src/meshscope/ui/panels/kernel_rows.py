"""Draws groups of device work by time: a reading, a table in which one row is chosen, and what is known of that."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from rich.cells import cell_len

from meshscope.ui.marks.bars import length, stacked
from meshscope.ui.marks.cells import Line, Piece, cells, clip, longest, wrapped
from meshscope.ui.marks.cited import Cited
from meshscope.ui.marks.figures import Written, alike
from meshscope.ui.marks.table import Column, Placed, heading, placed
from meshscope.ui.marks.table import rows as table_rows
from meshscope.ui.palette import texture
from meshscope.ui.panel import Frame
from meshscope.ui.words import whole_percent
from meshscope.units import MILLISECONDS, UNKNOWN, Unit, milliseconds, percent, printable, ratio, time_unit

_NAME = Column("name", " kernel or operator", 26, is_text=True, grows=True, least=17, yields=1)
_BAR = Column("bar", "", 8, rank=5, is_text=True, grows=True, most=60, yields=2)
_SHARE = Column("share", "share", 7)
_CALLS = Column("calls", "calls", 6, rank=1)
_LENGTHS = (Column("mean", "mean", 8, rank=4), Column("p50", "p50", 8, rank=2), Column("p95", "p95", 8, rank=2))
"""In the order of a row's lengths."""
_TIME_WIDTH = 8
_MOST_NAME_LINES = 4
_KIND = Column("kind", "kind", 10, rank=3, is_text=True)
_HOME = Column("home", "mostly in", 18, rank=4, is_text=True, grows=True, least=12)
_BACKWARD = Column("backward", "backward", 8, rank=1)

_TALL = 9
"""From here on there is room to say what the columns are."""

_ROOMY = 14
"""From here on there is room for what is known of the chosen row."""

_FIRST = 5
_LONGEST_SAID = 36
_SIGNATURE = re.compile(r"^void ((\(anonymous namespace\)|\w+)::)*(?=\w)")
_NAMESPACES = re.compile(r"\b(at::native|at|c10)::|\(anonymous namespace\)::")
_ARGUMENTS = re.compile(r"[<(].*", re.DOTALL)


@dataclass(frozen=True)
class Row:
    """``ns`` and ``calls`` are of the mean step of a rank, or of all that was traced; ``frac`` is of the grouping's
    ``of_ns``. ``lengths_ns`` are mean, median and 95th percentile of single calls, NaN where there are none. ``cites``
    are the numbers of its columns that can be explained.
    ``exposed_frac`` is the share of a collective's time beside no compute.
    """

    name: str
    ns: float
    frac: float
    calls: float = math.nan
    lengths_ns: tuple[float, float, float] = (math.nan, math.nan, math.nan)
    kind: str = ""
    home: str = ""
    backward_frac: float = math.nan
    exposed_frac: float = math.nan
    about: tuple[str, ...] = ()
    cites: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Grouping:
    """Rows, the longest first (phases as a step has them); ``of_ns`` is what shares are of.

    ``is_union``: work that runs at once counts once within a row.
    """

    by: str
    noun: str
    rows: tuple[Row, ...]
    of_ns: float
    is_stepped: bool
    is_union: bool = False

    # Of all rows, whichever are seen: worked out once, not with every drawing.

    @cached_property
    def unit(self) -> Unit:
        """What the lengths of single calls are written in."""
        return time_unit(length_ns for one in self.rows for length_ns in one.lengths_ns)

    @cached_property
    def widest_name(self) -> int:
        return max((cell_len(printable(brief(one.name))) for one in self.rows), default=0)

    @cached_property
    def widest_home(self) -> int:
        return max((cell_len(printable(one.home)) for one in self.rows), default=0)


def lines(found: Grouping, others: Sequence[str], frame: Frame) -> list[Line]:
    """``others`` are the ways to group that come next."""
    at = min(frame.picked, max(len(found.rows) - 1, 0))
    below = _below(found, others, frame)
    said = wrapped(printable(reading(found)), max(frame.width - 1, 1), 1 if frame.height < _TALL - 2 else 2)
    above: list[Line] = [[(" " + line, "text")] for line in said]
    room = frame.height - len(above) - 1 - len(below)
    if room < 1 or not found.rows:
        return [*above, *below]
    about = _about(found.rows[at], frame) if frame.height >= _ROOMY else []
    columns = placed(_columns(found), frame.width)
    rows = _rows(found, at, room - len(about), columns, frame)
    gap: list[Line] = [[]] if len(rows) + len(about) < room and (about or below) else []
    return [*above, heading(columns), *rows, *gap, *about, *below]


def reading(found: Grouping) -> str:
    """What takes most, as a share of what."""
    if not found.rows:
        return f"No device work stands in a known {found.by}."
    first = max(found.rows, key=lambda one: one.ns)
    name = clip(printable(briefest(first.name)), _LONGEST_SAID) or "(no name)"
    each = " a step" if found.is_stepped else " traced"
    of = "of the phases' time" if found.is_union else "of device work"
    said = f"{name} takes {_ms(first.ns)} of {_ms(found.of_ns)} ms {of}{each} ({percent(first.frac)})"
    known_ns = sum(one.ns for one in found.rows)
    if known_ns < 0.999 * found.of_ns:
        return f"{said}; {_ms(found.of_ns - known_ns)} ms are in no known {found.by}"
    if len(found.rows) > 2 * _FIRST and not found.is_union:
        share = ratio(sum(one.ns for one in found.rows[:_FIRST]), found.of_ns)
        return f"{said}; the first {_FIRST} of {len(found.rows)} {found.noun} {percent(share)}"
    return said


def _ms(value_ns: float) -> str:
    return milliseconds(value_ns)


def brief(name: str) -> str:
    """A name in which what differs comes sooner: without the namespaces of a C++ signature, or the text of an HLO."""
    if name.startswith("%"):
        return name.partition(" = ")[0].removeprefix("%")
    return _NAMESPACES.sub("", _SIGNATURE.sub("", name)) if name.startswith("void ") else name


def briefest(name: str) -> str:
    """Without its arguments as well."""
    return _ARGUMENTS.sub("", brief(name)) or name


def _columns(found: Grouping) -> list[Column]:
    """Without what no row here has."""
    time = Column("ns", "ms/step" if found.is_stepped else "ms", _TIME_WIDTH)
    title = _NAME if found.by == "name" else replace(_NAME, heading=f" {found.by}")
    # As wide as what they hold, where there is room for that; bars get what is left.
    columns = [replace(title, most=max(_NAME.width, found.widest_name + 1)), _BAR, time, _SHARE]
    if any(not math.isnan(one.calls) for one in found.rows):
        columns.append(_CALLS)
    if any(not math.isnan(one.lengths_ns[0]) for one in found.rows):
        unit = found.unit.name
        mean, *others = (replace(one, heading=f"{one.heading} {unit}") for one in _LENGTHS)
        columns += [*others, mean]
    if any(one.kind for one in found.rows):
        columns.append(_KIND)
    if any(one.home for one in found.rows):
        columns.append(replace(_HOME, most=max(_HOME.width, found.widest_home)))
    if any(not math.isnan(one.backward_frac) for one in found.rows):
        columns.append(_BACKWARD)
    return columns


def _rows(grouping: Grouping, at: int, room: int, columns: tuple[Placed, ...], frame: Frame) -> list[Line]:
    """As many as there is room for, the chosen one among them; the last line tells of those that follow."""
    rows = grouping.rows
    longest = max((one.ns for one in rows), default=0.0)
    seen = max(room - 1, 1) if len(rows) > room else max(room, 1)
    first = min(max(at - seen + 1, 0), max(len(rows) - seen, 0))
    shown = list(enumerate(rows))[first : first + seen]
    writing = _writing([one for _, one in shown], grouping.unit)
    names = _names([one for _, one in shown], columns, room)
    drawn = [
        _row(one, name[0], writing, columns, longest, frame, is_chosen=number == at)
        for (number, one), name in zip(shown, names, strict=True)
    ]
    found: list[Line] = []
    for line, (_, *more) in zip(table_rows(columns, drawn), names, strict=True):
        found += [line, *([("   " + text, "quiet")] for text in more)]
    if seen < len(rows) and room > 1:
        rest = [one for number, one in enumerate(rows) if not first <= number < first + seen]
        found.append([(f"   {len(rest)} more: {_ms(sum(one.ns for one in rest))} ms together", "quiet")])
    return found


def _names(shown: Sequence[Row], columns: tuple[Placed, ...], room: int) -> list[list[str]]:
    """Each name in lines: whole where there are lines enough for all of them, else cut to one."""
    width = max(next(place.width for place in columns if place.column.name == "name") - 1, 0)
    names = [printable(brief(one.name)) or "(no name)" for one in shown]
    if width > _NAME.least:
        folded = [[first, *wrapped(name[len(first) :], width - 2, _MOST_NAME_LINES)]
                  for name in names for first in wrapped(name, width, 2)[:1]]  # fmt: skip
        if sum(map(len, folded)) <= room:
            return folded
    return [[clip(name, width)] for name in names]


@dataclass(frozen=True)
class _Writing:
    """How times are written: those of a step, and those of single calls (mean, median and 95th percentile)."""

    time: Written
    lengths: tuple[Written, ...]


def _writing(shown: Sequence[Row], unit: Unit) -> _Writing:
    time = alike((one.ns for one in shown), MILLISECONDS, _TIME_WIDTH, is_bare=True)
    each = zip(_LENGTHS, zip(*(one.lengths_ns for one in shown), strict=True), strict=True)
    return _Writing(time, tuple(alike(values, unit, column.width, is_bare=True) for column, values in each))


def _row(
    one: Row,
    name: str,
    writing: _Writing,
    columns: tuple[Placed, ...],
    longest: float,
    frame: Frame,
    *,
    is_chosen: bool,
) -> dict[str, list[Piece]]:
    widths = {place.column.name: place.width for place in columns}
    text = "strong" if is_chosen else "text"
    mean, median, p95 = (write(ns) for write, ns in zip(writing.lengths, one.lengths_ns, strict=True))
    return {
        "name": [("▸" if is_chosen else " ", "accent"), (name, text)],
        "bar": _bar(one, ratio(one.ns, longest), widths.get("bar", 0), frame),
        "ns": [(writing.time(one.ns), _role(one, "ns", text))],
        "share": [(percent(one.frac), _role(one, "share", text))],
        "calls": [(calls(one.calls), _role(one, "calls", "text"))],
        "p50": [(median, _role(one, "p50", "text"))],
        "p95": [(p95, _role(one, "p95", "text"))],
        "mean": [(mean, _role(one, "mean", "quiet"))],
        "kind": [(one.kind, "quiet")],
        "home": [(printable(one.home), "quiet")],
        "backward": [(whole_percent(one.backward_frac), "text")],
    }


def _bar(one: Row, frac: float, width: int, frame: Frame) -> list[Piece]:
    """In the texture of what it is; of a collective what is hidden and what is exposed. A little is not nothing."""
    if one.kind not in ("collective", "copy"):
        return length(frac, width, "compute" if one.kind else "gauge", frame.look)
    least = max(frac, 1 / width) if width and frac > 0 else frac
    exposed = 1.0 if math.isnan(one.exposed_frac) else one.exposed_frac
    parts = (
        [("copy", least)] if one.kind == "copy" else [("hidden", least * (1 - exposed)), ("exposed", least * exposed)]
    )
    return stacked(parts, width, frame.look)


def _legend(found: Grouping, frame: Frame) -> list[Piece]:
    """The textures of the bars, where there is more than one."""
    kinds = {one.kind for one in found.rows}
    if not kinds & {"collective", "copy"}:
        return []
    known = [("compute", "compute")] if "compute" in kinds else []
    known += [("hidden", "hidden"), ("exposed", "exposed")] if "collective" in kinds else []
    known += [("copy", "copy")] if "copy" in kinds else []
    return [piece for meaning, word in known
            for piece in ((f"  {texture(meaning, frame.look)}", meaning), (f" {word}", "quiet"))]  # fmt: skip


def _role(one: Row, column: str, role: str) -> str:
    return Cited(role, one.cites[column]) if column in one.cites else role


def calls(value: float) -> str:
    """How often in a step: with decimals where it is no whole number."""
    if math.isnan(value):
        return UNKNOWN
    if value >= 99.95 or value == round(value):
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 0.95 else f"{value:.2f}"


def _about(one: Row, frame: Frame) -> list[Line]:
    """The whole name and what else is known of the chosen row."""
    width = max(frame.width - 1, 1)
    name: list[Line] = [[(" " + line, "strong")] for line in wrapped(printable(one.name), width, 2)]
    told: list[Line] = [
        [(" " + line, "quiet")] for said in one.about if said for line in wrapped(printable(said), width, 2)
    ]
    return [*name, *told]


def _below(found: Grouping, others: Sequence[str], frame: Frame) -> list[Line]:
    """How the rows are grouped and what the columns are of."""
    if frame.height < _TALL:
        return []
    line: list[Piece] = [(f" by {found.by}", "quiet")]
    if others:
        line += [("  g", "key"), (f" by {others[0]}", "quiet")]
    if len(found.rows) > 1 and frame.width >= 60:
        line += [("  ↑↓", "key"), (" chooses", "quiet")]
    legend = _legend(found, frame)
    if any(place.column.name == "bar" for place in placed(_columns(found), frame.width)):
        line += legend if cells([*line, *legend]) <= frame.width else []
    of = longest([f" {words}" for words in _of(found)], frame.width)
    return [line, [(clip(of, frame.width), "faint")]] if frame.height >= _ROOMY else [line]


def _of(found: Grouping) -> tuple[str, ...]:
    """What the columns are of, and the same in fewer words."""
    each = "per step and rank" if found.is_stepped else "of all that was traced"
    if found.is_union:
        return f"ms: {each}; what runs at once in a phase counts once", f"ms: {each}"
    if found.by != "name":
        return f"ms: {each}; what runs at once is added up", f"ms: {each}, added up"
    full = f"ms, calls: {each}; what runs at once is added up; p50, p95, mean: of all calls traced"
    return full, f"ms, calls: {each}, added up; p50, p95, mean: of all calls", f"ms, calls: {each}, added up"
