"""Draws a rank's idle time as a row, and what it is made of as a small table."""

from __future__ import annotations

from collections.abc import Sequence

from meshscope.analysis.host_activity import DATA, LAUNCHING, MEMORY, OPERATORS, OPTIMIZER, PYTHON, SYNC
from meshscope.analysis.idle import QUEUED, UNKNOWN, WAIT
from meshscope.analysis.idle_shares import COLLECTIVE, COPY, ENDS, HOST, RankIdle
from meshscope.analysis.launches import SHORT_NS, Launches
from meshscope.ui.marks.bars import length, stacked
from meshscope.ui.marks.cells import Line, Piece, clip
from meshscope.ui.marks.cited import Cited
from meshscope.ui.marks.table import Column, Placed, placed, row
from meshscope.ui.panel import Frame
from meshscope.units import UNKNOWN as NOT_KNOWN
from meshscope.units import counted, duration, milliseconds, percent, printable, ratio

_RANK = Column("rank", " rank", 5)
_BAR = Column("bar", "why it does not compute", 8, is_text=True, grows=True, most=120, least=6, gap=1)
_IDLE, _SHARE = Column("idle", "idle ms", 7, gap=1), Column("share", "share", 7, gap=1)
_FEEDING = (
    Column("launch", "to start", 8, rank=2, gap=1),
    Column("p95", "p95", 8, rank=3, gap=1),
    Column("queue", "queued", 7, rank=4, gap=1),
    Column("late", "late", 7, rank=4, gap=1),
    Column("short", "short", 7, rank=4, gap=1),
)
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
    UNKNOWN: "next kernel's launch unknown",
}


def columns_of(ranks: Sequence[RankIdle]) -> list[Column]:
    """Without what launches tell where no trace shows any."""
    fed = [one.launches for one in ranks if one.launches is not None]
    return [_RANK, _BAR, _IDLE, _SHARE, *(_FEEDING if fed else ())]


def rank_row(
    one: RankIdle, parts: Sequence[tuple[str, float]], longest: float, columns: tuple[Placed, ...], frame: Frame,
    *, is_chosen: bool,
) -> list[Piece]:  # fmt: skip
    """``parts`` are drawn against ``longest``, the most that a rank has."""
    text = "strong" if is_chosen else "text"
    width = next(place.width for place in columns if place.column.name == "bar")
    content: dict[str, list[Piece]] = {
        "rank": [("▸" if is_chosen else " ", "accent"), (f"{one.rank:>4}", text)],
        "bar": stacked([(meaning, ratio(ns, longest)) for meaning, ns in parts], width, frame.look),
        "idle": [(milliseconds(one.idle_ns), Cited(text, "idle", rank=one.rank))],
        "share": [(percent(ratio(one.idle_ns, one.span_ns)), Cited(text, "share.idle", rank=one.rank))],
        **_fed(one.launches, one.gaps),
    }
    return row(columns, content)


def _fed(found: Launches | None, gaps: int) -> dict[str, list[Piece]]:
    if found is None:
        return {name: [(NOT_KNOWN, "quiet")] for name in ("launch", "p95", "queue", "late", "short")}
    return {
        "launch": [(duration(found.latency.median_ns), "text")],
        "p95": [(duration(found.latency.p95_ns), "text")],
        "queue": [(f"{found.depth_median:.0f}/{found.depth_max}", "text")],
        "late": [(percent(ratio(found.late_starts, gaps)), "text")],
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
    for cause, ns in sorted(one.causes.items(), key=lambda item: -item[1]):
        lines.append(_part(_CAUSES[cause], ns, one.idle_ns, longest, _cited(one, cause), columns, frame))
    total_ns = sum(one.beside.values())
    if total_ns:
        said = f" and {milliseconds(total_ns)} ms in which only communication or copies run, as it"
        lines.append([(clip(said, frame.width), "strong")])
        for name, ns in sorted(one.beside.items(), key=lambda item: -item[1]):
            lines.append(_part(_BESIDE[name], ns, total_ns, longest, "text", columns, frame))
    return [*lines, *_feeding(one, frame)]


def _cited(one: RankIdle, cause: str) -> str:
    """Causes are explained over whole windows: where there is a mean step, its figures are others."""
    return "text" if one.steps or cause == ENDS else Cited("text", f"idle.{cause}", rank=one.rank)


def _part(
    what: str, ns: float, of_ns: float, longest: float, role: str, columns: tuple[Placed, ...], frame: Frame
) -> list[Piece]:
    width = next((place.width for place in columns if place.column.name == "bar"), 0)
    content: dict[str, list[Piece]] = {
        "what": [("  " + what, "text")],
        "bar": length(ratio(ns, longest), width, "gauge", frame.look),
        "ns": [(milliseconds(ns), role)],
        "share": [(percent(ratio(ns, of_ns)), "quiet")],
    }
    return row(columns, content)


def _feeding(one: RankIdle, frame: Frame) -> list[Line]:
    """How launches keep up, over everything traced."""
    found = one.launches
    if found is None:
        return []
    starts = (
        f"{duration(found.latency.median_ns)} from a launch to its start (median; p95 {duration(found.latency.p95_ns)})"
    )
    queue = f"{found.depth_median:.0f} queued when a launch begins (median; most {found.depth_max}), nothing before"
    late = f"{found.late_starts} of {counted(one.gaps, 'gap')} end with work launched after the gap began"
    short = f"{found.short} of {counted(found.kernels, 'kernel')} last under {duration(SHORT_NS)}"
    said = (starts, f"{queue} {percent(found.empty_frac)} of {counted(found.calls, 'launch', 'launches')}", late, short)
    return [[(clip(f" {line}", frame.width), "quiet")] for line in said]
