"""Sensors, in words and as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from meshscope.analysis.devices import DeviceField
from meshscope.ui.panel import Help
from meshscope.ui.sheet import Sheet, sheet

HELP = Help(
    "One line per sensor of each device, of the host and of every rank's process: its readings from left (first) to "
    "right (newest), then the newest one.",
    columns=(
        ("util", "share of the time in which the device ran anything"),
        ("memory", "bytes in use on the device, by anybody; of: its whole memory"),
        ("power", "watts; of: its limit"),
        ("cpu", "cores' worth of time that was used"),
        ("rss", "resident bytes of a rank's process (one for all JAX ranks)"),
        ("temp", "degrees Celsius"),
        ("clock", "MHz of the streaming multiprocessors"),
        ("max", "the highest reading, where no capacity is known"),
    ),
    states=(("No sensor could be read", "which one, and why"),),
)

_COLUMNS = ("device", "field", "count", "mean", "max", "last", "capacity")


def sensors(found: Sequence[DeviceField], capacity: Mapping[tuple[str, str], float]) -> Sheet:
    """A row per sensor, in the unit that its field's name ends in; all readings are in ``readings``."""
    rows = [
        [one.device, one.field, one.count, one.mean, one.maximum, one.last, capacity.get((one.device, one.field))]
        for one in found
    ]
    readings = [
        (one.device, one.field, time_ns, value)
        for one in found
        for time_ns, value in zip(one.time_ns.tolist(), one.value.tolist(), strict=True)
    ]
    more = {"readings": sheet(("device", "field", "time_ns", "value"), readings)}
    return sheet(_COLUMNS, rows, more=more)
