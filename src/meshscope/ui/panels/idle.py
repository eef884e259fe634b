"""Why devices do not compute: idle by what they wait for, beside communication and copies too, and how they are fed."""

from __future__ import annotations

from dataclasses import dataclass, replace

from textual.strip import Strip

from meshscope.analysis.host_activity import DATA
from meshscope.analysis.idle import QUEUED, UNKNOWN
from meshscope.analysis.idle_shares import (
    BESIDE,
    COLLECTIVE,
    COPY,
    ENDS,
    GROUPS,
    HOST,
    NOTHING,
    PEERS,
    IdleShares,
    RankIdle,
    idle_shares,
    mean,
)
from meshscope.ui.about import idle as about
from meshscope.ui.marks.cells import Line, Piece, cells, strips, wrapped
from meshscope.ui.marks.table import Placed, heading, placed
from meshscope.ui.marks.table import rows as table_rows
from meshscope.ui.palette import texture
from meshscope.ui.panel import Frame, Fresh, Panel, note
from meshscope.ui.panels.idle_rows import DIVIDER, FEW, columns_of, detail, latency_unit, rank_row
from meshscope.ui.profiled import UNASKED, Profiled, depends, empty, profiled, suits
from meshscope.ui.scene import Scene
from meshscope.units import counted, milliseconds, percent, printable, ranges, ratio, reach

MEANINGS = {
    HOST: ("host", "host late"),
    DATA: ("data", "data"),
    PEERS: ("wait", "recorded wait"),
    QUEUED: ("launch", "queued"),
    UNKNOWN: ("idle", "unknown"),
    ENDS: ("late", "ends of trace"),
    COLLECTIVE: ("exposed", "waits for a collective"),
    COPY: ("copy", "waits for a copy"),
}
"""Of each group of idle time, and of what is waited for beside, its texture and what it is called."""

_DETAILED = 12
"""From here on there is room for the causes of the chosen rank."""

_FEWEST_ROWS, _FEWEST_ABOUT = 4, 3
_LEAST_FRAC = 0.005
"""Less than this is too little to be named at first sight."""

_BRIEF = 60
"""Under this width only the most important is said."""


@dataclass(frozen=True)
class Idles:
    shares: IdleShares = NOTHING
    whole: RankIdle | None = None
    profiled: Profiled = UNASKED


def question(scene: Scene) -> Idles:
    """The idle time of every rank of the run that is looked at, the most idle first where they are many."""
    run = scene.run
    if run is None:
        return Idles()
    found = idle_shares(run)
    if len(found.ranks) > FEW:
        found = replace(found, ranks=tuple(sorted(found.ranks, key=lambda one: (-one.idle_ns, one.rank))))
    return Idles(found, mean(found.ranks) if found.ranks else None, profiled(scene))


def count(answer: Idles) -> int:
    return len(answer.shares.ranks)


def draw(answer: Idles, frame: Frame) -> list[Strip]:
    """The reading, a row for each rank, and for the chosen one what its idle time is made of."""
    ranks = answer.shares.ranks
    if answer.whole is None:
        return note(empty(answer.profiled, PANEL.promise, what="why devices were idle", fills=_FILLS), frame)
    at = min(frame.picked, len(ranks) - 1)
    words = reading(answer, is_brief=frame.width < _BRIEF)
    said = wrapped(printable(words), max(frame.width - 1, 1), 2 if frame.height < 9 else 4)
    lines: list[Line] = [[(" " + line, "text")] for line in said]
    legend = _legend(ranks, frame)
    room = frame.height - len(lines) - 1 - len(legend)
    if room < 1:
        return strips(lines, frame.width, frame.height, frame.look)
    about = detail(ranks[at], frame) if frame.height >= _DETAILED else []
    rows_room = _rows_room(len(ranks), len(about), room)
    columns = placed(columns_of(ranks, frame.width), frame.width)
    rows = _rows(ranks, at, rows_room, columns, frame)
    left = room - len(rows) - 1
    about = [[], *about[:left]] if left > 1 else []
    return strips([*lines, heading(columns), *rows, *legend, *about], frame.width, frame.height, frame.look)


def _rows_room(ranks: int, about: int, room: int) -> int:
    """How many lines rows get: what is left by what there is to say of the chosen one, or some of that, or all."""
    fewest = min(ranks, _FEWEST_ROWS, room)
    rest = max(room - about - 1, fewest)
    return rest if about and room - rest > _FEWEST_ABOUT else room


