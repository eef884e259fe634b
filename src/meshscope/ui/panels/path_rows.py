"""Draws what would shorten the critical path, which ranks it goes through, and the longest work on it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from rich.cells import cell_len

from meshscope.analysis.critical_path import CriticalPath
from meshscope.analysis.path_course import RankCourse, within
from meshscope.analysis.path_works import OnPath
from meshscope.analysis.what_if import BUCKET, EVEN, FREE, HOST, TWICE, WhatIf
from meshscope.analysis.what_if_caveats import briefly, by_caveat
from meshscope.ui.look import Look
from meshscope.ui.marks.bars import length
from meshscope.ui.marks.cells import Line, Piece, clip, wrapped
from meshscope.ui.marks.cited import Cited
from meshscope.ui.marks.figures import alike
from meshscope.ui.marks.table import Column, Placed, heading, placed, rows
from meshscope.ui.palette import heat
from meshscope.ui.panel import Frame
from meshscope.ui.panels.kernel_rows import brief, calls
from meshscope.ui.words import whole_percent
from meshscope.units import MILLISECONDS, UNKNOWN, counted, milliseconds, percent, printable, ratio, size_unit

_WHAT = Column("what", " what if", 27, is_text=True, grows=True, most=27, least=19)
_BAR = Column("bar", "", 12, is_text=True, grows=True, most=120, least=7, gap=1)
_SAVED = Column("saved", "saves", 7, rank=1, gap=1)

_RANK = Column("rank", "rank", 5)
_ON = Column("on", "when the path is on it", 10, is_text=True, grows=True, most=160, least=6, gap=1)
_LEGS = Column("legs", "visits", 6, rank=1, gap=1)
_SHARE = Column("share", "share", 7, gap=1)

_WORK = Column("name", " longest on the path", 20, is_text=True, grows=True, least=12)
_BAR_OF_WORK = Column("bar", "", 8, rank=5, is_text=True, grows=True, most=120, yields=1)
_PART = Column("part", "as", 13, rank=2, is_text=True)
_COUNT = Column("count", "calls", 6, rank=1)
_BACKWARD = Column("backward", "backward", 8, rank=2, gap=2)

_LEAST_FRAC = 0.0005

_ASKED = {
    TWICE: ("communication ×2 as fast", "comm. ×2 as fast"),
    FREE: ("communication hidden", "comm. hidden"),
    EVEN: ("no rank late", "no rank late"),
    HOST: ("host never late", "host never late"),
    BUCKET: ("other bucket sizes", "other buckets"),
}
"""What is asked, and the same where there is little room."""


def _time(path: CriticalPath, width: int = 8) -> Column:
    return Column("ns", "ms/step" if path.steps else "ms", width, gap=1)


def what_ifs(path: CriticalPath, frame: Frame, room: int) -> list[Line]:
    """As it was measured, then each change with the time that is left and, dashed, what it takes off.

    In at most ``room`` lines. What cannot be said is told with its reason in place of a bar; what speaks against an
    answer is told wherever that answer is.
    """
    if not path.what_ifs and not path.untold:
        return []
    columns = placed((_WHAT, _BAR, _time(path), _SAVED), frame.width)
    each_ns = path.of_ns / max(len(path.steps), 1)
    longest_ns = max([each_ns, *(one.step_ns for one in path.what_ifs)])
    asked = [one for one in path.what_ifs if one.bucket_bytes is None]
    asked += _buckets(path, most=1 if frame.height < 20 else 8)
    untold: list[Line] = [_untold(_asked(name, columns), why, frame) for name, why in path.untold]
    against = _caveats(asked, columns, frame, room - 2 - len(asked) - len(untold))
    # The measured step is told above as well: it goes before an answer does.
    has_measured = room >= 2 + len(asked) + len(against)
    seen = room - 1 - has_measured - len(against)
    if seen < 1:
        # No room for an answer and what speaks against it: those that nothing speaks against.
        asked, against, seen = [one for one in asked if not one.caveat], [], room - 1
    if seen < 1 or not (asked or untold):
        return []
    asked, untold = asked[:seen], untold[: max(seen - len(asked), 0)]
    against = against if any(one.caveat for one in asked) else []
    unit = size_unit(one.bucket_bytes or 0 for one in asked)
    names = [_asked(one.name, columns) if one.bucket_bytes is None else f"buckets of {unit.written(one.bucket_bytes)}"
             for one in asked]  # fmt: skip
    of_ns = (each_ns, longest_ns)
    found = [_measured(of_ns, columns, frame, is_stepped=bool(path.steps))] if has_measured else []
    found += [_answer(name, one, of_ns, columns, frame) for name, one in zip(names, asked, strict=True)]
    return [heading(columns), *rows(columns, found), *against, *untold]


def _caveats(answers: Sequence[WhatIf], columns: tuple[Placed, ...], frame: Frame, room: int) -> list[Line]:
    """What speaks against those that have a † beside them; in few words where ``room`` lines are too few for all."""
    told = by_caveat(answers)
    drawn: list[Line] = []
    ways: tuple[Callable[[str], str], ...] = (str, briefly)
    for say in ways:
        said = [(f"{' and '.join(_asked(name, columns) for name in names)}: " if len(told) > 1 else "") + say(caveat)
                for caveat, names in told.items()]  # fmt: skip
        texts = [wrapped(printable(one), max(frame.width - 3, 1), 4) for one in said]
        drawn = [
            [(" † " if not at else "   ", "warn"), (line, "warn")] for text in texts for at, line in enumerate(text)
        ]
        if len(drawn) <= room:
            break
    return drawn


def _asked(name: str, columns: tuple[Placed, ...]) -> str:
    full, short = _ASKED.get(name, (name, name))
    return full if len(full) + 2 < _width(columns, "what") else short


def _buckets(path: CriticalPath, most: int) -> list[WhatIf]:
    """All sizes that were tried, or the best of them."""
    found = [one for one in path.what_ifs if one.bucket_bytes is not None]
    return found if len(found) <= most else sorted(found, key=lambda one: one.total_ns)[:most]


def _measured(
    of_ns: tuple[float, float], columns: tuple[Placed, ...], frame: Frame, *, is_stepped: bool
) -> dict[str, list[Piece]]:
    each_ns, longest_ns = of_ns
    width = _width(columns, "bar")
    return {
        "what": [(" as measured", "strong")],
        "bar": length(ratio(each_ns, longest_ns), width, "strong", frame.look),
        "ns": [(milliseconds(each_ns), Cited("strong", "critical_path.total" + (".per_step" if is_stepped else "")))],
    }


def _answer(
    what: str, one: WhatIf, of_ns: tuple[float, float], columns: tuple[Placed, ...], frame: Frame
) -> dict[str, list[Piece]]:
    each_ns, longest_ns = of_ns
    return {
        "what": [(f" {what}", "text"), (" †" if one.caveat else "", "warn")],
        "bar": _left(one.step_ns / longest_ns, each_ns / longest_ns, _width(columns, "bar"), frame.look),
        "ns": [(milliseconds(one.step_ns), Cited("text", f"what_if.{one.name}"))],
        "saved": [(percent(one.saved_frac), Cited("text", f"what_if.{one.name}.saved"))],
    }


def _left(frac: float, whole_frac: float, width: int, look: Look) -> list[Piece]:
    """What is left as a bar, and a dashed line up to the end of the measured one: dots are time nothing explains."""
    (bar, role), *_ = length(frac, width, "gauge", look)
    gone = max(round(whole_frac * width) - len(bar), 0)
    return [(bar, role), (("_" if look.is_ascii else "╌") * gone, "faint"), (" " * (width - len(bar) - gone), "text")]


def _untold(what: str, why: str, frame: Frame) -> list[Piece]:
    head = f" {what}  {UNKNOWN}  "
    return [(head, "quiet"), (clip(printable(why), max(frame.width - len(head), 0)), "quiet")]


def _width(columns: tuple[Placed, ...], name: str) -> int:
    return next((place.width for place in columns if place.column.name == name), 0)


def legs(path: CriticalPath, ranks: Sequence[RankCourse], frame: Frame) -> list[Line]:
    """When the path is on each of ``ranks``, from its beginning to its end."""
    if len(path.ranks) < 2:
        return []
    if not path.switches:
        only = "; ".join([f" it stays on rank {ranks[0].rank}" if ranks else "", _rest(path, ranks)])
        return [[(clip(only.removesuffix("; "), frame.width), "text")]]
    columns = placed((_RANK, _ON, _time(path), _SHARE, _LEGS), frame.width)
    said = f" it goes from rank to rank {counted(path.switches, 'time')}"
    found: list[Line] = [[(clip(said, frame.width), "text")], heading(columns)]
    found += rows(columns, [_leg(path, one, columns, frame) for one in ranks])
    rest = _rest(path, ranks)
    return [*found, [(clip("   " + rest, frame.width), "quiet")]] if rest else found


def _rest(path: CriticalPath, ranks: Sequence[RankCourse]) -> str:
    """What is left of the path for ranks without a row, and how many ranks it never is on."""
    others, never = len(path.by_rank) - len(ranks), len(path.ranks) - len(path.by_rank)
    left_ns = (path.of_ns - sum(one.total_ns for one in ranks)) / max(len(path.steps), 1)
    words = [f"{others} more: {milliseconds(left_ns)} ms"] if others > 0 else []
    return "; ".join([*words, *([f"never on {counted(never, 'rank')}"] if never > 0 else [])])


def _leg(path: CriticalPath, one: RankCourse, columns: tuple[Placed, ...], frame: Frame) -> dict[str, list[Piece]]:
    return {
        "rank": [(str(one.rank) if one.rank >= 0 else UNKNOWN, "text")],
        "on": [(_marks(path, one, _width(columns, "on"), frame.look), "gauge")],
        "ns": [(milliseconds(one.total_ns / max(len(path.steps), 1)), "text")],
        "share": [(percent(ratio(one.total_ns, path.of_ns)), "text")],
        "legs": [(str(one.legs), "text")],
    }


def _marks(path: CriticalPath, one: RankCourse, width: int, look: Look) -> str:
    """A cell for each equal part of the path's time, denser the more of it is on the rank; a little is not nothing.

    It is blank where the path is on another rank: a dot would be the sign of time that nothing explains.
    """
    if width <= 0:
        return ""
    frac = within(one, path.of_ns, width)
    levels = np.where(frac <= 0, 0, np.clip(np.ceil(frac * 4 - 1e-9), 1, 4)).astype(int)
    return "".join(heat(level, look) if level else " " for level in levels.tolist())


def works(path: CriticalPath, frame: Frame, room: int) -> list[Line]:
    """The named work with most of the path, as much as there is room for."""
    found = [one for one in path.works[: max(room - 1, 0)] if one.total_ns >= _LEAST_FRAC * path.of_ns]
    if not found:
        return []
    names = max(cell_len(printable(brief(one.name))) for one in found) + 1
    work = replace(_WORK, most=max(names, _WORK.width))
    last = [_BACKWARD] if any(one.backward_ns is not None for one in found) else []
    columns = placed((work, _BAR_OF_WORK, _PART, _COUNT, _time(path), _SHARE, *last), frame.width)
    steps = max(len(path.steps), 1)
    write = alike((one.total_ns / steps for one in found), MILLISECONDS, _width(columns, "ns"), is_bare=True)
    works = [_work(path, one, write(one.total_ns / steps), columns, frame.look) for one in found]
    return [heading(columns), *rows(columns, works)]


def _work(path: CriticalPath, one: OnPath, ms: str, columns: tuple[Placed, ...], look: Look) -> dict[str, list[Piece]]:
    backward_frac = math.nan if one.backward_ns is None else ratio(one.backward_ns, one.total_ns)
    return {
        "name": [(" ", "text"), (clip(printable(brief(one.name)) or "(no name)", _width(columns, "name") - 1), "text")],
        "bar": length(ratio(one.total_ns, path.works[0].total_ns), _width(columns, "bar"), "gauge", look),
        "part": [(one.part.partition("_and_")[0], "quiet")],
        "count": [(calls(one.count / max(len(path.steps), 1)), "text")],
        "ns": [(ms, "text")],
        "share": [(percent(ratio(one.total_ns, path.of_ns)), "text")],
        "backward": [(whole_percent(backward_frac), "text")],
    }
