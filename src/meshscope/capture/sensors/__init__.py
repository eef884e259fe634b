"""What devices say of themselves while ranks run: one file per source of readings.

A source is asked at every beat for everything it has. It says once of each field that failed why, goes on with the
others, and never raises: a training run must not end because a sensor did.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol


@dataclass
class Readings:
    """One beat: field values per device (``gpu 0``, ``rank 0``, ``host``), and fields that failed from now on."""

    values: dict[str, dict[str, float]] = field(default_factory=dict)
    failed: list[tuple[str, str, str]] = field(default_factory=list)

    def add(self, device: str, name: str, value: float) -> None:
        self.values.setdefault(device, {})[name] = value

    def fail(self, device: str, name: str, why: str) -> None:
        self.failed.append((device, name, why))


class Source(Protocol):
    def read(self, into: Readings) -> None:
        """Everything this source can tell now."""

    def close(self) -> None: ...
