"""Collectives that somebody timed (``data/sweeps.toml``), and what lies between the sizes and ranks they timed.

Between two sizes a time is interpolated on doubly logarithmic paper; beyond the largest it grows with the size, below
the smallest it stays. Where several timed the same, their geometric mean counts. Noise only ever adds, so a time is no
longer than that of any larger message.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from meshscope.advisor.tables import table


@dataclass(frozen=True)
class Sweep:
    """Times of messages of ``first_bytes``, twice that, and so on."""

    first_bytes: float
    times_s: tuple[float, ...]
    where: str

    def time_s(self, size_bytes: float) -> float:
        """Of a message of any size."""
        at = math.log2(max(size_bytes, self.first_bytes) / self.first_bytes)
        last = len(self.times_s) - 1
        if at >= last:
            return float(self.times_s[last] * 2.0 ** (at - last))
        low, part = int(at), at % 1.0
        return math.exp((1 - part) * math.log(self.times_s[low]) + part * math.log(self.times_s[low + 1]))

    @property
    def begun_s(self) -> float:
        """What a message takes that has hardly anything in it."""
        return self.times_s[0]


def sweeps(link: str, kind: str) -> dict[int, tuple[Sweep, ...]]:
    """Those of one kind of collective over one link, by ranks; empty where nobody timed any."""
    return _sweeps().get((link, kind), {})


def mean_s(several: Sequence[Sweep], size_bytes: float) -> float:
    """The geometric mean of their times; those that begin above ``size_bytes`` count where no other begins below."""
    inside = [sweep for sweep in several if sweep.first_bytes <= size_bytes] or several
    return math.exp(math.fsum(math.log(sweep.time_s(size_bytes)) for sweep in inside) / len(inside))


@cache
def _sweeps() -> dict[tuple[str, str], dict[int, tuple[Sweep, ...]]]:
    found: dict[tuple[str, str], dict[int, tuple[Sweep, ...]]] = {}
    for entry in table("sweeps")["sweep"]:
        sweep = Sweep(entry["first_kib"] * 1024.0, monotone([us * 1e-6 for us in entry["us"]]), entry["where"])
        by_ranks = found.setdefault((entry["link"], entry["kind"]), {})
        by_ranks[entry["ranks"]] = (*by_ranks.get(entry["ranks"], ()), sweep)
    return found


def monotone(times_s: Sequence[float]) -> tuple[float, ...]:
    """Each the least of itself and all after it."""
    kept: list[float] = []
    for time_s in reversed(times_s):
        kept.append(min(time_s, kept[-1]) if kept else time_s)
    return tuple(reversed(kept))
