"""TPUs through tpu-info, which asks the metrics service that libtpu runs inside the process that holds the chips.

Before such a process is up, and with several of them on one machine, the service may not answer: that is told after a
minute, and asked again. Duty cycle is percent of the time, over libtpu's own sampling period of seconds, so it is asked
for every other second. Reference: tpu_info/metrics.py of github.com/AI-Hypercomputer/cloud-accelerator-diagnostics,
0.14. Not run on a machine with TPUs.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from meshscope.capture.sensors import Readings

INSTALL = "pip install 'meshscope[tpu]'"
_PCI = Path("/sys/bus/pci/devices")
_GOOGLE = "0x1ae0"
_CHIPS = {"0x0027", "0x005e", "0x0062", "0x0063", "0x006f", "0x0076"}
"""PCI device ids of TPU v2 and v3, v4, v5p, v5e, v6e and 7x, by tpu_info/device.py; Google has other devices too."""
_EVERY_S = 2.0
_PATIENCE_S = 60.0
_EVERYTHING = "everything"


class Tpu:
    """Every TPU device of this machine as ``tpu 0``, …, by the number that the runtime gives it."""

    def __init__(
        self, info: Any = None, errors: tuple[type[Exception], ...] = (), chip: Any = None, *, why: str = ""
    ) -> None:
        self._info, self._chip = info, chip
        # The package asserts that each chip has told all of its metrics.
        self._errors: tuple[type[Exception], ...] = (*errors, AssertionError, ValueError)
        self._why = why
        self._clock: Callable[[], float] = time.monotonic
        self._due_s = -1.0
        self._silent_since_s = -1.0
        self._is_told = False

    def read(self, into: Readings) -> None:
        if self._why:
            into.fail("tpu", _EVERYTHING, self._why)
            self._why = ""
        now_s = self._clock()
        if self._info is None or now_s < self._due_s:
            return
        self._due_s = now_s + _EVERY_S
        try:
            usages = self._info.get_chip_usage(self._chip)
        except self._errors as error:
            self._wait(now_s, error, into)
            return
        self._silent_since_s = -1.0
        for usage in usages:
            device = f"tpu {usage.device_id}"
            into.add(device, "utilization_frac", usage.duty_cycle_pct / 100)
            into.add(device, "memory_used_bytes", usage.memory_usage)
            into.add(device, "memory_total_bytes", usage.total_memory)

    def _wait(self, now_s: float, error: Exception, into: Readings) -> None:
        if self._silent_since_s < 0:
            self._silent_since_s = now_s
        if self._is_told or now_s - self._silent_since_s < _PATIENCE_S:
            return
        self._is_told = True
        details = getattr(error, "details", None)
        said = " ".join(str(details() if callable(details) else error).split()) or type(error).__name__
        into.fail("tpu", _EVERYTHING, f"libtpu's metrics service at localhost:8431 does not answer: {said}")

    def close(self) -> None:
        self._info = None


def has_tpus(devices: Path = _PCI) -> bool:
    """Whether the machine has a TPU, by the ids of its PCI devices."""
    return any(_text(one / "vendor") == _GOOGLE and _text(one / "device") in _CHIPS for one in devices.glob("*"))


def opened(devices: Path = _PCI) -> Tpu | None:
    """None on a machine without TPUs. Without the package: a source that says so."""
    if not has_tpus(devices):
        return None
    try:
        info, device, grpc = map(importlib.import_module, ("tpu_info.metrics", "tpu_info.device", "grpc"))
    except ImportError as error:
        return Tpu(why=f"the machine has TPUs, and the package tpu-info cannot be used ({error}): {INSTALL}")
    try:
        chip, _ = device.get_local_chips()
    except (AssertionError, OSError) as error:
        return Tpu(why=f"tpu-info cannot tell the chips: {error}")
    if chip is None:
        return Tpu(why="tpu-info does not know the chips of this machine")
    return Tpu(info, (grpc.RpcError,), chip)


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
