"""How far two ranks' records of one queue of collectives are apart: the shift at which they are the same ones.

A window may begin one or several collectives later than its peer's. At the right shift the names and sizes agree, the
ends agree but for the clocks' offset, and the spans overlap, because no rank leaves a collective before all have come.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from meshscope.analysis.calls import Calls
from meshscope.analysis.clocks import tolerance_ns

Ints = npt.NDArray[np.int64]

MOST_SHIFT = 64
SAMPLE = 1024
"""Shifts are tried on so many collectives, spread over the overlap; the one that is chosen is checked on all."""

FEWEST = 3
"""Two collectives agree on some offset at any shift: without a common clock it takes three."""

ENDS_NS = 500_000
"""Ranks leave a collective within this, or within a tenth of its transfer."""

_OVERLAPPING_FRAC = 0.9

NAMES_DIFFER = "their names or sizes differ between ranks at every shift"
NO_OVERLAP = "in order, their spans do not overlap, so they are not the same ones"
TOO_FEW = f"ranks have clocks of their own, and fewer than {FEWEST} collectives to compare them by"
AMBIGUOUS = "ranks have clocks of their own, and several shifts fit equally well"
ENDS_DIFFER = "in order, their ends do not agree, and the trace does not say their process group"


@dataclass(frozen=True)
class Fit:
    """The other's collective i + ``shift`` is the reference's collective i; its clock is ``offset_ns`` ahead.

    ``spread_ns`` is how far the ends lie from that offset, in the mean; ``overlap_frac`` the share that overlaps.
    ``ends_agree``: the ends differ, in the median, by no more than ranks take to leave a collective.
    """

    shift: int
    offset_ns: int
    spread_ns: float
    ends_agree: bool
    overlap_frac: float
    same_steps: bool

    @property
    def overlaps(self) -> bool:
        return self.overlap_frac >= _OVERLAPPING_FRAC


def paired(a: Calls, b: Calls, *, offset_ns: int | None, knows_group: bool, shares_clock: bool = False) -> Fit | str:
    """The fit of ``b`` to the reference ``a``, or why there is none.

    ``offset_ns`` is what b's clock is ahead of a's, where other collectives have told it. Else one common clock is
    tried first: that is so where the traces name one machine (``shares_clock``), and has to show in the ends elsewhere.
    """
    b = relabelled(b, a.labels)
    if offset_ns is not None:
        return _with_offset(a, b, offset_ns, knows_group=knows_group)
    same_clock = _with_offset(a, b, 0, knows_group=knows_group and shares_clock)
    if isinstance(same_clock, Fit):
        return same_clock
    apart = _without_clock(a, b)
    return same_clock if shares_clock and isinstance(apart, str) else apart


def relabelled(b: Calls, labels: tuple[str, ...]) -> Calls:
    """``b`` with its labels numbered as in ``labels``; what is not there becomes −2."""
    place = {label: number for number, label in enumerate(labels)}
    numbers = np.array([place.get(label, -2) for label in b.labels] or [-2], dtype=np.int64)
    return Calls(**{**vars(b), "label": numbers[b.label] if len(b) else b.label, "labels": labels})


def _with_offset(a: Calls, b: Calls, offset_ns: int, *, knows_group: bool) -> Fit | str:
    """By the clock: at the right shift ends differ least."""
    spreads = [
        (float(np.abs(both.apart_ns - offset_ns).mean()), abs(shift), shift)
        for shift in _near(a, b, offset_ns)
        if (both := _both(a, b, shift)) is not None
    ]
    if not spreads:
        return NAMES_DIFFER
    *_, best = min(spreads)
    whole = _fit(a, b, best, offset_ns, is_whole=True)
    if whole is None:
        return NAMES_DIFFER
    if not whole.overlaps:
        return NO_OVERLAP
    return whole if knows_group or whole.ends_agree else ENDS_DIFFER


def _without_clock(a: Calls, b: Calls) -> Fit | str:
    """By the pattern of the ends: only at the right shift do they differ by one offset."""
    if min(len(a), len(b)) < FEWEST:
        return TOO_FEW
    fits = [fit for shift in _shifts(a, b) if (fit := _fit(a, b, shift, None)) is not None]
    if not fits:
        return NAMES_DIFFER
    fits = [fit for fit in fits if fit.overlaps]
    if not fits:
        return NO_OVERLAP
    best = min(fits, key=lambda fit: (fit.spread_ns, abs(fit.shift)))
    tied = [fit for fit in fits if fit.spread_ns < 2 * best.spread_ns + 2_000]
    if len(tied) > 1:
        tied = [fit for fit in tied if fit.same_steps]
    if len(tied) != 1:
        return AMBIGUOUS
    whole = _fit(a, b, tied[0].shift, None, is_whole=True)
    if whole is None:
        return NAMES_DIFFER
    return whole if whole.overlaps and whole.ends_agree else NO_OVERLAP


def _near(a: Calls, b: Calls, offset_ns: int) -> list[int]:
    """Shifts around the one at which most of b's ends are the nearest to a's."""
    at = np.unique(np.linspace(0, len(a) - 1, min(len(a), SAMPLE)).astype(np.int64))
    ends = np.sort(b.end_ns - offset_ns)
    right = np.clip(np.searchsorted(ends, a.end_ns[at]), 1, max(len(ends) - 1, 1)) if len(ends) > 1 else at * 0
    left = np.maximum(right - 1, 0)
    is_left = np.abs(ends[left] - a.end_ns[at]) <= np.abs(ends[right] - a.end_ns[at])
    shifts, count = np.unique(np.where(is_left, left, right) - at, return_counts=True)
    middle = int(shifts[count.argmax()])
    return [shift for shift in range(middle - 2, middle + 3) if _bounds(a, b, shift) is not None]


def _shifts(a: Calls, b: Calls) -> list[int]:
    more = len(b) - len(a)
    wanted = {*range(-MOST_SHIFT, MOST_SHIFT + 1), *range(more - MOST_SHIFT, more + MOST_SHIFT + 1)}
    shortest = max(FEWEST, math.ceil(min(len(a), len(b)) / 2))
    bounds = ((shift, _bounds(a, b, shift)) for shift in sorted(wanted))
    return [shift for shift, found in bounds if found is not None and found[1] - found[0] >= shortest]


def _bounds(a: Calls, b: Calls, shift: int) -> tuple[int, int] | None:
    """The range of a's collectives that b has too at a shift."""
    low, high = max(0, -shift), min(len(a), len(b) - shift)
    return (low, high) if high > low else None


