"""Which times of a trace can be believed, whatever its format: bounds, and what lies years from the rest."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from meshscope.units import NS_PER_S

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

NO_TIME = "no time"
OUT_OF_RANGE = "time out of range"
RATHER_NANOSECONDS = "time out of range: are these nanoseconds? Chrome traces count microseconds"
TOO_EARLY = "negative time out of range"
NO_DURATION = "no duration"
NEGATIVE = "negative duration"
STRAY = "more than a day from the other events"
TOO_LONG = "lasts more than a day"
TORN = ("breakdown", "device events lie more than a day apart, in parts of which none is the larger")

DAY_NS = 86_400 * NS_PER_S
LATEST_NS = 2**62
"""The year 2116: sums of two such times still fit int64."""


def is_wide(times_ns: Ints) -> bool:
    """Whether times lie more than a day apart, first to last."""
    return len(times_ns) > 1 and int(times_ns.max()) - int(times_ns.min()) > DAY_NS


def is_torn(times_ns: Ints) -> bool:
    """Whether there is a gap of more than a day between two neighbouring times."""
    return is_wide(times_ns) and bool((np.diff(np.sort(times_ns)) > DAY_NS).any())


def strays(start_ns: Ints, weighs: Mask) -> Mask:
    """Rows outside the part that holds most rows that weigh (most rows, where that is even), shape (n,).

    Parts lie more than a day apart: no profiler records that long without one event. Nothing is a stray where no
    part is the larger; :func:`is_torn` tells.
    """
    order = np.argsort(start_ns, kind="stable")
    part = np.empty(len(order), dtype=np.int64)
    part[order] = np.concatenate(([0], np.cumsum(np.diff(start_ns[order]) > DAY_NS)))
    rows = np.bincount(part)
    weight = np.bincount(part[weighs], minlength=len(rows))
    ranked = sorted(zip(weight.tolist(), rows.tolist(), range(len(rows)), strict=True), reverse=True)
    if len(ranked) > 1 and ranked[0][:2] == ranked[1][:2]:
        return np.zeros(len(part), dtype=bool)
    apart: Mask = part != ranked[0][2]
    return apart
