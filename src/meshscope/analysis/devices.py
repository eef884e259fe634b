"""Sensor readings per device: utilization, memory, power, clocks, host CPU and resident memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from meshscope.run import Run

Times = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]


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


@dataclass(frozen=True, eq=False)
class DeviceGroup:
    """One field of several devices of one kind: ``members`` by how far their newest reading is from the median one.

    ``kind`` is the first word of their names. ``minimum``, ``median`` and ``maximum`` are of the newest readings,
    ``value`` is the mean over devices in equal parts of the time, NaN where nothing was read.
    """

    kind: str
    field: str
    members: tuple[DeviceField, ...]
    minimum: float
    median: float
    maximum: float
    value: npt.NDArray[np.float64]


def devices(run: Run) -> Devices:
    """Fields by device then name."""
    failed = {(entry.device, entry.field): entry.why for entry in run.sensor_failures}
    found = [_field(device, name, *run.samples.series(device, name)) for device, name in run.samples.each()]
    return Devices(
        fields=tuple(field for field in found if field is not None),
        failed=tuple((device, name, why) for (device, name), why in sorted(failed.items())),
    )


def _field(device: str, name: str, time_ns: Times, value: Values) -> DeviceField | None:
    is_known = np.isfinite(value)
    time_ns, value = time_ns[is_known], value[is_known]
    if not len(value):
        return None
    return DeviceField(
        device=device,
        field=name,
        count=len(value),
        last=float(value[-1]),
        mean=float(value.mean()),
        maximum=float(value.max()),
        time_ns=time_ns,
        value=value,
    )


def device_groups(fields: Sequence[DeviceField], slices: int) -> tuple[DeviceGroup, ...]:
    """Fields of devices of one kind together, in the order of the first of each; means in at most ``slices`` parts."""
    found: dict[tuple[str, str], list[DeviceField]] = {}
    for reading in fields:
        found.setdefault((reading.device.partition(" ")[0], reading.field), []).append(reading)
    return tuple(_group(kind, name, alike, slices) for (kind, name), alike in found.items())


def _group(kind: str, name: str, alike: list[DeviceField], slices: int) -> DeviceGroup:
    last = np.array([reading.last for reading in alike])
    median = float(np.median(last))
    furthest = sorted(alike, key=lambda reading: -abs(reading.last - median))
    return DeviceGroup(
        kind, name, tuple(furthest), float(last.min()), median, float(last.max()), _mean_course(alike, slices)
    )


def _mean_course(alike: list[DeviceField], slices: int) -> Values:
    time_ns = np.concatenate([reading.time_ns for reading in alike])
    slices = min(slices, max(reading.count for reading in alike))
    place = np.minimum((time_ns - time_ns.min()) // (int(np.ptp(time_ns)) // slices + 1), slices - 1)
    counts = np.bincount(place, minlength=slices)
    sums = np.bincount(place, np.concatenate([reading.value for reading in alike]), slices)
    mean: Values = np.divide(sums, counts, out=np.full(slices, math.nan), where=counts > 0)
    return mean
