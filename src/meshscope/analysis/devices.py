"""Sensor readings per device: utilization, memory, power, clocks, host CPU and resident memory."""

from __future__ import annotations

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


def devices(run: Run) -> Devices:
    """Fields by device then name."""
    samples = run.samples
    found = [
        _field(device, name, *samples.series(device, name)) for device in samples.devices for name in samples.fields
    ]
    failed = {(entry.device, entry.field): entry.why for entry in run.sensor_failures}
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
