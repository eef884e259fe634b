"""A number and what it is made of: a tree that works out to the number again, operation by operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from meshscope.units import NS_PER_S

Value = int | float


@dataclass(frozen=True)
class Figure:
    """One quantity. ``how`` is a key of OPERATIONS that makes ``value`` of the values of ``of``; "" for what was read.

    ``unit`` is ``ns``, ``bytes``, ``frac`` (shown in percent), a rate such as ``samples/s``, or a noun that is counted.
    """

    name: str
    value: Value
    unit: str = "ns"
    how: str = ""
    of: tuple[Figure, ...] = ()


def _sum(values: Sequence[Value]) -> Value:
    return sum(values) if _are_whole(values) else float(np.asarray(values, dtype=np.float64).sum())


def _are_whole(values: Sequence[Value]) -> bool:
    return all(isinstance(value, int) for value in values)


def _difference(values: Sequence[Value]) -> Value:
    first, *others = values
    return first - sum(others)


def _product(values: Sequence[Value]) -> Value:
    result, *others = values
    for value in others:
        result = result * value
    return result


def _quotient(values: Sequence[Value]) -> float:
    result, *others = values
    for value in others:
        result = result / value
    return float(result)


def _spread(values: Sequence[Value]) -> float:
    low, high = np.percentile(values, (25, 75))
    return float(high - low) / 2


def _mean(values: Sequence[Value]) -> float:
    """Added up in order, as the figures of a step's ranks are."""
    return float(np.add.reduceat(np.asarray(values, dtype=np.float64), [0])[0]) / len(values)


SUM, DIFFERENCE, PRODUCT, QUOTIENT = "sum", "difference", "product", "quotient"
ROUNDED, ROUNDED_QUOTIENT, RATE = "rounded", "rounded quotient", "quotient per second"
MEDIAN, P95, SPREAD, MEAN, MEAN_IN_ORDER = (
    "median",
    "95th percentile",
    "half the interquartile range",
    "mean",
    "mean of ranks",
)
LARGEST, LAST, MIDDLE = "largest", "last", "median (of two the smaller)"

OPERATIONS: dict[str, Callable[[Sequence[Value]], Value]] = {
    SUM: _sum,
    DIFFERENCE: _difference,
    PRODUCT: _product,
    QUOTIENT: _quotient,
    ROUNDED: lambda values: round(values[0]),
    ROUNDED_QUOTIENT: lambda values: round(values[0] / values[1]),
    RATE: lambda values: values[0] / values[1] * NS_PER_S,
    MEDIAN: lambda values: float(np.median(values)),
    P95: lambda values: float(np.percentile(values, 95)),
    SPREAD: _spread,
    MEAN: lambda values: float(np.mean(values)),
    MEAN_IN_ORDER: _mean,
    LARGEST: max,
    LAST: lambda values: values[-1],
    MIDDLE: lambda values: sorted(values)[(len(values) - 1) // 2],
}
SERIES = (MEDIAN, P95, SPREAD, MEAN, MEAN_IN_ORDER, LARGEST, LAST, MIDDLE)
"""Operations over many of a kind, which no formula writes out."""


def made(name: str, how: str, *of: Figure, unit: str = "ns") -> Figure:
    """The figure that an operation makes of others."""
    return Figure(name, OPERATIONS[how]([part.value for part in of]), unit, how, of)


def total(name: str, parts: Sequence[Figure], unit: str = "ns") -> Figure:
    """Parts added up; the part itself, by that name, where there is only one."""
    if len(parts) == 1:
        (only,) = parts
        return Figure(name, only.value, unit, only.how, only.of)
    return made(name, SUM, *parts, unit=unit)


def counted_of(count: int, noun: str) -> Figure:
    """How many there are of something: a divisor."""
    return Figure(noun, count, noun)
