"""What a column of a device log is: by its heading, or by its cells where there is none."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]

KNOWN = {
    # nvidia-smi --query-gpu
    "utilization.gpu": "utilization_frac",
    "utilization.memory": "memory_utilization_frac",
    "utilization.encoder": "encoder_utilization_frac",
    "utilization.decoder": "decoder_utilization_frac",
    "memory.used": "memory_used_bytes",
    "memory.free": "memory_free_bytes",
    "memory.total": "memory_total_bytes",
    "memory.reserved": "memory_reserved_bytes",
    "temperature.gpu": "temperature_c",
    "temperature.memory": "memory_temperature_c",
    "power.draw": "power_w",
    "power.draw.average": "power_average_w",
    "power.draw.instant": "power_instant_w",
    "power.limit": "power_limit_w",
    "enforced.power.limit": "power_limit_w",
    "clocks.sm": "sm_clock_hz",
    "clocks.current.sm": "sm_clock_hz",
    "clocks.mem": "memory_clock_hz",
    "clocks.current.memory": "memory_clock_hz",
    "clocks.gr": "graphics_clock_hz",
    "clocks.current.graphics": "graphics_clock_hz",
    "fan.speed": "fan_frac",
    # nvidia-smi dmon
    "pwr": "power_w",
    "gtemp": "temperature_c",
    "temp": "temperature_c",
    "mtemp": "memory_temperature_c",
    "sm": "utilization_frac",
    "mem": "memory_utilization_frac",
    "enc": "encoder_utilization_frac",
    "dec": "decoder_utilization_frac",
    "jpg": "jpeg_utilization_frac",
    "ofa": "optical_flow_utilization_frac",
    "mclk": "memory_clock_hz",
    "pclk": "sm_clock_hz",
    "fb": "memory_used_bytes",
    "bar1": "bar1_used_bytes",
    "ccpm": "protected_used_bytes",
    "rxpci": "pcie_rx_bytes_per_s",
    "txpci": "pcie_tx_bytes_per_s",
    # rocm-smi --csv
    "gpu use": "utilization_frac",
    "gpu memory use": "memory_used_frac",
    "gpu memory allocated": "memory_used_frac",
    "gpu memory read/write activity": "memory_utilization_frac",
    "average graphics package power": "power_w",
    "current socket graphics package power": "power_w",
    "temperature (sensor edge)": "temperature_c",
    "temperature (sensor junction)": "junction_temperature_c",
    "temperature (sensor memory)": "memory_temperature_c",
    "vram total memory": "memory_total_bytes",
    "vram total used memory": "memory_used_bytes",
}
"""Names of meshscope's own sensors wherever a column is one of them."""

TIMES = ("timestamp", "date", "time")
INDICES = ("index", "gpu", "device")
IDENTITIES = ("uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id", "serial", "gpu_serial")
MODELS = ("name", "gpu_name")
_TEXTS = (*TIMES, *INDICES, *IDENTITIES, *MODELS, "count", "driver_version", "vbios_version", "pstate")

_MIB = float(1 << 20)
_UNITS = {
    "%": ("_frac", 0.01),
    "VRAM%": ("_frac", 0.01),
    "B": ("_bytes", 1.0),
    "KiB": ("_bytes", 1024.0),
    "MiB": ("_bytes", _MIB),
    "GiB": ("_bytes", _MIB * 1024),
    "MB": ("_bytes", _MIB),  # dmon says MB of the frame buffer and counts MiB
    "MB/s": ("_bytes_per_s", 1e6),
    "KiB/s": ("_bytes_per_s", 1024.0),
    "W": ("_w", 1.0),
    "mW": ("_w", 0.001),
    "MHz": ("_hz", 1e6),
    "Mhz": ("_hz", 1e6),
    "C": ("_c", 1.0),
    "c": ("_c", 1.0),
}
_DEFAULTS = {"_frac": "%", "_bytes": "MiB", "_w": "W", "_hz": "MHz", "_c": "C", "_bytes_per_s": "MB/s"}
_HEADING = re.compile(r"^(?P<name>.*?)\s*(?:\[(?P<square>[^\]]*)\]|\((?P<round>[^()]*)\))?$")
_CELL = re.compile(r"^(?P<number>[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)\s*(?P<unit>%|[A-Za-z]+(?:/s)?)?$")
_WORDS = re.compile(r"\W+")


@dataclass(frozen=True, eq=False)
class Column:
    """One column of n readings as ``field`` (its unit is the suffix); what is missing is NaN.

    ``why`` tells what stands in the cells of a column without a single number.
    """

    field: str
    value: Values
    why: str = ""


def bare(heading: str) -> str:
    """A heading without its unit, in lower case: ``memory.used [MiB]`` → ``memory.used``."""
    found = _HEADING.match(heading.strip())
    return (found["name"] if found and found["name"] else heading).strip().lower()


def is_reading(heading: str) -> bool:
    """Whether a heading is nvidia-smi's or rocm-smi's for a sensor; dmon's short words (``mem``) may be anybody's."""
    name = bare(heading)
    return name in KNOWN and ("." in name or " " in name)


def unit_of(cell: str) -> str:
    """The unit written in a cell, "" for none; None of the cells that hold no number has one."""
    found = _CELL.match(cell)
    return (found["unit"] or "") if found else ""


def is_number(cell: str) -> bool:
    return _CELL.match(cell) is not None


def named(heading: str, cells: Sequence[str]) -> Column | None:
    """A column by its heading; None for text that is no reading (names, bus ids, versions)."""
    name = bare(heading)
    if name in _TEXTS:
        return None
    found = _HEADING.match(heading.strip())
    unit = (found["square"] or found["round"] or "") if found else ""
    field = KNOWN.get(name, "")
    default = next((_DEFAULTS[suffix] for suffix in reversed(_DEFAULTS) if field.endswith(suffix)), "")
    units = {unit_of(cell) for cell in cells} - {""}
    unit = unit if unit in _UNITS else next(iter(units & _UNITS.keys()), default)
    if not field:
        if not any(map(is_number, cells)):
            return None
        field = _WORDS.sub("_", name).strip("_") + (_UNITS[unit][0] if unit in _UNITS else "")
    return column(field, cells, unit)


def column(field: str, cells: Sequence[str], unit: str) -> Column:
    """Cells as numbers. A unit in the cell itself goes before the heading's."""
    value = np.array([_number(cell, unit) for cell in cells], dtype=np.float64)
    why = ""
    if not np.isfinite(value).any():
        said = next((cell for cell in cells if cell), "nothing")
        why = f"the log has {said} for it"
    return Column(field, value, why)


@lru_cache(maxsize=65_536)  # cells repeat: a sensor has few different readings
def _number(cell: str, unit: str) -> float:
    found = _CELL.match(cell)
    if found is None:
        return math.nan
    written = found["unit"] or unit
    _, scale = _UNITS.get(written, ("", 1.0))
    value = float(found["number"]) * scale
    return value if math.isfinite(value) else math.nan


def suffix_of(unit: str) -> str:
    """``MiB`` → ``_bytes``; "" for a unit that is not known."""
    return _UNITS[unit][0] if unit in _UNITS else ""