def _rows(ranks: tuple[RankIdle, ...], at: int, room: int, columns: tuple[Placed, ...], frame: Frame) -> list[Line]:
    """As many as there is room for, the chosen one among them; the last line tells of the rest."""
    longest = max(one.idle_ns + sum(one.beside.values()) for one in ranks)
    seen = max(room - 1, 1) if len(ranks) > room else max(room, 1)
    first = min(max(at - seen + 1, 0), max(len(ranks) - seen, 0))
    shown = list(enumerate(ranks))[first : first + seen]
    unit = latency_unit(ranks)
    drawn = [
        rank_row(one, (idle_parts(one), beside_parts(one)), longest, unit, columns, frame, is_chosen=number == at)
        for number, one in shown
    ]
    lines: list[Line] = [*table_rows(columns, drawn)]
    rest = [one for number, one in enumerate(ranks) if not first <= number < first + seen]
    if rest and room > 1:
        idle_ns = [one.idle_ns for one in rest]
        least_to_most = reach(milliseconds(min(idle_ns)), milliseconds(max(idle_ns)))
        words = f"   {len(rest)} more: {least_to_most} ms idle each"
        lines.append([(words, "quiet")])
    return lines


def idle_parts(one: RankIdle) -> list[tuple[str, float]]:
    """Textures and times of a rank's idle time, by group."""
    if one.why:
        return [(MEANINGS[UNKNOWN][0], one.idle_ns)]
    return [(MEANINGS[group][0], one.of(group)) for group in GROUPS]


def beside_parts(one: RankIdle) -> list[tuple[str, float]]:
    """The same of the time in which only communication or copies run."""
    return [(MEANINGS[name][0], one.beside.get(name, 0.0)) for name in BESIDE]


def word(group: str, device_kind: str) -> str:
    """What a group is called: a CPU rank launches nothing, its thread just does something else than compute."""
    return "not in operators" if group == HOST and device_kind == "cpu" else MEANINGS[group][1]


def reading(answer: Idles, *, is_brief: bool = False) -> str:
    """How idle devices are in the mean, and for what; then what they wait for beside communication and copies."""
    whole, ranks = answer.whole, answer.shares.ranks
    assert whole is not None
    each = "a step" if whole.steps else "traced"
    over = f", mean of {counted(len(ranks), 'rank')}" if len(ranks) > 1 and not is_brief else ""
    share = percent(ratio(whole.idle_ns, whole.span_ns))
    said = f"Idle {milliseconds(whole.idle_ns)} of {milliseconds(whole.span_ns)} ms {each} ({share}{over})"
    if whole.why:
        return f"{said}. Cannot say why: {whole.why}"
    material = [group for group in GROUPS if whole.of(group) >= _LEAST_FRAC * whole.idle_ns]
    groups = sorted(material, key=lambda group: -whole.of(group))
    parts = [f"{word(group, whole.device_kind)} {milliseconds(whole.of(group))} ms" for group in groups[:2]]
    said += f": {', '.join(parts)}" if parts else ""
    most = max(whole.beside, key=lambda name: whole.beside[name], default="")
    if most and not is_brief:
        total_ns = sum(whole.beside.values())
        said += f". Another {milliseconds(total_ns)} ms only communication or copies run: "
        said += f"{MEANINGS[most][1]} {milliseconds(whole.beside[most])} ms"
    if answer.shares.others:
        said += f". Rank {ranges(answer.shares.others)}: no complete step"
    return said


def _legend(ranks: tuple[RankIdle, ...], frame: Frame) -> list[Line]:
    """The textures that are drawn, on as many lines as they need."""
    least_ns = _LEAST_FRAC * max(one.idle_ns + sum(one.beside.values()) for one in ranks)
    drawn = {meaning for one in ranks for meaning, ns in (*idle_parts(one), *beside_parts(one)) if ns > least_ns}
    told = [
        [(texture(meaning, frame.look), meaning), (f" {word(group, ranks[0].device_kind)} ", "quiet")]
        for group, (meaning, _) in MEANINGS.items()
        if meaning in drawn
    ]
    if any(one.beside for one in ranks):
        told.append([(DIVIDER, "text"), (" only communication or copies run", "quiet")])
    lines: list[list[Piece]] = [[]]
    for pieces in told:
        if lines[-1] and cells([*lines[-1], *pieces]) + 1 > frame.width:
            lines.append([])
        lines[-1] += [(" ", "text"), *pieces]
    return list(lines[: 1 if frame.height < 9 else 3]) if drawn and frame.height >= 6 else []


_FILLS = "how long each device is idle, and what it waits for"


def _fresh(answer: Idles) -> Fresh:
    return answer.profiled.fresh if answer.whole is not None else Fresh()


PANEL = Panel(
    name="idle",
    title="idle & launches",
    number=13,
    key="I",
    promise="How long each device is idle and for what: the host, data, other ranks, a copy; how launches keep up.",
    question=question,
    draw=draw,
    fresh=_fresh,
    depends=depends,
    of=("recording", "traces"),
    suits=suits,
    count=count,
    chooses=lambda _: "rank",
    help=about.HELP,
    data=lambda answer: about.ranks(answer.shares.ranks),
)
