"""An explanation as paragraphs, for whoever wraps them: the report of a terminal, or a dialog on the screen."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from meshscope.analysis.explaining.figure import (
    DIFFERENCE,
    LAST,
    PRODUCT,
    QUOTIENT,
    RATE,
    ROUNDED,
    ROUNDED_QUOTIENT,
    SERIES,
    SUM,
    Figure,
)
from meshscope.analysis.explaining.number import Case, Events, Evidence, Explanation, Place, Ruled, Shown
from meshscope.units import NS_PER_S, counted, duration, percent, printable, ranges, rate, size

MOST_CASES, MOST_PLACES, MOST_PARTS, MOST_RULES = 8, 4, 6, 6
_NAME = 72
_PLURAL = re.compile(
    r"\b(?:(step|call|rank|token|window|sample|span|kernel|broadcast|piece|all-reduce|event)s|(pass|search|stretch)es)\b"
)
_SIGNS = {SUM: "+", DIFFERENCE: "−", PRODUCT: "×", QUOTIENT: "/", ROUNDED_QUOTIENT: "/", RATE: "/"}


@dataclass(frozen=True)
class Said:
    """A paragraph: ``role`` is ``head``, ``value``, ``text`` or ``quiet``; ``depth`` is how far it is set in."""

    text: str
    depth: int = 0
    role: str = "text"


def shown(value: float, unit: str) -> str:
    """A value as tables show it: ``18.2 ms``."""
    written = {"ns": duration, "bytes": size, "frac": percent, "": rate}.get(unit)
    if written is not None:
        return written(value)
    if unit == "bytes/s":
        return f"{size(value)}/s"
    if unit == "×":
        return f"{rate(value)}×"
    if unit in ("FLOP", "FLOP/s"):
        return f"{value:.4g} {unit}"
    return f"{exact(value)} {_noun(value, unit)}" if isinstance(value, int) else f"{rate(value)} {unit}"


def exact(value: float, unit: str = "") -> str:
    """A value in full, thousands set apart: ``18 193 512 ns``. What is no whole number has nine digits."""
    if isinstance(value, int) or (value == round(value) and abs(value) < 2**53):
        digits = f"{value:,.0f}".replace(",", "\u202f")
    else:
        digits = f"{value:.9g}" if abs(value) < 1e4 else f"{value:,.1f}".replace(",", "\u202f")
    digits = digits.replace("-", "−", 1) if value < 0 else digits
    if unit in ("frac", "×"):
        return digits
    return f"{digits} {_noun(value, unit)}".rstrip()


def _noun(value: float, unit: str) -> str:
    """What is counted, of one in the singular: ``pieces of work`` and ``all-reduces that were`` as well."""
    if value != 1:
        return unit
    return _PLURAL.sub(lambda plural: plural[1] or plural[2], unit, count=1).replace(" that were ", " that was ")


def paragraphs(found: Explanation) -> list[Said]:
    """What the number means, each case with all that stands behind it, and what it does not include."""
    of = f" of {printable(found.run)}" if found.run else ""
    said = [Said(f"{printable(found.number.name)}{of}", role="head"), Said(printable(found.number.definition))]
    said.append(Said(f"Does not include: {found.number.excludes}.", role="quiet"))
    for case in found.cases[:MOST_CASES]:
        said += _case(case)
    said += [_brief(case) for case in found.cases[MOST_CASES:]]
    return said


def _brief(case: Case) -> Said:
    told = f"cannot say: {printable(case.why)}" if case.figure is None else _value(case.figure)
    return Said(f"{printable(case.of)}: {told}", role="value")


def _value(figure: Figure) -> str:
    return shown(figure.value, figure.unit)


def _case(case: Case) -> Iterator[Said]:
    yield _brief(case)
    if case.figure is not None:
        yield from (Said(line, 1) for line in formulas(case.figure))
    yield from _places(case.places)
    if case.evidence is not None:
        yield from _evidence(case.evidence)
    if case.events is not None:
        yield Said(f"events: {_events(case.events)}", 1, "quiet")
    yield from (Said(printable(note), 1, "quiet") for note in case.notes)
    if case.json:
        yield Said(f"in analyze --json: {printable(case.json)}", 1, "quiet")


def formulas(figure: Figure) -> list[str]:
    """The formula with its figures, then that of each figure in it that was worked out itself."""
    lines: dict[str, None] = {}
    _worked(figure, lines)
    return list(lines) or [_named(figure)]


def _worked(figure: Figure, lines: dict[str, None]) -> None:
    if not figure.how:
        return
    lines[f"{_named(figure)} = {_right(figure)}"] = None
    if figure.how in SERIES and len(figure.of) > MOST_PARTS:
        return
    for part in _written(figure):
        if part.value:  # of what is nothing there is nothing to say
            _worked(part, lines)


def _named(figure: Figure) -> str:
    """With its unit once: what names the calls that it counts counts no calls of calls."""
    name = printable(figure.name)
    if figure.unit and figure.unit in name and _PLURAL.search(figure.unit):
        return f"{exact(figure.value)} {_noun(figure.value, name)}"
    value = exact(figure.value, figure.unit)
    return value if name == figure.unit else f"{value} {name}"


def _written(figure: Figure) -> Sequence[Figure]:
    """The parts that a formula writes out: of many that are added up, the largest."""
    if figure.how != SUM or len(figure.of) <= MOST_PARTS:
        return figure.of
    return sorted(figure.of, key=lambda part: -part.value)[:MOST_PARTS]


def _right(figure: Figure) -> str:
    if figure.how in SERIES:
        return _series(figure)
    if figure.how == ROUNDED:
        return f"{_named(figure.of[0])}, rounded"
    written = _written(figure)
    text = f" {_SIGNS[figure.how]} ".join(_named(part) for part in written)
    if len(written) < len(figure.of):
        rest = exact(sum(part.value for part in figure.of) - sum(part.value for part in written), figure.unit)
        text += f" + {len(figure.of) - len(written)} smaller ones ({rest})"
    if figure.how == ROUNDED_QUOTIENT:
        return f"{text}, rounded"
    return f"{text} × {exact(NS_PER_S)} ns/s" if figure.how == RATE else text


def _series(figure: Figure) -> str:
    if len(figure.of) <= MOST_PARTS:
        return f"the {figure.how} of {', '.join(_named(part) for part in figure.of)}"
    if figure.how == LAST:
        return f"the newest of {len(figure.of)} values"
    least = min(figure.of, key=lambda part: part.value)
    most = max(figure.of, key=lambda part: part.value)
    return f"the {figure.how} of {len(figure.of)} values, from {_named(least)} to {_named(most)}"


def _places(places: Sequence[Place]) -> Iterator[Said]:
    for place in places[:MOST_PLACES]:
        yield Said(f"window: {_place(place)}", 1)
    rest = places[MOST_PLACES:]
    if rest:
        covered = exact(sum(place.end_ns - place.start_ns for place in rest), "ns")
        yield Said(f"… {counted(len(rest), 'more window')} of {covered}", 1)


def _place(place: Place) -> str:
    told = f"{printable(place.source)}, rank {place.rank}, device events from {_second(place.start_ns)} for "
    told += exact(place.end_ns - place.start_ns, "ns")
    named = f"{'step' if len(place.steps) == 1 else 'steps'} {ranges(place.steps)}"
    whose = "its" if len(place.steps) == 1 else "their"
    by = "on the device" if place.is_behind else f"by {whose} marks"
    steps = f", {named} {by} {exact(place.steps_ns, 'ns')}" if place.steps else ", no whole step"
    return told + steps + ("" if place.is_complete else " (the file is cut off)")


def _second(time_ns: int) -> str:
    return f"{time_ns / NS_PER_S:.6f} s"


def _evidence(found: Evidence) -> Iterator[Said]:
    yield Said(f"made of {exact(found.count)} {_noun(found.count, found.what)}{':' if found.rules else ''}", 1)
    for rule in found.rules[:MOST_RULES]:
        yield Said(_rule(rule), 2)
    if len(found.rules) > MOST_RULES:
        rest = sum(rule.count for rule in found.rules[MOST_RULES:])
        yield Said(f"… {counted(rest, 'span')} by {counted(len(found.rules) - MOST_RULES, 'more rule')}", 2)
    if found.largest:
        yield Said("with most of it:", 1)
    yield from (Said(_shown(one), 2) for one in found.largest)


def _rule(found: Ruled) -> str:
    what = f"{found.kind} {found.collective}".strip()
    count = counted(found.count, "span")
    return f"{count} taken for {printable(what)} by «{printable(found.rule)}»: {exact(found.joined_ns, 'ns')} joined"


def _shown(found: Shown) -> str:
    share = duration(found.share_ns)
    share += "" if found.share_ns == found.duration_ns else f" of {duration(found.duration_ns)}"
    lane = f" on {printable(found.lane)}" if found.lane else ""
    rule = f", by «{printable(found.rule)}»" if found.rule else ""
    name = printable(found.name) or "(no name)"
    name = name if len(name) <= _NAME else name[: _NAME - 1] + "…"
    return f"{share}  {name}{lane}, rank {found.rank}, at {_second(found.start_ns)}{rule}"


def _events(found: Events) -> str:
    read = f"{exact(found.read)} read, {exact(found.device)} of device work"
    return f"{read}; {_reasons('dropped', found.dropped)}; {_reasons('repaired', found.repaired)}"


def _reasons(verb: str, counts: dict[str, int]) -> str:
    told: Iterable[str] = (f"{count} ({printable(reason)})" for reason, count in sorted(counts.items()))
    return f"{verb} {', '.join(told)}" if counts else f"none {verb}"
