"""What strategies are compared by: a value for each, its heading, and the order that it puts them in."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from meshscope.analysis.contenders import Contender
from meshscope.analysis.step_split import PARTS
from meshscope.ui.strategies.answer import Answer


@dataclass(frozen=True)
class Sorting:
    """By which column, and whether against the order that comes naturally to it."""

    column: str = "step"
    is_reversed: bool = False


FASTEST = Sorting()


@dataclass(frozen=True)
class Key:
    """A column. ``value`` is NaN where it is not known; ``is_most_first``: the most is what people look for first."""

    name: str
    heading: str
    value: Callable[[Contender], float]
    is_most_first: bool = False


def _of_part(name: str) -> Callable[[Contender], float]:
    def value(one: Contender) -> float:
        ns = one.split.part_ns(name) if one.split is not None else None
        return math.nan if ns is None else float(ns)

    return value


_BEFORE = (Key("name", "strategy", lambda _: 0.0), Key("step", "ms/step", lambda one: one.step_ns))
_PARTS = tuple(Key(name, name, _of_part(name)) for name in PARTS)
_AFTER = (
    Key("span", "sum", lambda one: float(one.split.span_ns) if one.split is not None else math.nan),
    Key("rate", "samples/s", lambda one: one.row.samples_per_s, is_most_first=True),
    Key("peak", "peak/rank", lambda one: one.row.peak_bytes),
    Key("speedup", "×1", lambda one: one.row.speedup, is_most_first=True),
    Key("compile", "compile", lambda one: one.row.compile_ns),
)


def keys(answer: Answer) -> tuple[Key, ...]:
    """The columns that anybody has something for; those that are always there first."""
    before = _BEFORE if not answer.is_traced else (replace(_BEFORE[0], heading="trace"), _BEFORE[1])
    after = [key for key in _AFTER if any(not math.isnan(key.value(one)) for one in answer.contenders)]
    return (*before, *parts(answer), *after)


def parts(answer: Answer) -> tuple[Key, ...]:
    """The parts of a step that anybody spends time on."""
    return tuple(key for key in _PARTS if any(key.value(one) > 0 for one in answer.contenders))


def ordered(answer: Answer, sorting: Sorting) -> list[Contender]:
    """Those that are ranked, sorted, what is not known last; behind them the others as they were planned."""
    found = sorted((one for one in answer.contenders if one.is_ranked), key=lambda one: one.name)
    key = next((key for key in keys(answer) if key.name == sorting.column), None)
    if sorting.column == "name" or key is None:
        found.sort(key=lambda one: one.name, reverse=sorting.is_reversed)
    else:
        sign = -1 if key.is_most_first is not sorting.is_reversed else 1
        known = [one for one in found if not math.isnan(key.value(one))]
        known.sort(key=lambda one: sign * key.value(one))
        found = [*known, *(one for one in found if math.isnan(key.value(one)))]
    return found + [one for one in answer.contenders if not one.is_ranked]


def is_downward(answer: Answer, sorting: Sorting) -> bool:
    """Whether the most stands first."""
    key = next((key for key in keys(answer) if key.name == sorting.column), _BEFORE[0])
    return key.is_most_first is not sorting.is_reversed


def moved(answer: Answer, sorting: Sorting, by: int, shown: tuple[str, ...]) -> Sorting:
    """By the column next to it among those that are ``shown``, in its natural order; stops at either end."""
    names = [key.name for key in keys(answer) if key.name in shown]
    if not names:
        return sorting
    at = names.index(sorting.column) + by if sorting.column in names else 0
    name = names[min(max(at, 0), len(names) - 1)]
    return sorting if name == sorting.column else Sorting(name)
