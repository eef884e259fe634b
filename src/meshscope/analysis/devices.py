"""Sensor readings per device: utilization, memory, power, clocks, host CPU and resident memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from meshscope.run import Run


@dataclass(frozen=True, eq=False)
class DeviceField:
    """One field of one device; ``time_ns`` and ``value`` are the series, shape (count,)."""

    device: str
    field: str
    count: int
    last: float
    mean: float
    maximum: float
    time_ns: npt.NDArray[np.int64]
    value: npt.NDArray[np.float64]


@dataclass(frozen=True)
class Devices:
    """``failed`` lists (device, field, why) for what could not be read."""

    fields: tuple[DeviceField, ...]
    failed: tuple[tuple[str, str, str], ...]


def devices(run: Run) -> Devices:
    """Fields by device then name."""
    raise NotImplementedError
