"""Times of a device log: written by a machine whose zone the log does not tell, in one cell or in two.

They are taken as if that machine's clock were UTC: what lies between two readings is right (but over a change of
clocks), and when they were made is not known.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

import numpy as np
import numpy.typing as npt

from meshscope.readers.decimals import RATHER_NS, UNKNOWN_NS, nanoseconds

Ints = npt.NDArray[np.int64]

_MOST_NS = 1 << 62
_DAY_NS = 86_400_000_000_000
_EPOCH = date(1970, 1, 1).toordinal()
_YEAR_FIRST = re.compile(r"^(\d{4})([-/.]?)(\d{1,2})\2(\d{1,2})$")
_YEAR_LAST = re.compile(r"^(\d{1,2})[-/.](\d{1,2})[-/.](\d{4})$")
_CLOCK = re.compile(r"^(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?$")
_ISO = re.compile(r"^\d{4}-\d\d-\d\dT?\s?\d\d:\d\d:\d\d(\.\d+)?\s*(Z|[+-]\d\d:?\d\d)$")
_UNIX = re.compile(r"^\d{9,11}(\.\d+)?$")


@dataclass(frozen=True, eq=False)
class Times:
    """``time_ns`` of n rows, ``UNKNOWN_NS`` where a cell is no time; ``is_unix`` when the zone is known.

    ``note`` says what had to be assumed.
    """

    time_ns: Ints
    is_unix: bool
    note: str = ""


def is_date(cell: str) -> bool:
    return _YEAR_FIRST.match(cell) is not None or _YEAR_LAST.match(cell) is not None


def is_clock(cell: str) -> bool:
    return _CLOCK.match(cell) is not None


def is_time(cell: str) -> bool:
    """Whether a cell holds a date and a clock, or a unix time."""
    day, _, clock = cell.partition(" ")
    return (is_date(day) and is_clock(clock)) or _ISO.match(cell) is not None or _UNIX.match(cell) is not None


def times(cells: Sequence[str]) -> Times:
    """Of cells with a date and a clock (a split one joined by a space), clocks alone, or unix seconds."""
    if cells and all(_UNIX.match(cell) for cell in cells):
        # Unix seconds, a million times over, are read from their digits like the microseconds of a trace.
        time_ns = nanoseconds([f"{cell}e6".encode() for cell in cells])
        return Times(np.where(time_ns > RATHER_NS, time_ns, UNKNOWN_NS), is_unix=True)
    if cells and all(_ISO.match(cell) for cell in cells):
        return Times(np.array([_iso_ns(cell) for cell in cells], dtype=np.int64), is_unix=True)
    if cells and all(is_clock(cell) for cell in cells):
        return Times(_over_midnight(np.array([_clock_ns(cell) for cell in cells], dtype=np.int64)), is_unix=False,
                     note="the log has clock times without a date")  # fmt: skip
    is_day_first, note = _order([cell.partition(" ")[0] for cell in cells])
    found = [_local_ns(cell, is_day_first=is_day_first) for cell in cells]
    return Times(np.array(found, dtype=np.int64), is_unix=False, note=note)


def _order(days: Sequence[str]) -> tuple[bool, str]:
    """Whether the day comes before the month where the year is last, and what to say when nothing tells it."""
    found = [match for day in dict.fromkeys(days) if (match := _YEAR_LAST.match(day))]
    if any(int(match[1]) > 12 for match in found):
        return True, ""
    if len(found) < 2 or any(int(match[2]) > 12 for match in found):
        return False, ""
    return False, "its dates are taken as month, day, year: none of them says which is which"


def _local_ns(cell: str, *, is_day_first: bool) -> int:
    day, _, clock = cell.partition(" ")
    year_first, year_last = _YEAR_FIRST.match(day), _YEAR_LAST.match(day)
    if year_first:
        parts = (int(year_first[1]), int(year_first[3]), int(year_first[4]))
    elif year_last:
        first, second = int(year_last[1]), int(year_last[2])
        parts = (int(year_last[3]), second, first) if is_day_first else (int(year_last[3]), first, second)
    else:
        return int(UNKNOWN_NS)
    clock_ns = _clock_ns(clock)
    try:
        days = date(*parts).toordinal() - _EPOCH
    except ValueError:
        return int(UNKNOWN_NS)
    return _fitting(days * _DAY_NS + clock_ns) if clock_ns != UNKNOWN_NS else int(UNKNOWN_NS)


def _clock_ns(cell: str) -> int:
    found = _CLOCK.match(cell.strip())
    if found is None:
        return int(UNKNOWN_NS)
    seconds = int(found[1]) * 3600 + int(found[2]) * 60 + int(found[3] or 0)
    return seconds * 1_000_000_000 + int((found[4] or "0").ljust(9, "0"))


def _over_midnight(time_ns: Ints) -> Ints:
    """A clock that jumps back by more than half a day has passed midnight."""
    days = np.cumsum(np.diff(time_ns, prepend=time_ns[:1]) < -_DAY_NS // 2)
    return time_ns + days * _DAY_NS


def _iso_ns(cell: str) -> int:
    moment = datetime.fromisoformat(cell.replace(" Z", "Z"))
    whole = moment.replace(microsecond=0)
    fraction = re.search(r"\.(\d+)", cell)
    digits = (fraction[1] if fraction else "0")[:9].ljust(9, "0")
    return _fitting(int((whole - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()) * 1_000_000_000 + int(digits))


def _fitting(time_ns: int) -> int:
    """A time that later sums still hold: no log is of the year 2116 or of 1824."""
    return time_ns if abs(time_ns) < _MOST_NS else int(UNKNOWN_NS)
