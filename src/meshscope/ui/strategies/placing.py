"""Which columns find room, and one scale for all bars: a millisecond is as long in every column."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from meshscope.ui.strategies.answer import Answer
from meshscope.ui.strategies.columns import Key, keys, parts
from meshscope.units import NS_PER_MS

BEFORE_NAME = 5
"""Cells for the cursor, the mark A or B, and the sign of how a run stands."""

BESIDE = 7
"""Cells for a spread that stands apart."""

_LEAST_NAME, _MOST_NAME = 12, 28
_APART, _JOINED = 13, 9
_AFTER = {"span": 9, "rate": 10, "peak": 10, "speedup": 5, "compile": 9}
_TICK_CELLS = 3
_SPARED = 10
"""Cells that bars are given before another column comes to stand behind them."""


@dataclass(frozen=True, kw_only=True)
class Form:
    """How figures stand: a mean and its spread ``is_apart``, their signs below each other, or joined in fewer cells.

    ``after`` are the columns behind the parts; ``gap`` cells lie between any two.
    """

    is_apart: bool
    after: tuple[str, ...]
    gap: int = 2

    @property
    def figure(self) -> int:
        """Cells for a mean and its spread."""
        return _APART if self.is_apart else _JOINED

    @property
    def spread(self) -> int:
        """As many of them as are behind the mean always."""
        return BESIDE if self.is_apart else 0


_ALL = ("span", "rate", "peak", "speedup", "compile")
_FORMS = (
    *(Form(is_apart=True, after=after) for after in (_ALL, _ALL[:3])),
    *(Form(is_apart=False, after=after) for after in (_ALL, _ALL[:3], ("rate", "peak"), ("rate",), ())),
    Form(is_apart=False, gap=1, after=()),
)


@dataclass(frozen=True)
class Place:
    """A column from cell ``start`` on, ``width`` cells; with bars as wide where it ``has_bar``."""

    key: Key
    start: int
    width: int
    has_bar: bool = False

    @property
    def end(self) -> int:
        return self.start + self.width


@dataclass(frozen=True)
class Placing:
    """The columns that found room. A cell of a bar is ``ns_per_cell`` long (NaN where there are no bars)."""

    form: Form
    places: tuple[Place, ...]
    ns_per_cell: float

    def of(self, name: str) -> Place | None:
        return next((place for place in self.places if place.key.name == name), None)

    @property
    def bars(self) -> tuple[Place, ...]:
        return tuple(place for place in self.places if place.has_bar)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(place.key.name for place in self.places)

    @property
    def tick_ns(self) -> float:
        """The least round number of ns that is long enough for its own label."""
        ns = rounded_up(self.ns_per_cell * _TICK_CELLS)
        while ns / self.ns_per_cell < len(tick(ns)) + 4:
            ns = rounded_up(ns * 1.5)
        return ns


def placing(answer: Answer, width: int) -> Placing:
    """In the fullest form that ``width`` cells have room for; in the barest, without the smallest parts."""
    known, some = {key.name: key for key in keys(answer)}, list(parts(answer))
    longest = max((cell_len(name) for name in (*(one.name for one in answer.contenders), *answer.waiting)), default=0)
    name = BEFORE_NAME + min(max(longest, _LEAST_NAME), _MOST_NAME, max(width // 5, _LEAST_NAME))
    most_ns = most(answer, some)
    for form in _FORMS:
        spared = _SPARED if len(form.after) > 1 else 0
        if _needed(form, name, known, some) + spared <= width:
            return _placed(form, name, known, some, most_ns, width)
    while some and _needed(_FORMS[-1], name, known, some) > width:
        some.remove(min(some, key=lambda key: most_ns[key.name]))
    return _placed(_FORMS[-1], name, known, some, most_ns, width)


def most(answer: Answer, some: Sequence[Key]) -> dict[str, float]:
    """The most that any that is ranked spends on a part; any at all where none is ranked."""
    ranked = [one for one in answer.contenders if one.is_ranked and one.split] or answer.contenders
    values = {key.name: [key.value(one) for one in ranked] for key in some}
    return {name: max((ns for ns in known if not math.isnan(ns)), default=0.0) for name, known in values.items()}


def _needed(form: Form, name: int, known: dict[str, Key], some: Sequence[Key]) -> int:
    after = sum(_after(form, key) + form.gap for key in form.after if key in known)
    return name + form.gap + form.figure + len(some) * (form.figure + form.gap) + after


def _after(form: Form, name: str) -> int:
    return form.figure if name in ("span", "rate") and form.is_apart else _AFTER[name]


def _placed(
    form: Form, name: int, known: dict[str, Key], some: Sequence[Key], most_ns: dict[str, float], width: int
) -> Placing:
    room = width - _needed(form, name, known, ()) - form.gap * len(some)
    ns_per_cell = scale([most_ns[key.name] for key in some], form.figure, room)
    widths = {"name": name, "step": form.figure, **{key: _after(form, key) for key in form.after}}
    for key in some:
        widths[key.name] = max(form.figure, _bar_cells(most_ns[key.name], ns_per_cell))
    places, at = [], 0
    for key in (known["name"], known["step"], *some, *(known[key] for key in form.after if key in known)):
        places.append(Place(key, at, widths[key.name], has_bar=key in some))
        at += widths[key.name] + form.gap
    return Placing(form, tuple(places), ns_per_cell)


def scale(most_ns: Sequence[float], least: int, room: int) -> float:
    """The fewest ns per cell with which bars as long as these fit ``room``, each in ``least`` cells or more.

    NaN where there is nothing to draw.
    """
    longest_ns = max(most_ns, default=0.0)
    if longest_ns <= 0:
        return math.nan

    def taken(ns_per_cell: float) -> int:
        return sum(max(least, _bar_cells(ns, ns_per_cell)) for ns in most_ns)

    low_ns, high_ns = longest_ns / max(room, 1) / 2, longest_ns
    for _ in range(48):
        middle_ns = (low_ns + high_ns) / 2
        low_ns, high_ns = (low_ns, middle_ns) if taken(middle_ns) <= room else (middle_ns, high_ns)
    return high_ns


def _bar_cells(ns: float, ns_per_cell: float) -> int:
    return math.ceil(ns / ns_per_cell - 1e-6) if ns > 0 else 0


def rounded_up(value: float) -> float:
    """The next 1, 2 or 5 times a power of ten."""
    if math.isnan(value) or value <= 0:
        return math.nan
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value * (1 - 1e-9))


def tick(ns: float) -> str:
    """A round number of ns in ms, without an idle zero: ``20``, ``0.5``."""
    return f"{ns / NS_PER_MS:.9f}".rstrip("0").rstrip(".")
