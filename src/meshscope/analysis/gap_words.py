"""A gap between two runs in a sentence whose printed numbers add up, and the winner of several runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from meshscope.analysis.contenders import Contender, order
from meshscope.analysis.gap import UNPROFILED, Gap, GapPart, gap
from meshscope.analysis.standing import Row
from meshscope.analysis.unequal import apart, equals, size_words
from meshscope.analysis.winner import LEVEL, PROFILED, WON, nobody
from meshscope.units import NS_PER_MS, milliseconds

_MOST_NAMED = 4
_LEAST_FRAC = 0.05
_UNSEEN_FRAC = 0.1
_UNEXPLAINED_FRAC = 0.5
_WORDS = {
    "computing": "computing", "waiting": "exposed waiting for late ranks", "transfer": "exposed transfer",
    "exposed": "exposed communication", "copy": "copying", "idle": "idle",
}  # fmt: skip
_TRANSFERS = ("transfer", "exposed")
_EXPOSED = ("waiting", *_TRANSFERS)
_CHANCE = "; on shared cores the scheduler chooses what is exposed"


@dataclass(frozen=True)
class Winning:
    """``sentence`` says who wins over whom and why, or why nobody does; ``pair`` are the two that it is about.

    ``gaps`` are from the fastest to each of the others that are ranked, by name.
    """

    fastest: str
    sentence: str
    pair: tuple[str, str] | None
    gaps: dict[str, Gap]


def winning(found: tuple[Contender, ...], *, has_more: bool = False) -> Winning:
    """The fastest against the nearest that it clearly wins over; against the nearest of all where there is none.

    ``has_more``: others are planned and have not started.
    """
    ranked = order(found)
    if len(sizes := equals([one.row for one in ranked])) > 1 and not ranked[0].is_traced:
        return _unequal(ranked, [[row.strategy for row in rows] for rows in sizes], sizes)
    if len(ranked) < 2:
        return Winning(ranked[0].name if ranked else "", _alone(ranked, found, has_more=has_more), None, {})
    first, *others = ranked
    gaps = {one.name: known for one in others if (known := gap(first, one)) is not None}
    won = next((one for one in gaps.values() if one.verdict == WON), None)
    told = won or next(iter(gaps.values()), None)
    if told is None:
        return Winning(
            first.name, f"{first.name} is the fastest; the step times of the others are not known.", None, {}
        )
    pair = told.fast, told.slow
    if won is None:
        return Winning(first.name, sentence(told), pair, gaps)
    others_not = [one for one in gaps.values() if one.verdict != WON]
    head = sentence(won, but_not=[one.slow for one in others_not])
    also = [one.slow for one in gaps.values() if one.verdict == WON and one is not won]
    return Winning(first.name, head + _beside(first.name, also, others_not), pair, gaps)


def _unequal(ranked: Sequence[Contender], names: Sequence[Sequence[str]], sizes: Sequence[Sequence[Row]]) -> Winning:
    """Of runs that differ in ranks or global batch: a winner within each size that several have."""
    several = [
        (size_words(rows[0]), winning(tuple(one for one in ranked if one.name in some)))
        for some, rows in zip(names, sizes, strict=True)
        if len(some) > 1
    ]
    said = [f"With {size}: {one.sentence}" for size, one in several]
    words = " ".join([*said, apart([some[0] for some in names if len(some) == 1])]).strip()
    return replace(several[0][1], sentence=words) if len(several) == 1 else Winning("", words, None, {})


def _beside(name: str, also: Sequence[str], others_not: Sequence[Gap]) -> str:
    """What is to say of the others: over whom it wins too, and why it does not over the rest."""
    said = f" It wins over {_listed(also)} too." if also else ""
    level = [one.slow for one in others_not if one.verdict == LEVEL]
    if level:
        said += f" {_listed(level)} {'is' if len(level) == 1 else 'are'} level with {name}."
    unsure = [one for one in others_not if one.verdict != LEVEL]
    return said + "".join(f" Whether it wins over {one.slow} is not known: {one.why}." for one in unsure)


def _alone(ranked: Sequence[Contender], found: Sequence[Contender], *, has_more: bool) -> str:
    if not found:
        return "Nothing has run yet."
    if not ranked:
        return "No winner: nothing here can be ranked yet." if len(found) > 1 else f"{found[0].name}: {found[0].why}."
    (only,) = ranked
    of = "a profiled step" if only.is_traced else "a step"
    others = "there is no other to compare it with"
    if has_more or len(found) > 1:
        others = "no other is ranked yet" if has_more else "no other is ranked"
    return f"{only.name} takes {milliseconds(only.step_ns)} ms {of}; {others}."


def sentence(known: Gap, but_not: Sequence[str] = ()) -> str:
    """Who wins by how much, and in what that lies; or why that cannot be said.

    ``but_not`` are others that the winner does not surely win over.
    """
    figures = _Printed.of(known)
    if known.verdict == WON:
        won = f"{known.fast} wins by {figures.total} ms a step over {known.slow} ({_times(known.times)})"
        won += f", but not over {_listed(but_not)}" if but_not else ""
        return f"{won}{_because(known, figures)}."
    if known.verdict == LEVEL:
        apart = f"{figures.total} ms a step apart ({_percent(known.times - 1)})"
        noise = f"one run of each tells apart {_percent(known.decision.least_frac)} and more"
        return f"Neither of {known.fast} and {known.slow} wins: they are {apart}; {noise}."
    if known.verdict == PROFILED:
        return (
            f"A profiled step of {known.fast} is {figures.total} ms shorter than one of {known.slow}"
            f"{_because(known, figures)}. Traces hold no unprofiled step, so no winner is named."
        )
    return nobody(known.fast, known.slow, known.decision)


def _because(known: Gap, figures: _Printed) -> str:
    if known.untold:
        return f"; why is not known: {known.untold}"
    seen_ns = known.total_ns - sum(part.ns for part in known.parts if part.name == UNPROFILED)
    if abs(known.total_ns - seen_ns) > abs(known.total_ns) * _UNEXPLAINED_FRAC:
        return f"; {_unseen(known, seen_ns)}, so why is not known"
    if not figures.named:
        return f"; no part of the profiled steps differs by more than its spread{_largest(known)}"
    told = [(units, _part(part, units, known, figures)) for part, units in figures.named]
    if figures.rest:
        told.append((figures.rest, f"the rest {_signed(figures.rest, figures)}"))
    less, more = ([words for units, words in told if (units > 0) is is_less] for is_less in (True, False))
    said = [*less, *(f"{'' if at else 'but '}{words}" for at, words in enumerate(more))]
    few = f" (from {known.few})" if known.few else ""
    is_chance = known.shares_cores and any(part.name in _EXPOSED for part, _ in figures.named)
    return ": " + ", ".join(said) + few + (_CHANCE if is_chance else "")


def _unseen(known: Gap, seen_ns: int) -> str:
    """What the profiled steps differ by where that is too little, or too much, for the difference to be in them."""
    seen = milliseconds(abs(seen_ns))
    if seen_ns * known.total_ns <= 0:
        shorter = f"are {seen} ms shorter" if seen_ns else "are no longer"
        return f"the profiled steps of {known.slow} {shorter}"
    much = "only" if abs(seen_ns) < abs(known.total_ns) else "as much as"
    return f"their profiled steps differ by {much} {seen} ms"


def _largest(known: Gap) -> str:
    """The part that differs most, where none is clear."""
    seen = [part for part in known.parts if part.name != UNPROFILED and part.ns]
    most = max(seen, key=lambda part: abs(part.ns), default=None)
    return "" if most is None else f" (most: {_WORDS[most.name]}, {milliseconds(abs(most.ns))} ms)"


def _signed(units: int, figures: _Printed) -> str:
    return f"{figures.ms(abs(units))} ms {'less' if units > 0 else 'more'}"


def _part(part: GapPart, units: int, known: Gap, figures: _Printed) -> str:
    if part.name == UNPROFILED:
        return f"{_signed(units, figures)} outside what profiled steps show"
    where = f" {known.where}" if part.name in _TRANSFERS and known.where else ""
    columns = _columns(known, units, figures) if part.name == "computing" else ""
    return f"{_signed(units, figures)} {_WORDS[part.name]}{where}{columns}"


def _columns(known: Gap, units: int, figures: _Printed) -> str:
    """Computing as the columns have it, where it is not all in the column ``compute``."""
    hidden = figures.units(known.hidden_ns)
    if not hidden:
        return ""
    rest = units - hidden
    told = [f"{figures.ms(abs(count))} {'less' if count > 0 else 'more'}" for count in (rest, hidden)]
    return f" (compute {told[0]}, hidden {told[1]})" if rest else " (all of it hidden)"


@dataclass(frozen=True)
class _Printed:
    """Whole numbers of the last digit that is printed, so that ``named`` and ``rest`` add up to ``whole``.

    Named are parts that clearly differ, as far as that is known, and are of some weight, by size, and last what
    profiled steps do not show. A positive number is what the winner spends less, a negative one what it spends more.
    """

    whole: int
    named: tuple[tuple[GapPart, int], ...]
    rest: int
    decimals: int

    @classmethod
    def of(cls, known: Gap) -> _Printed:
        decimals = _decimals(known.total_ns)
        last_ns = NS_PER_MS / 10**decimals
        whole = round(known.total_ns / last_ns)
        units = {part: round(part.ns / last_ns) for part in known.parts if _is_named(part, known.total_ns)}
        largest = sorted((part for part, count in units.items() if count), key=lambda part: -abs(units[part]))
        named = sorted(largest[:_MOST_NAMED], key=lambda part: (part.name == UNPROFILED, -units[part]))
        rest = whole - sum(units[part] for part in named)
        if named and abs(rest) <= len(named) and not _has_rest(known, named):
            # All of it is named: what rounding leaves goes where it weighs least.
            units[largest[0]] += rest
            rest = 0
        return cls(whole, tuple((part, units[part]) for part in named), rest, decimals)

    @property
    def total(self) -> str:
        return self.ms(abs(self.whole))

    def units(self, ns: int) -> int:
        return round(ns * 10.0**self.decimals / NS_PER_MS)

    def ms(self, units: int) -> str:
        return f"{units / 10**self.decimals:.{self.decimals}f}"


def _has_rest(known: Gap, named: Sequence[GapPart]) -> bool:
    return any(part.ns and part not in named for part in known.parts)


def _is_named(part: GapPart, total_ns: int) -> bool:
    least_frac = _UNSEEN_FRAC if part.name == UNPROFILED else _LEAST_FRAC
    return part.is_clear is not False and abs(part.ns) >= abs(total_ns) * least_frac


def _decimals(ns: int) -> int:
    """As many as make three digits of it."""
    ms = abs(ns) / NS_PER_MS
    return min(max(2 - math.floor(math.log10(ms)), 0), 6) if ms else 1


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]


def _times(factor: float) -> str:
    return f"{factor:.1f}×" if factor >= 1.1 else f"{factor:.2f}×"


def _percent(frac: float) -> str:
    return f"{abs(frac) * 100:.0f} %"