@dataclass(frozen=True, eq=False)
class _Both:
    """Collectives of the reference, ``at``, and the other's that they are at a shift, ``to``, shape (k,) each.

    ``apart_ns`` is by how much the other's end later, by its own clock.
    """

    at: Ints
    to: Ints
    apart_ns: Ints


def _both(a: Calls, b: Calls, shift: int, *, is_whole: bool = False) -> _Both | None:
    """A sample of them, or all. None where there are none, or names or sizes disagree."""
    bounds = _bounds(a, b, shift)
    if bounds is None:
        return None
    low, high = bounds
    at = np.arange(low, high)
    if not is_whole and high - low > SAMPLE:
        at = np.unique(np.linspace(low, high - 1, SAMPLE).astype(np.int64))
    to = at + shift
    if (a.label[at] != b.label[to]).any() or _conflict(a.size_bytes[at], b.size_bytes[to]):
        return None
    return _Both(at, to, b.end_ns[to] - a.end_ns[at])


def _fit(a: Calls, b: Calls, shift: int, offset_ns: int | None, *, is_whole: bool = False) -> Fit | None:
    """None where names or sizes disagree."""
    both = _both(a, b, shift, is_whole=is_whole)
    if both is None:
        return None
    at, to = both.at, both.to
    offset = int(_median(both.apart_ns)) if offset_ns is None else offset_ns
    late = np.maximum(a.start_ns[at], b.start_ns[to] - offset)
    early = np.minimum(a.end_ns[at], b.end_ns[to] - offset)
    shortest = np.minimum(a.end_ns[at] - a.start_ns[at], b.end_ns[to] - b.start_ns[to])
    away = np.abs(both.apart_ns - offset)
    spread_ns = float(away.mean())
    return Fit(
        shift=shift,
        offset_ns=offset,
        spread_ns=spread_ns,
        ends_agree=_median(away) <= max(ENDS_NS, 0.1 * _median(shortest)),
        overlap_frac=float((late <= early + tolerance_ns(spread_ns)).mean()),
        same_steps=not _conflict(a.step[at], b.step[to]),
    )


def _median(values: Ints) -> float:
    """As numpy has it, which takes several times as long over a few values."""
    ordered, middle = np.sort(values), len(values) // 2
    if len(values) % 2:
        return float(ordered[middle])
    return (float(ordered[middle - 1]) + float(ordered[middle])) / 2


def _conflict(a: npt.NDArray[np.int64], b: npt.NDArray[np.int64]) -> bool:
    """Whether two known values differ anywhere."""
    return bool(((a != b) & (a >= 0) & (b >= 0)).any())
