"""The critical path over ranks: what held the steps up, on which rank, and what they would take if a thing changed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from textual.strip import Strip

from meshscope.analysis.carried_out import carried_out
from meshscope.analysis.critical_path import CriticalPath, critical_paths, doubts, marked_step_ns
from meshscope.analysis.path_course import RankCourse, courses
from meshscope.analysis.what_if import EVEN, FREE, HOST, TWICE
from meshscope.ui.about import path as about
from meshscope.ui.marks.bars import stacked
from meshscope.ui.marks.cells import Line, Piece, cells, strips, wrapped
from meshscope.ui.marks.cited import Cited
from meshscope.ui.palette import texture
from meshscope.ui.panel import Frame, Fresh, Panel, note
from meshscope.ui.panels.path_rows import legs, what_ifs, works
from meshscope.ui.profiled import UNASKED, Profiled, depends, empty, profiled, suits
from meshscope.ui.scene import Scene
from meshscope.ui.words import steps_of, whole_percent
from meshscope.units import counted, milliseconds, percent, printable, ratio, size

PARTS = {
    "compute": ("compute", "compute"),
    "communication": ("exposed", "communication"),
    "communication_and_waiting": ("mixed", "communication & waiting"),
    "copy": ("copy", "copy"),
    "launch": ("launch", "launch to start"),
    "host": ("host", "host"),
    "late_start": ("late", "late start"),
    "delay": ("idle", "unexplained"),
}
"""Of each part of the path its texture and what it is called, in the order of the bar."""

_LARGEST = {
    "communication_and_waiting": "communication with waiting in it",
    "launch": "from launch to start",
    "late_start": "a rank that began late",
    "delay": "delays that nothing explains",
}
_WITH = {
    TWICE: "with communication twice as fast",
    FREE: "with communication hidden",
    EVEN: "if no rank were late",
    HOST: "with a host that is never late",
}
_LEAST_SAVED, _LEAST_FRAC, _LEAST_APART = 0.001, 0.005, 0.02
_TALL = 12
MOST_RANKS = 8
"""With more of them, those that have most of the path."""


@dataclass(frozen=True)
class OnPath:
    """The newest of ``rounds`` rounds of windows that have a path; ``why`` says why there is none.

    ``marked_ns`` is how long its mean step takes between the marks of steps. ``carried`` says of names on it that they
    carry out another collective.
    """

    path: CriticalPath | None = None
    ranks: tuple[RankCourse, ...] = ()
    rounds: int = 0
    why: str = ""
    marked_ns: float = math.nan
    profiled: Profiled = UNASKED
    carried: tuple[str, ...] = ()


def question(scene: Scene) -> OnPath:
    run = scene.run
    if run is None:
        return OnPath()
    if scene.caveat:
        # The path is that of all ranks: one that is not read yet may be the one it goes through.
        return OnPath(profiled=profiled(scene))
    found = critical_paths(run)
    why = "; ".join(why for what, why in doubts(run) if what == "critical_path")
    ranks = courses(found[-1], MOST_RANKS) if found else ()
    marked_ns = marked_step_ns(found[-1], run) if found else math.nan
    carried = carried_out(run)
    names = dict.fromkeys(one.name for one in found[-1].works if one.name in carried) if found else {}
    said = tuple(carried[name] for name in names)
    return OnPath(found[-1] if found else None, ranks, len(found), why, marked_ns, profiled(scene), said)


def draw(answer: OnPath, frame: Frame) -> list[Strip]:
    """The reading and the bar first; what-ifs, the ranks and the names as there is room for them."""
    path = answer.path
    if path is None:
        return note(_empty(answer), frame)
    width = max(frame.width - 2, 1)
    said = _said(path, frame)
    lines: list[Line] = [[(" " + line, "text")] for line in said]
    shares = [(PARTS[name][0], ratio(path.parts.get(name, 0), path.of_ns)) for name in PARTS]
    bar = stacked(shares, width, frame.look)
    lines += [[(" ", "text"), *bar], *_legend(path, {role for _, role in bar}, frame)]
    is_roomy = frame.height >= 20
    foot = len(_caveat(answer, path, frame, 3)) if is_roomy else 0
    parts: tuple[Callable[[int], list[Line]], ...] = (
        lambda room: what_ifs(path, frame, room),
        lambda _: legs(path, answer.ranks, frame),
        lambda room: works(path, frame, room),
    )
    for drawn in parts:
        room = frame.height - len(lines) - is_roomy - foot
        part = drawn(room)
        if part and room >= min(len(part), 3):
            lines += [*([[]] if is_roomy else []), *part[:room]]
    caveat = _caveat(answer, path, frame, min(frame.height - len(lines), 3))
    return strips([*lines, *caveat], frame.width, frame.height, frame.look)


def _said(path: CriticalPath, frame: Frame) -> list[str]:
    """The reading, in fewer words where it would be cut."""
    room, most = max(frame.width - 1, 1), 2 if frame.height < 9 else 3
    full = wrapped(printable(reading(path)), room, most + 1)
    return full if len(full) <= most else wrapped(printable(reading(path, is_brief=True)), room, most)


def reading(path: CriticalPath, *, is_brief: bool = False) -> str:
    """What most of the path is, and what would shorten it most of what nothing speaks against."""
    steps = max(len(path.steps), 1)
    name = max(path.parts, key=lambda one: path.parts[one])
    whole, part = milliseconds(path.of_ns / steps), milliseconds(path.parts[name] / steps)
    what, share = _LARGEST.get(name, PARTS[name][1]), percent(ratio(path.parts[name], path.of_ns))
    if is_brief:
        said = f"Largest on the path: {PARTS[name][1]}, {part} of {whole} ms ({share})"
    else:
        each = f"a step's critical path ({whole} ms)" if path.steps else f"the critical path ({whole} ms traced)"
        said = f"Largest part of {each}: {what}, {part} ms ({share})"
    asked = [one for one in path.what_ifs if one.saved_frac >= _LEAST_SAVED and not one.caveat]
    best = max(asked, key=lambda one: one.saved_frac, default=None)
    if best is None:
        return said
    question = f"with buckets of {size(best.bucket_bytes)}" if best.bucket_bytes is not None else _WITH[best.name]
    be = "" if is_brief else "it would be "
    return f"{said}; {question} {be}{milliseconds(best.step_ns)} ms (−{percent(best.saved_frac)})"


def _legend(path: CriticalPath, drawn: set[str], frame: Frame) -> list[Line]:
    """Parts in the order of the bar with their time and share, at most three lines; without times, or without shares,
    where that names more of them. What is ``drawn`` is named however little it is."""
    known = [(name, path.parts.get(name, 0)) for name in PARTS]
    known = [(name, ns) for name, ns in known if ns >= _LEAST_FRAC * path.of_ns or PARTS[name][0] in drawn]
    most = 2 if frame.height < 9 else 3
    found: list[Line] = []
    for has_time, has_share in ((frame.width >= 60, True), (False, True), (False, False)):
        found = _named(path, known, frame, has_time=has_time, has_share=has_share)
        if len(found) <= most:
            break
    return found[:most]


def _named(
    path: CriticalPath, known: list[tuple[str, int]], frame: Frame, *, has_time: bool, has_share: bool
) -> list[Line]:
    steps = max(len(path.steps), 1)
    lines: list[list[Piece]] = [[]]
    for name, ns in known:
        meaning, word = PARTS[name]
        number = f"critical_path.{name}"
        time: list[Piece] = [(milliseconds(ns / steps), Cited("text", f"{number}.per_step" if path.steps else number)),
                             (" ms ", "quiet")] if has_time else []  # fmt: skip
        share = (whole_percent(ratio(ns, path.of_ns)) if has_share else "", Cited("text", f"{number}.share"))
        piece: list[Piece] = [(" ", "text"), (texture(meaning, frame.look), meaning), (f" {word} ", "quiet"),
                              *time, share, (" ", "text")]  # fmt: skip
        if lines[-1] and cells([*lines[-1], *piece]) > frame.width:
            lines.append([])
        lines[-1] += piece
    return list(lines)


def _caveat(answer: OnPath, path: CriticalPath, frame: Frame, room: int) -> list[Line]:
    """What the replays leave out, where there is room for it."""
    words = ["each is a replay with that one thing changed and no other effect"] if path.what_ifs else []
    words += answer.carried
    words += ["no wait of a host for its device is recorded"] if path.is_unchecked else []
    each_ns = path.of_ns / max(len(path.steps), 1)
    if path.steps and abs(each_ns - answer.marked_ns) > _LEAST_APART * each_ns:
        marked = f"by its marks a step takes {milliseconds(answer.marked_ns)} ms"
        words.append(f"{marked}: the path goes from where the first rank begins to where the last one's work ends")
    said = "; ".join(words)
    if not said or room < 1 or frame.height < _TALL:
        return []
    gap: list[Line] = [[]] if room > 1 else []
    return [*gap, *([(" " + line, "faint")] for line in wrapped(said, max(frame.width - 1, 1), max(room - 1, 1)))]


def _empty(answer: OnPath) -> str:
    if answer.profiled.is_partial:
        return "The critical path shows when every rank's trace is read: it may go through another."
    if answer.why:
        return f"Cannot say what is on the critical path: {answer.why}."
    return empty(answer.profiled, PANEL.promise, what="what is on the critical path", fills=_FILLS)


_FILLS = "the chain of work, launches and collectives over ranks that took all of the steps' time"


def _fresh(answer: OnPath) -> Fresh:
    path = answer.path
    if path is None:
        return Fresh()
    ranks = counted(len(path.ranks), "rank")
    newest = f"; the newest of {answer.rounds} windows" if answer.rounds > 1 else ""
    of = f"{steps_of(path.steps) or 'all that was traced'} of {ranks}{newest}"
    return Fresh(of=of, at_unix_ns=answer.profiled.at_unix_ns)


PANEL = Panel(
    name="path",
    title="critical path",
    number=12,
    key="P",
    promise="The chain that took a step's time over all ranks: its shares, its ranks, and what would shorten it.",
    question=question,
    draw=draw,
    fresh=_fresh,
    depends=depends,
    of=("recording", "traces"),
    suits=suits,
    help=about.HELP,
    data=lambda answer: about.parts(answer.path),
)
