"""Names of sensors where they have no room: what tells two fields of one device apart stays."""

from __future__ import annotations

import numpy as np

from meshscope.analysis.devices import DeviceField
from meshscope.ui.panel import Frame
from meshscope.ui.panels.devices import Sensors, draw


def field(name: str, device: str = "gpu") -> DeviceField:
    return DeviceField(device, name, 2, 1e9, 1e9, 1e9, np.array([0, 1]), np.array([1e9, 1e9]))


def labels(*fields: DeviceField, width: int = 33) -> list[str]:
    return [strip.text[1:13].rstrip() for strip in draw(Sensors(fields), Frame(width, len(fields)))]


def test_two_fields_of_memory_are_told_apart_in_a_narrow_panel() -> None:
    assert labels(field("memory_used_bytes"), field("memory_free_bytes")) == ["gpu memory", "gpu mem free"]


def test_a_longer_name_loses_its_middle() -> None:
    found = labels(field("memory_reserved_low_bytes"), field("memory_reserved_top_bytes"))
    assert len(set(found)) == 2
    assert all("…" in name for name in found)
    assert found[0].endswith("low")


def test_names_that_fit_are_whole() -> None:
    assert labels(field("memory_free_bytes", "0"), field("power_w", "0"), width=60) == ["0 memory fre", "0 power"]
