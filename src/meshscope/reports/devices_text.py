"""The devices of ranks that drive several, in the text report."""

from __future__ import annotations

import math

from meshscope.analysis.several_devices import DeviceBreakdown
from meshscope.analysis.standing import shares
from meshscope.reports.columns import table, wrapped
from meshscope.units import counted, milliseconds, percent

MOST_DEVICES = 16
_PARTS = ("compute", "hidden", "exposed", "copy", "idle")


def device_lines(devices: tuple[DeviceBreakdown, ...]) -> list[str]:
    """A row for each device, in shares of its own span; nothing where every rank drives one."""
    if not devices:
        return []
    rows = []
    for one in devices[:MOST_DEVICES]:
        share = shares(one.total)
        cells = (percent(share.get(part, math.nan)) for part in _PARTS)
        rows.append((str(one.rank), str(one.device), milliseconds(one.total.span_ns), *cells))
    more = len(devices) - MOST_DEVICES
    said = "one process drives several devices, and its rank is the union of them; each device by itself, in % of its "
    lines = wrapped(f"{said}own first to last event:", indent="  ")
    lines += table(("rank", "device", "ms", *_PARTS), rows, indent="    ")
    return [*lines, *([f"    … {counted(more, 'more device')}"] if more > 0 else [])]
