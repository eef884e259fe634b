"""Numbers as people read them. Every function takes the unit its name says and returns plain text."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

NS_PER_US = 1_000
NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000

UNKNOWN = "–"
UNTOLD = "not told"

_BYTES = ("B", "kB", "MB", "GB", "TB", "PB")


def _digits(value: float) -> str:
    """Three significant digits without an exponent: 1.23, 12.3, 123, 1234."""
    size = abs(value)
    if size >= 99.95:
        return f"{value:.0f}"
    return f"{value:.1f}" if size >= 9.995 else f"{value:.2f}"


def duration(value_ns: float) -> str:
    """Nanoseconds with the unit that fits: ``"147 ms"``."""
    if math.isnan(value_ns):
        return UNKNOWN
    size = abs(value_ns)
    for limit, unit in ((NS_PER_US, "ns"), (NS_PER_MS, "µs"), (NS_PER_S, "ms")):
        if size < limit * 0.9995:
            return f"{_digits(value_ns / limit * 1000)} {unit}" if unit != "ns" else f"{value_ns:.0f} ns"
    if size < 120 * NS_PER_S:
        return f"{_digits(value_ns / NS_PER_S)} s"
    minutes, seconds = divmod(round(value_ns / NS_PER_S), 60)
    return f"{minutes} min {seconds:02d} s"


def milliseconds(value_ns: float) -> str:
    """Nanoseconds as a bare number of milliseconds, for a column whose heading carries the unit."""
    return UNKNOWN if math.isnan(value_ns) else _digits(value_ns / NS_PER_MS)


def size(value_bytes: float) -> str:
    """Bytes in decimal units (as GPU vendors count): ``"10.7 MB"``."""
    if math.isnan(value_bytes):
        return UNKNOWN
    scaled, index = float(value_bytes), 0
    while abs(scaled) >= 999.5 and index < len(_BYTES) - 1:
        scaled, index = scaled / 1000, index + 1
    return f"{value_bytes:.0f} B" if index == 0 else f"{_digits(scaled)} {_BYTES[index]}"


@dataclass(frozen=True)
class Unit:
    """What several numbers are written in alike: ``each`` nanoseconds or bytes are one ``name``."""

    name: str
    each: float

    def figure(self, value: float, most: int = 6) -> str:
        """A bare number as elsewhere, but of three significant digits below 0.1 too: ``12.3``, ``0.43``, ``0.0321``.

        With at most so many decimals; a whole number of ns or bytes has none.
        """
        if math.isnan(value):
            return UNKNOWN
        scaled = abs(value) / self.each
        wanted = 0 if not scaled else next((places for least, places in _DECIMALS if scaled >= least), 6)
        return f"{value / self.each:.{0 if self.each == 1 else min(wanted, most)}f}"

    def written(self, value: float, most: int = 6) -> str:
        """With the unit behind it: ``"0.43 ms"``."""
        return UNKNOWN if math.isnan(value) else f"{self.figure(value, most)} {self.name}"


_DECIMALS = ((99.95, 0), (9.995, 1), (0.0995, 2), (0.00995, 4), (0.000995, 5))
MILLISECONDS = Unit("ms", NS_PER_MS)
_TIMES = (Unit("ns", 1), Unit("µs", NS_PER_US), MILLISECONDS, Unit("s", NS_PER_S))
_SIZES = tuple(Unit(name, 1000.0**power) for power, name in enumerate(_BYTES))


def time_unit(values_ns: Iterable[float]) -> Unit:
    """What durations that stand together are written in: the unit that fits the longest."""
    return _fitting(values_ns, _TIMES)


def size_unit(values_bytes: Iterable[float]) -> Unit:
    """What sizes that stand together are written in: the unit that fits the largest."""
    return _fitting(values_bytes, _SIZES)


def _fitting(values: Iterable[float], units: tuple[Unit, ...]) -> Unit:
    largest = max((abs(value) for value in values if not math.isnan(value)), default=0.0)
    return next((unit for unit in reversed(units) if largest >= 0.9995 * unit.each), units[0])


def durations(*values_ns: float) -> tuple[str, ...]:
    """Durations that are read together, all in the unit of the longest: ``("0.34 ms", "12.1 ms")``."""
    unit = time_unit(values_ns)
    return tuple(unit.written(value) for value in values_ns)


def duration_of(part_ns: float, whole_ns: float) -> str:
    """A part beside its whole, in one unit: ``"0.34 of 12.1 ms"``."""
    unit = time_unit((part_ns, whole_ns))
    return f"{unit.figure(part_ns)} of {unit.written(whole_ns)}"


def rate(value: float) -> str:
    """A bare rate, with thousands set apart by a thin space above 9 999."""
    if math.isnan(value):
        return UNKNOWN
    return f"{value:,.0f}".replace(",", " ") if abs(value) >= 9999.5 else _digits(value)


def percent(fraction: float) -> str:
    """A fraction as a percentage with one decimal: ``"8.1 %"``."""
    return UNKNOWN if math.isnan(fraction) else f"{fraction * 100:.1f} %"


def ratio(part: float, whole: float) -> float:
    """``part / whole``; NaN where the whole is zero or unknown, since a share of nothing is no number."""
    if not whole or math.isnan(whole) or math.isnan(part):
        return math.nan
    return part / whole


def counted(count: int, noun: str, plural: str = "") -> str:
    """``1 step``, ``2 steps``, ``2 passes``: a noun whose plural ends in s, or the plural given."""
    return f"{count} {noun}" if count == 1 else f"{count} {plural or noun + 's'}"


def ranges(values: Iterable[int], most: int | None = None) -> str:
    """Whole numbers as ranges, ``"20–21, 40–41"``: the last ``most`` of them where that is given; "" for none."""
    found: list[list[int]] = []
    for value in sorted(set(values)):
        if found and value == found[-1][1] + 1:
            found[-1][1] = value
        else:
            found.append([value, value])
    words = [f"{low}–{high}" if high > low else f"{low}" for low, high in found]
    return ", ".join(words if most is None or len(words) <= most else ["…", *words[-most:]])


def gaps(present: Iterable[int], count: int) -> list[tuple[int, int]]:
    """Which of the numbers from 0 to ``count`` − 1 are not there, as first and last of each row of them: a file may say
    that there are a billion."""
    inside = sorted({number for number in present if 0 <= number < count})
    bounds = zip([-1, *inside], [*inside, count], strict=True)
    return [(before + 1, after - 1) for before, after in bounds if after - before > 1]


def gap_ranges(missing: Iterable[tuple[int, int]]) -> str:
    """``"1–4, 7"`` of what :func:`gaps` finds."""
    return ", ".join(f"{first}–{last}" if last > first else f"{first}" for first, last in missing)


def reach(low: str, high: str) -> str:
    """From one written value to another; the value alone where both read alike: ``"27.5 MB"``."""
    return low if low == high else f"{low} to {high}"


def printable(text: str) -> str:
    """Text from outside in which nothing can steer a terminal, and of which every terminal knows how wide it is.

    One for one, these become ``�``: control and format characters (C0, DEL, C1, bidirectional marks, joiners, line
    separators, surrogates), those that Unicode has not assigned, and those that terminals count differently: spacing
    marks, Hangul vowels and finals by themselves, variation selectors, skin tones, halves of flags, a few signs. Of
    accents on one letter the first three stay.
    """
    if text.isascii() and text.isprintable():
        return text
    if _USUAL.fullmatch(text):
        return text
    shown: list[str] = []
    marks = _MOST_MARKS  # an accent at the beginning would land on what stands before the text
    for c in text:
        kind = _kind(c)
        marks = marks + 1 if kind == _MARK else 0
        shown.append("�" if kind == _HARMFUL or marks > _MOST_MARKS else c)
    return "".join(shown)


_MOST_MARKS = 3
_SOUND, _MARK, _HARMFUL = range(3)

# Scripts and signs of which all terminals think alike: most text ends here.
_USUAL = re.compile(
    "[ -~\xa0-\xac\xae-\u02ff\u0370-\u0377\u0391-\u03a1\u03a3-\u0482\u048a-\u052f\u2010-\u2027\u2030-\u205e"
    "\u2190-\u22ff\u2500-\u25fc\u3041-\u3096\u30a0-\u30ff\u4e00-\u9fff\uac00-\ud7a3]*"
)

_UNSURE = re.compile(
    "[\u1160-\u11ff\ud7b0-\ud7ff\u2630-\u2637\u268a-\u268f\u3164\u4dc0-\u4dff\ufe00-\ufe0f\uffa0"
    "\U0001d300-\U0001d37f\U0001f1e6-\U0001f1ff\U0001f3fb-\U0001f3ff\U000e0100-\U000e01ef]"
)


@lru_cache(maxsize=4096)
def _kind(c: str) -> int:
    category = unicodedata.category(c)
    if category in ("Cc", "Cf", "Cs", "Cn", "Zl", "Zp", "Mc") or _UNSURE.match(c):
        return _HARMFUL
    return _MARK if category in ("Mn", "Me") else _SOUND
