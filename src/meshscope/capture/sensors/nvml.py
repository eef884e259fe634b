"""NVIDIA GPUs through NVML. Each field may fail alone: on MIG, vGPU and WSL several do."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pynvml

from meshscope.capture.sensors import Readings

_KIB = 1024
_MHZ = 1_000_000
_EVERYTHING = "everything"


def _fields(handle: Any) -> dict[str, Callable[[], float]]:
    """What can be read of one device, by field name. PCIe rates take NVML 20 ms each: it counts for that long."""
    temperature, clock = pynvml.NVML_TEMPERATURE_GPU, pynvml.nvmlDeviceGetClockInfo
    pcie = pynvml.nvmlDeviceGetPcieThroughput
    return {
        "utilization_frac": lambda: pynvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100,
        "memory_utilization_frac": lambda: pynvml.nvmlDeviceGetUtilizationRates(handle).memory / 100,
        "memory_used_bytes": lambda: pynvml.nvmlDeviceGetMemoryInfo(handle).used,
        "memory_total_bytes": lambda: pynvml.nvmlDeviceGetMemoryInfo(handle).total,
        "power_w": lambda: pynvml.nvmlDeviceGetPowerUsage(handle) / 1000,
        "power_limit_w": lambda: pynvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000,
        "temperature_c": lambda: pynvml.nvmlDeviceGetTemperature(handle, temperature),
        "sm_clock_hz": lambda: clock(handle, pynvml.NVML_CLOCK_SM) * _MHZ,
        "memory_clock_hz": lambda: clock(handle, pynvml.NVML_CLOCK_MEM) * _MHZ,
        "pcie_tx_bytes_per_s": lambda: pcie(handle, pynvml.NVML_PCIE_UTIL_TX_BYTES) * _KIB,
        "pcie_rx_bytes_per_s": lambda: pcie(handle, pynvml.NVML_PCIE_UTIL_RX_BYTES) * _KIB,
        "nvlink_tx_bytes_per_s": _Rate(handle, pynvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX).read,
        "nvlink_rx_bytes_per_s": _Rate(handle, pynvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX).read,
    }


@dataclass
class _Rate:
    """NVLink counts KiB since the driver was loaded, over all links: the rate is the difference of two readings."""

    handle: Any
    counter: int
    _before: tuple[int, float] | None = None

    def read(self) -> float:
        """NaN at the first reading."""
        # The scope ~0 asks for the sum over all links.
        found = pynvml.nvmlDeviceGetFieldValues(self.handle, [(self.counter, 0xFFFFFFFF)])[0]
        if found.nvmlReturn != pynvml.NVML_SUCCESS:
            raise pynvml.NVMLError(found.nvmlReturn)
        now = (int(found.value.ullVal), time.monotonic())
        before, self._before = self._before, now
        if before is None or now[1] <= before[1]:
            return float("nan")
        return (now[0] - before[0]) * _KIB / (now[1] - before[1])


@dataclass
class Device:
    """One GPU and the fields that can still be read of it."""

    name: str
    fields: dict[str, Callable[[], float]] = field(default_factory=dict)

    def read(self, into: Readings) -> None:
        for name, reading in list(self.fields.items()):
            try:
                value = float(reading())
            except pynvml.NVMLError as error:
                self._drop(name, error, into)
                if not self.fields:
                    return
                continue
            if not math.isnan(value):
                into.add(self.name, name, value)

    def _drop(self, name: str, error: pynvml.NVMLError, into: Readings) -> None:
        """A lost device takes all its fields with it; otherwise only this one is gone."""
        lost = getattr(error, "value", None) in (pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_RESET_REQUIRED)
        for gone in list(self.fields) if lost else [name]:
            del self.fields[gone]
            into.fail(self.name, gone, str(error))


class Nvml:
    """Every GPU that CUDA_VISIBLE_DEVICES leaves visible, numbered as the ranks number them: ``gpu 0``, …"""

    def __init__(self, devices: list[Device], failed: list[tuple[str, str, str]]) -> None:
        self._devices = devices
        self._failed = failed

    def read(self, into: Readings) -> None:
        into.failed += self._failed
        self._failed = []
        for device in self._devices:
            device.read(into)

    def close(self) -> None:
        try:
            pynvml.nvmlShutdown()
        except pynvml.NVMLError:
            return  # The driver is gone; there is nothing left to close.


def opened() -> Nvml | None:
    """None where there is no NVIDIA driver: most machines have none, and that is no failure."""
    try:
        pynvml.nvmlInit()
        count = pynvml.nvmlDeviceGetCount()
    except pynvml.NVMLError:
        return None
    devices, failed = [], []
    for place, index in enumerate(_visible(count)):
        name = f"gpu {place}"
        try:
            devices.append(Device(name, _fields(pynvml.nvmlDeviceGetHandleByIndex(index))))
        except pynvml.NVMLError as error:
            failed.append((name, _EVERYTHING, str(error)))
    return Nvml(devices, failed)


def _visible(count: int) -> list[int]:
    """NVML's indices in CUDA's order, as far as CUDA_VISIBLE_DEVICES names devices by number or UUID."""
    asked = os.environ.get("CUDA_VISIBLE_DEVICES")
    if asked is None:
        return list(range(count))
    found = [_index(part.strip(), count) for part in asked.split(",") if part.strip()]
    return [index for index in found if index is not None]


def _index(name: str, count: int) -> int | None:
    if name.lstrip("-").isdigit():
        return int(name) if 0 <= int(name) < count else None
    for index in range(count):
        try:
            uuid = pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByIndex(index))
        except pynvml.NVMLError:
            continue
        if str(uuid).startswith(name):
            return index
    return None
