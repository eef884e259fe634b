"""Devices and links as files describe them: those that come with the package, and the user's own.

A file is TOML with ``[[device]]``, ``[[link]]`` and ``[[network]]`` tables. A figure is written with where it comes
from::

    [[device]]
    name = "H100-80GB"
    names = ["h100", "h100 80"]        # what it is called: each a set of words, all of which must be there
    words = ["nvidia", "sxm", "hbm3"]  # words that may be there besides
    peaks = "H100 SXM"                 # of meshscope.analysis.peaks, where it is listed there
    per_node = 8
    inside = "NVLink4"
    between = "InfiniBand 400"         # a network and its Gbit/s per device
    memory_gib = { value = 79.65, how = "datasheet", where = "NVIDIA H100 datasheet: 80 GB" }
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar, get_args

import msgspec

from meshscope.advisor.figures import Source
from meshscope.analysis import peaks
from meshscope.errors import InputError
from meshscope.units import printable

_LARGEST_BYTES = 1 << 20
_MOST_FILES = 200


class Said(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A figure in its key's unit, how it was come by (see `figures.Source`) and where that stands."""

    value: float
    how: str = "assumed"
    where: str = ""


class DeviceEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One ``[[device]]``. ``dies``: how many devices a framework may see in it. ``per_node``: the most that ``inside``
    joins."""

    name: str
    inside: str
    between: str
    names: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    peaks: str = ""
    family: str = ""
    dies: int = 1
    per_node: int = 8
    memory_gib: Said | None = None
    usable_gib: Said | None = None
    memory_bytes_per_s: Said | None = None
    measured_memory_bytes_per_s: Said | None = None
    attention_flops_per_s: Said | None = None
    launch_s: Said | None = None
    power_w: Said | None = None
    peak_flops_per_s: dict[str, Said] = {}
    measured_flops_per_s: dict[str, Said] = {}


class LinkEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One ``[[link]]``. ``axes`` and ``ring`` are a torus's: its dimensions, and how long an axis is (or must be a
    multiple of) to close into a ring. ``multicast_from``: from how many ranks on switches reduce, 0 for never."""

    name: str
    bytes_per_s: Said
    latency_s: Said
    bus: dict[str, Said] = {}
    half_bytes: Said | None = None
    power: Said | None = None
    multicast_from: int = 0
    is_mesh: bool = False
    axes: int = 0
    ring: int = 0


class NetworkEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One ``[[network]]``, of any rate."""

    name: str
    latency_s: Said
    efficiency: Said
    half_bytes: Said | None = None
    power: Said | None = None
    step_s: Said | None = None
    tree_nodes: int = 0


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    device: tuple[DeviceEntry, ...] = ()
    link: tuple[LinkEntry, ...] = ()
    network: tuple[NetworkEntry, ...] = ()


_Entry = TypeVar("_Entry", DeviceEntry, LinkEntry, NetworkEntry)


@dataclass(frozen=True)
class Entries:
    """All that is known, by name; of two of a name the user's stands. Devices are in the order to look them up."""

    devices: dict[str, DeviceEntry]
    links: dict[str, LinkEntry]
    networks: dict[str, NetworkEntry]


def entries(folder: Path | None = None) -> Entries:
    """The package's, and those of the TOML files in ``folder`` (the user's; it need not exist).

    Raises InputError for a file that is no such table.
    """
    read = [*(_read(path) for path in _own(folder)), *_shipped()]
    return Entries(
        _by_name(entry for file in read for entry in file.device),
        _by_name(entry for file in read for entry in file.link),
        _by_name(entry for file in read for entry in file.network),
    )


def _by_name(found: Iterator[_Entry]) -> dict[str, _Entry]:
    named: dict[str, _Entry] = {}
    for entry in found:
        named.setdefault(entry.name, entry)
    return named


@cache
def _shipped() -> tuple[_File, ...]:
    folder = files("meshscope.advisor") / "data" / "hardware"
    paths = sorted((path for path in folder.iterdir() if path.name.endswith(".toml")), key=lambda path: path.name)
    return tuple(_convert(tomllib.loads(path.read_text(encoding="utf-8")), path.name) for path in paths)


def _own(folder: Path | None) -> list[Path]:
    if folder is None or not folder.is_dir():
        return []
    return sorted(path for path in folder.glob("*.toml") if path.is_file())[:_MOST_FILES]


def _read(path: Path) -> _File:
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_BYTES + 1)
    except OSError as error:
        raise InputError(
            f"The hardware file {path} cannot be read: {error.strerror or error}.", hint="Check its permissions."
        ) from error
    if len(content) > _LARGEST_BYTES:
        raise InputError(f"The hardware file {path} is larger than 1 MiB.", hint="Split it, or take it out of there.")
    try:
        found = tomllib.loads(content.decode("utf-8-sig"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(
            f"{path} is no TOML: {printable(str(error))}.", hint="Mend the file, or take it out of there."
        ) from error
    return _convert(found, str(path))


def _convert(found: dict[str, Any], where: str) -> _File:
    try:
        file = msgspec.convert(found, _File)
    except msgspec.ValidationError as error:
        raise InputError(
            f"{where}: {printable(str(error))}.",
            hint="Write a figure as { value = 1.0, how = 'measured', where = 'who says so' }.",
        ) from error
    every: tuple[DeviceEntry | LinkEntry | NetworkEntry, ...] = (*file.device, *file.link, *file.network)
    for entry in every:
        if fault := _fault(entry):
            raise InputError(
                f"{where}: {printable(entry.name)}: {fault}.", hint="Mend it; shipped files show the form."
            )
    return file


def _fault(entry: DeviceEntry | LinkEntry | NetworkEntry) -> str:
    """What is wrong with it; "" for nothing."""
    if not entry.name.strip():
        return "the name is empty"
    if isinstance(entry, DeviceEntry):
        if entry.per_node < 1 or entry.dies < 1:
            return "per_node and dies are at least 1"
        if entry.peaks and peaks.named(entry.peaks) is None:
            return "no list of peaks has what its peaks names"
    said = [value for field in entry.__struct_fields__ for value in _said(getattr(entry, field))]
    if not all(math.isfinite(one.value) and one.value > 0 for one in said):
        return "a figure is no positive number"
    unknown = {one.how for one in said} - set(get_args(Source))
    return f"how is one of {', '.join(get_args(Source))}" if unknown else ""


def _said(value: object) -> list[Said]:
    found = value.values() if isinstance(value, dict) else [value]
    return [one for one in found if isinstance(one, Said)]
