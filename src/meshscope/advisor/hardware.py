"""Devices, links and clusters by name: what is known of products, and the user's own beside it.

The descriptions are data (``data/hardware/*.toml``; the user's own are ``hardware/*.toml`` in the folder for
configuration), in the form that `hardware_files` tells.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

import psutil

from meshscope import config
from meshscope.advisor.cluster import Cluster, DeviceSpec, Link
from meshscope.advisor.hardware_files import DeviceEntry, Entries, LinkEntry, NetworkEntry, Said, entries
from meshscope.analysis import peaks
from meshscope.errors import InputError

GIB = 2**30
MOST_DEVICES = 1 << 20
_FORM = "Write a number and a device, such as 8xH100, 4x8xH100 (nodes first) or 64xA100-40GB@200 (Gbit/s per device)."
_TEXT = re.compile(
    r"(?:(?P<nodes>\d{1,7}) *[x×*] *)?(?P<each>\d{1,7}) *[x×*] *(?P<name>[^@]+?)(?: *@ *(?P<network>.+))?"
)
_RATE = re.compile(r"(?:(?P<name>[a-z]+)[ -]*)?(?P<gbit>\d{1,6}(?:\.\d{1,3})?)(?: ?g(?:bit/s|bps|b)?)?", re.IGNORECASE)
_MAMF = "stas00/ml-engineering compute/accelerator, MAMF table: best shape found"


def own_folder() -> Path:
    """Where the user's own descriptions are looked for; it need not exist."""
    return config.folder() / "hardware"


def devices(folder: Path | None = None) -> dict[str, DeviceSpec]:
    """All that are known, by name. ``folder`` has the user's own (`own_folder` where None).

    Raises InputError for a file that cannot be used.
    """
    return {name: _device(entry) for name, entry in _entries(folder).devices.items()}


def links(folder: Path | None = None) -> dict[str, Link]:
    """All that join devices within a node, by name; networks between nodes are made by `network`."""
    return {name: _link(entry) for name, entry in _entries(folder).links.items()}


def device(text: str, folder: Path | None = None) -> DeviceSpec:
    """The product that ``text`` means: ``h100``, ``NVIDIA H100 80GB HBM3``, ``A100-40GB``, ``TPUv5p``, ….

    Raises InputError, which names the known ones, for one that is none of them.
    """
    return _device(_found(text, _entries(folder)))


def network(text: str, folder: Path | None = None) -> Link:
    """What joins nodes, by its kind and Gbit/s per device one way: ``InfiniBand 400``, ``EFA 100``, or only a number.

    Raises InputError for another kind or no rate.
    """
    return _network(text, _entries(folder))


def cluster(text: str, folder: Path | None = None) -> Cluster:
    """``8xH100``, ``4x8xH100`` (4 nodes of 8), ``64xA100-40GB@200`` (200 Gbit/s per device between nodes), ``8xcpu``.

    Without nodes in it, nodes are as large as that product's are (8, an NVLink domain of 72 or the largest equal part
    of it, a TPU slice). Without a rate, nodes are joined by what is usual for the product, and
    ``is_between_assumed``.

    Raises InputError for what is no such text, an unknown device, or devices that do not fill nodes.
    """
    known = _entries(folder)
    said = _TEXT.fullmatch(text.strip())
    if said is None:
        raise InputError(f"{_short(text)} is no cluster.", hint=_FORM)
    entry = _found(said["name"], known)
    nodes, each = int(said["nodes"] or 0), int(said["each"])
    count = max(nodes, 1) * each
    if not 1 <= count <= MOST_DEVICES:
        raise InputError(f"A cluster has 1 to {MOST_DEVICES} devices, not {count}.", hint=_FORM)
    per_node = each if nodes else _per_node(entry, count)
    between = _network(said["network"] or entry.between, known)
    spec = _device(entry)
    return Cluster(
        device=_of_this_machine(spec, count) if entry.family == "cpu" else spec,
        devices=count,
        per_node=per_node,
        inside=_inside(entry, known),
        between=between,
        is_between_assumed=not said["network"],
        cores_per_rank=_cores() / count if entry.family == "cpu" else 0.0,
    )


def _entries(folder: Path | None) -> Entries:
    return entries(own_folder() if folder is None else folder)


def _found(text: str, known: Entries) -> DeviceEntry:
    asked = _words(text)
    for entry in known.devices.values():
        for name in (entry.name, *entry.names):
            needed = _words(name)
            if needed <= asked <= needed | {word for more in entry.words for word in _words(more)}:
                return entry
    raise InputError(
        f"No device is known as {_short(text)}.",
        hint=f"Known: {', '.join(known.devices)}. Describe another in {own_folder() / 'NAME.toml'}.",
    )


def _words(text: str) -> frozenset[str]:
    """Of a product's name: ``NVIDIA A100-SXM4-80GB`` is nvidia, a100, sxm and 80."""
    plain = re.sub(r"(?<=tpu)(?=v?\d)|(?<=rtx)(?=\d)|[^a-z0-9.]+", " ", text.lower())
    return frozenset(re.sub(r"(?<=^sxm)\d$|(?<=\d)gb?$", "", word) for word in plain.split() if word != "gb")


