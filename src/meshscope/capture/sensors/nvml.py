"""NVIDIA GPUs and MIG instances through NVML. Each field may fail alone: on MIG, vGPU and WSL several do.

No process id that NVML gives is used: inside a container it is one of the host. Which rank is on which device follows
from the CUDA_VISIBLE_DEVICES that the ranks' processes were started with.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pynvml

from meshscope.capture.sensors import Readings, nvml_visible
from meshscope.capture.sensors.nvml_gpm import Gpm
from meshscope.capture.sensors.nvml_visible import Shown

_KIB = 1024
_MHZ = 1_000_000
_EVERYTHING = "everything"
_NOT_AVAILABLE = float(2**64 - 1)
_OF_THE_WHOLE_GPU = "NVML tells it of the whole GPU, which other MIG instances share"
_WSL = Path("/dev/dxg")


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


def _instance_fields(shown: Shown) -> dict[str, Callable[[], float]]:
    """What NVML tells of one MIG instance: its memory, and how busy it is where the GPU counts for itself (GPM)."""
    known = _fields(shown.handle)
    return {
        "memory_used_bytes": known["memory_used_bytes"],
        "memory_total_bytes": known["memory_total_bytes"],
        "utilization_frac": Gpm(shown.parent, shown.gpu_instance, pynvml.NVML_GPM_METRIC_GRAPHICS_UTIL).read,
        "sm_busy_frac": Gpm(shown.parent, shown.gpu_instance, pynvml.NVML_GPM_METRIC_SM_UTIL).read,
        "memory_bandwidth_frac": Gpm(shown.parent, shown.gpu_instance, pynvml.NVML_GPM_METRIC_DRAM_BW_UTIL).read,
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
    """One GPU or MIG instance and the fields that can still be read of it; ``setting`` says what refusals come from."""

    name: str
    fields: dict[str, Callable[[], float]] = field(default_factory=dict)
    setting: str = ""

    def read(self, into: Readings) -> None:
        for name, reading in list(self.fields.items()):
            try:
                value = float(reading())
            except pynvml.NVMLError as error:
                self._drop(name, error, into)
                if not self.fields:
                    return
                continue
            if value == _NOT_AVAILABLE:
                del self.fields[name]
                into.fail(self.name, name, self._why("not available"))
            elif not math.isnan(value):
                into.add(self.name, name, value)

    def _drop(self, name: str, error: pynvml.NVMLError, into: Readings) -> None:
        """A lost device takes all its fields with it; otherwise only this one is gone."""
        lost = getattr(error, "value", None) in (pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_RESET_REQUIRED)
        for gone in list(self.fields) if lost else [name]:
            del self.fields[gone]
            into.fail(self.name, gone, self._why(str(error)))

    def _why(self, said: str) -> str:
        return f"{said} ({self.setting})" if self.setting else said


class Nvml:
    """Every device that the ranks see, numbered as they number them: ``gpu 0``, …; by UUID where ranks differ.

    ``pids`` gives rank → process id as far as known.
    """

    def __init__(self, pids: Callable[[], Mapping[int, int]] = dict) -> None:
        self._sight = nvml_visible.Sight(pids)
        self._devices: list[Device] = []
        self._failed: list[tuple[str, str, str]] = []
        self._told: set[tuple[str, str, str]] = set()
        self._open()

    def read(self, into: Readings) -> None:
        if self._sight.has_changed():
            self._open()
        into.failed += [failure for failure in self._failed if failure not in self._told]
        self._told.update(self._failed)
        self._failed = []
        for device in self._devices:
            device.read(into)

    def _open(self) -> None:
        self._devices = []
        try:
            seen = self._sight.devices()
        except pynvml.NVMLError as error:
            self._failed.append(("gpu", _EVERYTHING, str(error)))
            return
        for shown in seen:
            if shown.why:
                self._failed.append((shown.name, _EVERYTHING, shown.why))
            elif shown.is_instance:
                fields = _instance_fields(shown)
                lacking = _fields(shown.parent).keys() - fields.keys()
                self._failed += [(shown.name, name, _OF_THE_WHOLE_GPU) for name in sorted(lacking)]
                self._devices.append(Device(shown.name, fields, "MIG instance"))
            else:
                self._devices.append(Device(shown.name, _fields(shown.handle), _setting(shown.handle)))

    def close(self) -> None:
        try:
            pynvml.nvmlShutdown()
        except pynvml.NVMLError:
            return  # The driver is gone; there is nothing left to close.


def opened(pids: Callable[[], Mapping[int, int]] = dict) -> Nvml | None:
    """None where there is no NVIDIA driver: most machines have none, and that is no failure."""
    try:
        pynvml.nvmlInit()
        pynvml.nvmlDeviceGetCount()
    except pynvml.NVMLError:
        return None
    return Nvml(pids)


def _setting(handle: Any) -> str:
    """What makes a driver refuse fields that a card has: "" for a GPU of this machine."""
    if _WSL.exists():
        return "WSL: the driver is that of Windows"
    try:
        mode = pynvml.nvmlDeviceGetVirtualizationMode(handle)
    except pynvml.NVMLError:
        return ""
    return "a virtual GPU: its host knows" if mode == pynvml.NVML_GPU_VIRTUALIZATION_MODE_VGPU else ""
