"""What was found: pitfalls by cost, and for the one that is chosen what shows it and what to do."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from textual.strip import Strip

from meshscope.analysis.findings import Finding, findings
from meshscope.analysis.flight_words import ranks_words
from meshscope.analysis.looked_for import LookedFor, looked_for
from meshscope.analysis.looked_for_words import counts, headline, sentences
from meshscope.run import SILENCE_NS, Run
from meshscope.ui.about import findings as about
from meshscope.ui.marks.cells import Line, Piece, cells, clip, strips, wrapped
from meshscope.ui.marks.cited import Cited
from meshscope.ui.marks.figures import Written, alike
from meshscope.ui.marks.table import Column, Placed, heading, placed, rows
from meshscope.ui.panel import UNSTATED, Frame, Fresh, Panel, note
from meshscope.ui.scene import Scene
from meshscope.ui.words import steps_of
from meshscope.units import UNKNOWN, percent, printable, time_unit

_COLUMNS = (
    Column("title", "   finding", 24, is_text=True, grows=True, most=44, least=18),
    Column("cost", "cost", 9),
    Column("share", "share", 7),
    Column("who", "rank", 12, rank=1, is_text=True, gap=3),
)
_SHARE_OF = Column("share", "share of", 19, rank=2)
"""Where shares are not of the same, each has what it is of beside it, or is left out where there is no room."""

_WHOLE_WIDTH = 9

_OVERLAP = "costs of findings overlap, and do not add up"
_MOST_SHARE = 3
"""The list takes at most a third of the lines: what shows the chosen one is what the panel is for."""

_AMPLE = 28
"""A panel that has so many lines and no finding has nothing better to do with them than to say what was looked for."""

_FEWEST_LINES = 5
"""With fewer there is the list only."""

_STEPS_AT_A_TIME = 16
_PATIENCE_NS = SILENCE_NS // 3


@dataclass(frozen=True)
class Found:
    """The findings of the run that is looked at; ``is_asked`` is false while there is no run to ask about.

    ``looked`` says of each rule whether it could be judged; ``is_open`` shows that rule by rule.
    """

    findings: tuple[Finding, ...] = ()
    is_asked: bool = False
    fresh: Fresh = UNSTATED
    looked: tuple[LookedFor, ...] = ()
    is_open: bool = False


def question(scene: Scene) -> Found:
    run = scene.run
    if run is None:
        return Found()
    profiled = [step for window in run.windows for step in window.steps]
    fresh = Fresh(of=steps_of(sorted(set(profiled))))
    return Found(findings(run), is_asked=True, fresh=fresh, looked=looked_for(run))


def count(found: Found) -> int:
    return len(found.findings)


def turned(found: Found, by: int) -> Found:
    """What was looked for is folded into its counts, or told rule by rule."""
    return replace(found, is_open=by % 2 == 1)


def draw(found: Found, frame: Frame) -> list[Strip]:
    """The list above, scrolled to the chosen one, and below it what there is to say of that."""
    if not found.is_asked:
        return note(PANEL.promise, frame)
    is_ample = frame.height >= _AMPLE and not found.findings
    if not found.findings or found.is_open:
        found = replace(found, is_open=found.is_open != is_ample)
        return strips(_looked(found, frame), frame.width, frame.height, frame.look)
    at = min(frame.picked, len(found.findings) - 1)
    columns = placed(_columns(found.findings), frame.width)
    if frame.height < _FEWEST_LINES:
        return strips(_rows(found.findings, at, frame.height, columns), frame.width, frame.height, frame.look)
    room = (frame.height - 1) // _MOST_SHARE
    lines: list[Line] = [heading(columns), *_rows(found.findings, at, room, columns)]
    words, code = _about(found.findings[at], found.findings, frame.width), _code(found.findings[at], frame.width)
    left = frame.height - len(lines)
    if 1 + len(words) + len(code) <= left:
        lines.append([])
    else:
        # What to do is worth as much as why: neither takes all of the room.
        words = words[: max(left - len(code), left // 2)]
    return strips([*lines, *words, *code], frame.width, frame.height, frame.look)


def _columns(found: Sequence[Finding]) -> tuple[Column, ...]:
    """Shares in one column look alike: with what each is of beside it, unless that is one and the same."""
    title, cost, _, who = _COLUMNS
    return (title, cost, _SHARE_OF, who) if _have_wholes(found) else _COLUMNS


def _have_wholes(found: Sequence[Finding]) -> bool:
    return len({one.of for one in found if one.has_cost}) > 1


def _looked(found: Found, frame: Frame) -> list[Line]:
    """What it means that there is no finding, and how many rules that stands on; or each of them with its reason."""
    first = "" if found.findings else headline(found.looked)
    lines: list[Line] = [[(line, "quiet")] for line in wrapped(first, frame.width, frame.height)]
    if not found.is_open:
        return [*lines, *_folded_up(found, frame, frame.height - len(lines))]
    for sentence in sentences(found.looked):
        room = frame.height - len(lines) - 1
        told = wrapped(printable(sentence), max(frame.width, 1), max(room, 1))
        lines += [*([[]] if lines else []), *([(line, "faint")] for line in told)] if room > 0 else []
    return lines[: frame.height]


def _folded_up(found: Found, frame: Frame, room: int) -> list[Line]:
    """The counts, and the key that opens them."""
    if room < 1 or not found.looked:
        return []
    key: Line = [("g", "key"), (" which, and why", "quiet")]
    told = wrapped(counts(found.looked), frame.width, room)
    lines: list[Line] = [[(line, "faint")] for line in told]
    if cells(lines[-1]) + 2 + cells(key) <= frame.width:
        lines[-1] = [*lines[-1], ("  ", "text"), *key]
    elif len(lines) < room:
        lines.append(key)
    return [*([[]] if len(lines) < room - 1 else []), *lines]


def _rows(found: Sequence[Finding], at: int, room: int, columns: tuple[Placed, ...]) -> list[Line]:
    """As many as there is room for, the chosen one among them."""
    first = min(max(at - room + 1, 0), max(len(found) - room, 0))
    shown = list(enumerate(found))[first : first + max(room, 1)]
    known = [one for one in found if one.has_cost]
    costs, wholes = [one.cost_ns for one in known], [one.of_ns for one in known]
    writing = alike(costs, time_unit(costs), _COLUMNS[1].width), alike(wholes, time_unit(wholes), _WHOLE_WIDTH)
    has_wholes = _have_wholes(found)
    drawn = [_row(one, writing, columns, is_chosen=number == at, has_wholes=has_wholes) for number, one in shown]
    return [*rows(columns, drawn)]


def _row(
    one: Finding, writing: tuple[Written, Written], columns: tuple[Placed, ...], *, is_chosen: bool, has_wholes: bool
) -> dict[str, list[Piece]]:
    """What stands in the columns; ``writing`` is how costs, and what they are of, are written."""
    text = "strong" if is_chosen else "text"
    width = next(place.width for place in columns if place.column.name == "title")
    return {
        "title": [
            ("▸" if is_chosen else " ", "accent"),
            ("✗ " if one.is_grave else "! ", "bad" if one.is_grave else "warn"),
            (clip(printable(one.title), width - 3), text),
        ],
        "cost": [(writing[0](one.cost_ns) if one.has_cost else UNKNOWN, _cited(text, "cost", one))],
        "share": _share(one, writing[1], text, has_whole=has_wholes),
        "who": [(ranks_words(one.ranks).partition(" ")[2] if one.ranks else "all", "quiet")],
    }


def _share(one: Finding, write: Written, role: str, *, has_whole: bool) -> list[Piece]:
    piece = (percent(one.cost_frac) if one.has_cost else UNKNOWN, _cited(role, "share", one))
    if not has_whole:
        return [piece]
    of = f" of {write(one.of_ns):>{_WHOLE_WIDTH}}" if one.has_cost and one.of_ns > 0 else ""
    return [piece, (of.ljust(_WHOLE_WIDTH + 4), "quiet")]


def _cited(role: str, what: str, one: Finding) -> str:
    """What costs no time that can be told has no number to explain."""
    rank = -1 if one.rank is None else one.rank
    return Cited(role, f"findings.{one.code}.{what}", rank=rank) if one.has_cost else role


def _about(one: Finding, found: Sequence[Finding], width: int) -> list[Line]:
    lines: list[Line] = []
    if one.has_cost:
        lines += _folded(f"{percent(one.cost_frac)} of {one.of}", "faint", width)
    for said in one.evidence:
        lines += _folded(said, "text", width)
    lines += _folded(one.advice, "quiet", width)
    return lines + (_folded(_OVERLAP, "faint", width) if sum(other.has_cost for other in found) > 1 else [])


def _code(one: Finding, width: int) -> list[Line]:
    """Lines to paste are cut, not folded: the report has them whole."""
    return [[(" " + clip(printable(code), width - 1), "good")] for code in one.fix.splitlines()]


def _folded(text: str, role: str, width: int) -> list[Line]:
    return [[(" " + line, role)] for line in wrapped(printable(text), max(width - 1, 1), 6)]


def depends(scene: Scene) -> Hashable:
    """Not every step: rules look at many, and a finding does not come and go with one.

    While no step ends, time itself counts, since a hang shows by nothing else.
    """
    run = scene.run
    if run is None:
        return ()
    read = sum(window.counts.read for window in run.windows)
    told = (run.windows, run.records, run.refused, run.compiles, run.checks, run.rank_ends)
    counts = tuple(len(entries) for entries in told)
    return (run.path, read, *counts, run.ended is not None, _steps(run), _still(run))


def _steps(run: Run) -> int:
    return len(run.steps) // (_STEPS_AT_A_TIME * max(run.experiment.ranks, 1))


def _still(run: Run) -> int:
    """For how many stretches of patience no step has ended."""
    if run.ended is not None or not len(run.steps):
        return 0
    return int(run.now_ns - run.steps.end_ns.max()) // _PATIENCE_NS


PANEL = Panel(
    name="findings",
    title="findings",
    number=9,
    promise="Pitfalls appear here as soon as the run shows one: what it costs, what shows it, and what to do.",
    question=question,
    draw=draw,
    fresh=lambda found: found.fresh,
    depends=depends,
    of=("recording", "traces"),
    is_strip=True,
    count=count,
    chooses=lambda _: "finding",
    is_told=True,
    turned=turned,
    help=about.HELP,
    data=lambda found: about.pitfalls(found.findings),
)
