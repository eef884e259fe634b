"""Draws a rank's idle time as a row, and what it is made of as a small table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from meshscope.analysis.host_activity import DATA, LAUNCHING, MEMORY, OPERATORS, OPTIMIZER, PYTHON, SYNC
from meshscope.analysis.idle import QUEUED, UNKNOWN, WAIT
from meshscope.analysis.idle_shares import COLLECTIVE, COPY, ENDS, HOST, RankIdle
from meshscope.analysis.launches import SHORT_NS, Launches
from meshscope.ui.look import Look
from meshscope.ui.marks.bars import length, stacked
from meshscope.ui.marks.cells import Line, Piece, clip
from meshscope.ui.marks.cited import Cited
from meshscope.ui.marks.table import Column, Placed, placed, rows
from meshscope.ui.panel import Frame
from meshscope.units import UNKNOWN as NOT_KNOWN
from meshscope.units import Unit, counted, duration, durations, milliseconds, percent, printable, ratio, time_unit

_RANK = Column("rank", " rank", 5)
_BAR = Column("bar", "why", 20, is_text=True, grows=True, most=120, least=14, gap=1)
_IDLE = Column("idle", "idle ms", 7, gap=1)
_FEEDING = (
    Column("launch", "launch", 8, rank=2, gap=1),
    Column("p95", "p95", 8, rank=3, gap=1),
    Column("queue", "queued", 7, rank=4, gap=1),
    Column("short", f"< {duration(SHORT_NS)}".replace(".0", ""), 8, rank=4, gap=1),
)
DIVIDER = "│"
Parts = Sequence[tuple[str, float]]

_WIDE, _FAIR = 96, 64
FEW = 4
"""So many ranks are shown in their order; of more the most idle come first."""

_WHAT = Column("what", " cause", 24, is_text=True, grows=True, most=44, least=16)
_PART = (Column("bar", "", 8, rank=1, is_text=True, grows=True, most=40),
         Column("ns", "ms", 8), Column("share", "share", 7))  # fmt: skip

_CAUSES = {
    LAUNCHING: "host in launch calls",
    OPERATORS: "host in operators",
    PYTHON: "host in Python, or unrecorded",
    OPTIMIZER: "host in the optimizer",
    SYNC: "host synchronizes",
    MEMORY: "host allocates memory",
    DATA: "host loads data",
    WAIT: "recorded wait",
    QUEUED: "launched, not started yet",
    UNKNOWN: "launch not in the trace",
    ENDS: "before the first, after the last work",
}
_BESIDE = {
    COLLECTIVE: "waits for a collective",
    COPY: "waits for a copy",
    HOST: "next kernel not launched yet",
    UNKNOWN: "launch not in the trace",
}


def columns_of(ranks: Sequence[RankIdle], width: int) -> list[Column]:
    """Without what launches tell where no trace shows any; where there is little room, the bar has it."""
    is_fed = any(one.launches is not None for one in ranks)
    share = Column("share", "of step" if any(one.steps for one in ranks) else "share", 7, gap=1)
    bar = replace(_BAR, heading="why; most idle first") if len(ranks) > FEW else _BAR
    most = (4 if width >= _WIDE else 2 if width >= _FAIR else 0) if is_fed else 0
    queued = max((len(_queued(one.launches)) for one in ranks if one.launches is not None), default=0)
    unit = latency_unit(ranks).name
    fed = [
        replace(one, width=max(one.width, queued))
        if one.name == "queue"
        else replace(one, heading=f"{one.heading} {unit}", width=len(one.heading) + 4)
        if one.name in ("launch", "p95")
        else one
        for one in _FEEDING[:most]
    ]
    return [_RANK, bar, _IDLE, share, *fed]


def latency_unit(ranks: Sequence[RankIdle]) -> Unit:
    """What times from a launch to its start are written in, of all ranks together."""
    found = [one.launches.latency for one in ranks if one.launches is not None]
    return time_unit(ns for one in found for ns in (one.median_ns, one.p95_ns))


def _queued(found: Launches) -> str:
    """The median and the most."""
    return f"{found.depth_median:.0f}/{found.depth_max}"


def rank_row(
    one: RankIdle, parts: tuple[Parts, Parts], longest: float, unit: Unit, columns: tuple[Placed, ...], frame: Frame,
    *, is_chosen: bool,
) -> dict[str, list[Piece]]:  # fmt: skip
    """What stands in the columns. ``parts``, idle and beside, are drawn against ``longest``, the most that a rank has;
    ``unit`` is that of its launches."""
    text = "strong" if is_chosen else "text"
    width = next(place.width for place in columns if place.column.name == "bar")
    return {
        "rank": [("▸" if is_chosen else " ", "accent"), (f"{one.rank:>4}", text)],
        "bar": _bar(parts, longest, width, frame.look),
        "idle": [(milliseconds(one.idle_ns), Cited(text, "idle", rank=one.rank))],
        "share": [(percent(ratio(one.idle_ns, one.span_ns)), Cited(text, "share.idle", rank=one.rank))],
        **_fed(one.launches, unit),
    }


def _bar(parts: tuple[Parts, Parts], longest: float, width: int, look: Look) -> list[Piece]:
    """Idle time, a line, and what runs beside no compute."""
    idle, beside = parts
    first, second = sum(ns for _, ns in idle), sum(ns for _, ns in beside)
    if not second > 0:
        return stacked([(meaning, ratio(ns, longest)) for meaning, ns in idle], width, look)
    room = max(width - 1, 0)
    cut = min(round(ratio(first, longest) * room), room)
    end = min(max(round(ratio(first + second, longest) * room), cut), room)
    pieces = [*_filled(idle, first, cut, look), (DIVIDER, "text"), *_filled(beside, second, end - cut, look)]
    return [*pieces, (" " * (room - end), "text")]


def _filled(parts: Parts, whole: float, width: int, look: Look) -> list[Piece]:
    return stacked([(meaning, ratio(ns, whole)) for meaning, ns in parts], width, look) if width > 0 else []


def _fed(found: Launches | None, unit: Unit) -> dict[str, list[Piece]]:
    if found is None:
        return {name: [(NOT_KNOWN, "quiet")] for name in ("launch", "p95", "queue", "short")}
    return {
        "launch": [(unit.figure(found.latency.median_ns), Cited("text", "launches.latency", rank=found.rank))],
        "p95": [(unit.figure(found.latency.p95_ns), Cited("text", "launches.latency.p95", rank=found.rank))],
        "queue": [(_queued(found), "text")],
        "short": [(percent(ratio(found.short, found.kernels)), "text")],
    }


def detail(one: RankIdle, frame: Frame) -> list[Line]:
    """What the rank's idle time is made of, what it waits for beside, and how its host feeds it."""
    each = "a step" if one.steps else "traced"
    head = f" rank {one.rank}: {milliseconds(one.idle_ns)} ms idle {each}"
    if one.why:
        return [[(head, "strong")], [(clip(f" Why is not known: {printable(one.why)}.", frame.width), "quiet")]]
    columns = placed((_WHAT, *_PART), frame.width)
    longest = max([*one.causes.values(), *one.beside.values(), 1.0])
    lines: list[Line] = [[(clip(head + ", of which", frame.width), "strong")]]
    causes = [
        _part(_CAUSES[cause], ns, one.idle_ns, longest, _cited(one, cause), columns, frame)
        for cause, ns in sorted(one.causes.items(), key=lambda item: -item[1])
    ]
    lines += rows(columns, causes)
    total_ns = sum(one.beside.values())
    if total_ns:
        said = f" and {milliseconds(total_ns)} ms {each} in which only communication or copies run, of which"
        lines.append([(clip(said, frame.width), "strong")])
        beside = [
            _part(_BESIDE[name], ns, total_ns, longest, "text", columns, frame)
            for name, ns in sorted(one.beside.items(), key=lambda item: -item[1])
        ]
        lines += rows(columns, beside)
    return [*lines, *_feeding(one, frame)]


