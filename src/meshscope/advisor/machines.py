"""The devices of a published run, by the names that people call them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from meshscope.advisor.cells import number, text, whole
from meshscope.advisor.cluster import Cluster, DeviceSpec
from meshscope.advisor.coverage import NotCovered
from meshscope.advisor.hardware import cluster, device
from meshscope.errors import InputError


def machine(row: Mapping[str, str], devices: int, assumed: list[str], folder: Path | None = None) -> Cluster:
    """Raises NotCovered for a device that nobody described."""
    name = text(row, "gpu")
    if not name:
        raise NotCovered("the device is not stated")
    per_node = _per_node(row, devices)
    rate = number(row, "inter_node_gbps_per_gpu")
    if devices > per_node and not rate and not name.upper().startswith("TPU"):
        assumed.append("network")
    at = f"@{rate:g}" if rate and devices > per_node else ""
    nodes = -(-devices // per_node)
    try:
        found = cluster(f"{nodes}x{per_node}x{name}{at}" if nodes > 1 else f"{devices}x{name}", folder)
    except InputError as error:
        raise NotCovered(f"no description of the device {name}") from error
    return replace(found, devices=devices, per_node=per_node)


def _per_node(row: Mapping[str, str], devices: int) -> int:
    """Devices that fast links join: a node, an NVLink domain, a slice."""
    domain = re.search(r"nvl(\d{2,})", text(row, "intra_node_link").lower())
    said = int(domain[1]) if domain else whole(row, "gpus_per_node")
    nodes = whole(row, "n_nodes")
    if not said and nodes:
        said = -(-devices // nodes)
    if not said:
        said = devices if text(row, "gpu").upper().startswith("TPU") else 8
    return max(1, min(said, devices))


def device_of(row: Mapping[str, str], folder: Path | None = None) -> DeviceSpec:
    """The product alone. Raises NotCovered for one that nobody described."""
    try:
        return device(text(row, "gpu"), folder)
    except InputError as error:
        raise NotCovered(f"no description of the device {text(row, 'gpu')}") from error