def _per_node(entry: DeviceEntry, count: int) -> int:
    if count <= entry.per_node:
        return count
    if entry.per_node > 8:  # an NVLink domain or a slice is given out in equal parts
        return next(size for size in range(entry.per_node, 0, -1) if count % size == 0)
    if count % entry.per_node:
        raise InputError(
            f"{count} devices do not fill nodes of {entry.per_node}.",
            hint=f"Say how many nodes of how many: {max(count // entry.per_node, 2)}x{entry.per_node}x{entry.name}.",
        )
    return entry.per_node


def _device(entry: DeviceEntry) -> DeviceSpec:
    listed = peaks.named(entry.peaks)
    peak = dict(listed.peak_flops_per_s) if listed else {}
    sources = {f"peak_flops_per_s.{key}": f"datasheet: {listed.source}" for key in peak} if listed else {}
    measured = {"bf16": listed.measured_flops_per_s} if listed and listed.measured_flops_per_s else {}
    sources |= {f"measured_flops_per_s.{key}": f"measured: {_MAMF}" for key in measured}
    spec = DeviceSpec(
        name=entry.name,
        memory_bytes=_value(entry.memory_gib) * GIB,
        peak_flops_per_s=peak | _values(entry.peak_flops_per_s),
        memory_bytes_per_s=_value(entry.memory_bytes_per_s),
        measured_flops_per_s=measured | _values(entry.measured_flops_per_s),
        measured_memory_bytes_per_s=_value(entry.measured_memory_bytes_per_s),
        attention_flops_per_s=_value(entry.attention_flops_per_s),
        usable_bytes=_value(entry.usable_gib) * GIB,
        sources=sources | _sources(entry),
        family=entry.family,
        dies=entry.dies,
    )
    return replace(spec, launch_s=entry.launch_s.value) if entry.launch_s else spec


def _value(said: Said | None) -> float:
    return said.value if said else 0.0


def _values(said: dict[str, Said]) -> dict[str, float]:
    return {key: one.value for key, one in said.items()}


def _sources(entry: DeviceEntry | LinkEntry | NetworkEntry) -> dict[str, str]:
    """How each figure was come by, ``HOW: WHERE``, by field (``field.key`` of those that are several)."""
    found: dict[str, str] = {}
    for field in entry.__struct_fields__:
        value = getattr(entry, field)
        for key, said in value.items() if isinstance(value, dict) else [("", value)]:
            if isinstance(said, Said):
                name = field.replace("_gib", "_bytes") + (f".{key}" if key else "")
                found[name] = f"{said.how}: {said.where}" if said.where else said.how
    return found


def _link(entry: LinkEntry) -> Link:
    return Link(
        name=entry.name,
        bytes_per_s=entry.bytes_per_s.value,
        latency_s=entry.latency_s.value,
        measured_bus_bytes_per_s=_values(entry.bus),
        has_multicast=entry.multicast_from > 0,
        sources=_sources(entry),
        kind="mesh" if entry.is_mesh else "torus" if entry.axes else "switch",
        axes=entry.axes,
        ring=entry.ring,
        multicast_from=entry.multicast_from,
        half_bytes=_value(entry.half_bytes),
        power=entry.power.value if entry.power else 1.0,
    )


def _inside(entry: DeviceEntry, known: Entries) -> Link:
    if entry.inside not in known.links:
        raise InputError(
            f"{entry.name} is joined by {_short(entry.inside)}, which is not known.",
            hint=f"Known: {', '.join(known.links)}.",
        )
    return _link(known.links[entry.inside])


def _network(text: str, known: Entries) -> Link:
    said = _RATE.fullmatch(text.strip())
    if said is None or not float(said["gbit"]):
        raise InputError(f"{_short(text)} is no network.", hint="Write Gbit/s per device, such as 400 or EFA-400.")
    kinds = {name.lower(): entry for name, entry in known.networks.items()}
    kind = (said["name"] or "InfiniBand").lower()
    if kind not in kinds:
        raise InputError(f"No network is known as {_short(said['name'])}.", hint=f"Known: {', '.join(known.networks)}.")
    entry, gbit = kinds[kind], float(said["gbit"])
    return Link(
        name=f"{entry.name} {gbit:g}",
        bytes_per_s=gbit * 1e9 / 8,
        latency_s=entry.latency_s.value,
        sources=_sources(entry) | {"bytes_per_s": f"datasheet: {gbit:g} Gbit/s per device"},
        kind="network",
        step_s=_value(entry.step_s),
        tree_nodes=entry.tree_nodes,
        efficiency=entry.efficiency.value,
        half_bytes=_value(entry.half_bytes),
        power=entry.power.value if entry.power else 1.0,
    )


def _of_this_machine(spec: DeviceSpec, ranks: int) -> DeviceSpec:
    """A rank's share of this machine."""
    total = float(psutil.virtual_memory().total)
    said = "measured: this machine's, divided among the ranks"
    sources = spec.sources | {"memory_bytes": said, "usable_bytes": said}
    return replace(spec, memory_bytes=total / ranks, usable_bytes=total / ranks, sources=sources)


def _cores() -> float:
    return float(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:39] + "…")
