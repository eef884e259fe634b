"""A against B as text: the verdict first, then the numbers it rests on."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

from meshscope.analysis.change import UNSURE, Change, Quantity
from meshscope.analysis.change_words import NAMES, OF_A_STEP, PROFILED
from meshscope.analysis.conditions import Judged
from meshscope.analysis.pairing import Changes
from meshscope.analysis.work_changes import FEWEST, Seen, WorkChange
from meshscope.reports.columns import encodable, table, wrapped
from meshscope.units import UNKNOWN, counted, duration, milliseconds, printable, rate, size

MOST_WORKS = 12
_NAME_WIDTH = 30
_SHOW = {"ns": duration, "bytes": size, "per_s": rate}


def change_report(found: Changes, judged: Sequence[Judged] = (), *, encoding: str | None = None) -> str:
    """All of it. ``encoding`` is the terminal's (stdout's when None): what it cannot show becomes ASCII."""
    lines = [line for pair in found.changes for line in ("", *_pair(pair))]
    lines += [f"only in {side}: {title}" for side, title in found.alone]
    if judged:
        lines += ["", *(line for one in judged for line in _judged(one))]
        lines += [f"cannot say for {title}: it is only in {side}" for side, title in found.alone]
    text = "\n".join(printable(line) for line in lines).strip("\n")
    return encodable(text, encoding or getattr(sys.stdout, "encoding", None) or "utf-8")


def _pair(pair: Change) -> list[str]:
    lines = wrapped(pair.sentence, indent="")
    if pair.is_same:
        return lines
    lines += ["", *_quantities(pair.quantities)]
    lines += _doubts(pair.quantities)
    lines += _works(pair)
    for what in pair.differs:
        lines += wrapped(f"differs: {what}", indent="", hanging="  ")
    for note in pair.basis:
        lines += wrapped(f"– {note}", indent="", hanging="  ")
    return lines


def _quantities(quantities: Sequence[Quantity]) -> list[str]:
    """One table in two parts, so that columns stand below each other."""
    outside = [found for found in quantities if found.metric in OF_A_STEP]
    inside = [found for found in quantities if found.metric not in OF_A_STEP]
    heading = ("per step", "A", "B", "B − A", "99 % interval", "")
    head, *lines = table(heading, _rows([*outside, *inside]), indent="")
    between = wrapped(PROFILED, indent="") if inside else []
    return [head, *lines[: len(outside)], *between, *lines[len(outside) :]]


def _rows(quantities: Sequence[Quantity]) -> list[tuple[str, ...]]:
    return [
        (
            NAMES.get(found.metric, found.metric),
            _SHOW[found.unit](found.a),
            _SHOW[found.unit](found.b),
            _signed(found.change),
            UNKNOWN if math.isnan(found.low + found.high) else f"{_signed(found.low)} … {_signed(found.high)}",
            found.verdict,
        )
        for found in quantities
    ]


def _signed(frac: float) -> str:
    return UNKNOWN if math.isnan(frac) else f"{'−' if frac < 0 else '+'}{abs(frac) * 100:.1f} %"


def _doubts(quantities: Sequence[Quantity]) -> list[str]:
    """Why some of them cannot be told, each reason once."""
    whys: dict[str, list[str]] = {}
    for found in quantities[1:]:
        if found.verdict == UNSURE and found.why != quantities[0].why:
            whys.setdefault(found.why, []).append(NAMES.get(found.metric, found.metric))
    return [
        line
        for why, names in whys.items()
        for line in wrapped(f"cannot say {', '.join(names)}: {why}", indent="", hanging="  ")
    ]


def _works(pair: Change) -> list[str]:
    changed = [work for work in pair.works if work.how or min(pair.profiled_steps) < FEWEST]
    if not changed:
        return ["no kernel, operator or collective changed beyond its noise"] if pair.works else []
    rows = [_work(work) for work in changed[:MOST_WORKS]]
    steps = min(pair.profiled_steps)
    of = "per profiled step and rank" if steps else "per rank, over whole windows: no step is complete"
    lines = ["", *wrapped(f"what changed most ({of}; ms of its own):", indent="")]
    lines += table(("", "calls A", "B", "ms A", "B", "B − A", ""), rows)
    if len(changed) > MOST_WORKS:
        lines.append(f"  … {counted(len(changed) - MOST_WORKS, 'more')}".removesuffix("s"))
    if steps < FEWEST:
        few = f"{counted(steps, 'profiled step')} on a side" if steps else "no complete step on a side"
        lines += wrapped(f"{few}: what is slower or faster may be noise; calls, new and gone are exact.", indent="  ")
    return lines


def _work(work: WorkChange) -> tuple[str, ...]:
    name = work.name if len(work.name) <= _NAME_WIDTH else f"{work.name[: _NAME_WIDTH - 1]}…"
    sign = "−" if work.effect_ns < 0 else "+"
    change = f"{sign}{milliseconds(abs(work.effect_ns))}"
    return (printable(name), _calls(work.a), _calls(work.b), _ms(work.a), _ms(work.b), change, work.how)


def _calls(seen: Seen | None) -> str:
    return "0" if seen is None else f"{seen.count:.4g}"


def _ms(seen: Seen | None) -> str:
    return UNKNOWN if seen is None else milliseconds(seen.total_ns)


def _judged(one: Judged) -> list[str]:
    return wrapped(f"{one.condition.text} {one.state} for {one.strategy}: {one.why}", indent="", hanging="  ")