def _cited(one: RankIdle, cause: str) -> str:
    """What is at the ends of a trace is no cause of the analysis."""
    return (
        "text" if cause == ENDS else Cited("text", f"idle.{cause}" + (".per_step" if one.steps else ""), rank=one.rank)
    )


def _part(
    what: str, ns: float, of_ns: float, longest: float, role: str, columns: tuple[Placed, ...], frame: Frame
) -> dict[str, list[Piece]]:
    width = next((place.width for place in columns if place.column.name == "bar"), 0)
    return {
        "what": [("  " + what, "text")],
        "bar": length(ratio(ns, longest), width, "gauge", frame.look),
        "ns": [(milliseconds(ns), role)],
        "share": [(percent(ratio(ns, of_ns)), "quiet")],
    }


def _feeding(one: RankIdle, frame: Frame) -> list[Line]:
    """How launches keep up, over everything traced."""
    found = one.launches
    if found is None:
        return []
    median, p95 = durations(found.latency.median_ns, found.latency.p95_ns)
    starts = f"{median} from a launch to its start (median; p95 {p95})"
    queue = f"{found.depth_median:.0f} queued when a launch begins (median; most {found.depth_max})"
    empty = f"{percent(found.empty_frac)} of {counted(found.calls, 'launch', 'launches')} find nothing queued"
    late = f"{found.late_starts} of {counted(one.gaps, 'gap')} end with work launched after the gap began"
    short = f"{found.short} of {counted(found.kernels, 'kernel')} last under {duration(SHORT_NS)}"
    said = (starts, f"{queue}; {empty}", late, short)
    return [[(clip(f" {line}", frame.width), "quiet")] for line in said]
