"""How far reading has come, counted where the bytes pass by; who reads in a worker looks at it from beside.

A reader adds what it has taken from its file (as it lies on the disk, packed or not) and how many events it has met.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass
class Meter:
    """Counts of one reading; written by the thread that reads, looked at by others."""

    read_bytes: int = 0
    events: int = 0


_METER: ContextVar[Meter | None] = ContextVar("meter", default=None)


@contextmanager
def metered(meter: Meter) -> Iterator[Meter]:
    """Count what is read in this context."""
    token = _METER.set(meter)
    try:
        yield meter
    finally:
        _METER.reset(token)


def advance(*, read_bytes: int = 0, events: int = 0) -> None:
    """Count; does nothing where nobody looks."""
    meter = _METER.get()
    if meter is not None:
        meter.read_bytes += read_bytes
        meter.events += events
