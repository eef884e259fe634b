"""AMD GPUs through amdsmi, where the driver and the package are there.

Units by include/amd_smi/amdsmi.h and py-interface of github.com/ROCm/amdsmi, 6.1 and newer: activity in percent, memory
in bytes, power in watts, temperature in degrees, clocks in MHz. The interface writes "N/A" for what a board does not
tell. Not run on a machine with such GPUs.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from meshscope.capture.sensors import Readings

DRIVER = Path("/dev/kfd")
INSTALL = "pip install 'meshscope[amd]'"
_EVERYTHING = "everything"
_MHZ = 1_000_000
_LIBRARY = "libamd_smi.so"
_VARIABLES = ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")
_CUDA = "CUDA_VISIBLE_DEVICES"


def _fields(smi: Any, handle: Any) -> dict[str, Callable[[], Any]]:
    """What can be read of one GPU, by field name."""
    vram, current = smi.AmdSmiMemoryType.VRAM, smi.AmdSmiTemperatureMetric.CURRENT
    hotspot, clocks = smi.AmdSmiTemperatureType.HOTSPOT, smi.AmdSmiClkType
    return {
        "utilization_frac": lambda: _scaled(smi.amdsmi_get_gpu_activity(handle)["gfx_activity"], 0.01),
        "memory_utilization_frac": lambda: _scaled(smi.amdsmi_get_gpu_activity(handle)["umc_activity"], 0.01),
        "memory_used_bytes": lambda: smi.amdsmi_get_gpu_memory_usage(handle, vram),
        "memory_total_bytes": lambda: smi.amdsmi_get_gpu_memory_total(handle, vram),
        "power_w": lambda: _power(smi.amdsmi_get_power_info(handle)),
        "temperature_c": lambda: smi.amdsmi_get_temp_metric(handle, hotspot, current),
        "sm_clock_hz": lambda: _scaled(smi.amdsmi_get_clock_info(handle, clocks.GFX)["clk"], _MHZ),
        "memory_clock_hz": lambda: _scaled(smi.amdsmi_get_clock_info(handle, clocks.MEM)["clk"], _MHZ),
    }


def _scaled(value: Any, by: float) -> Any:
    return value * by if isinstance(value, int | float) else value


def _power(told: Mapping[str, Any]) -> Any:
    """The momentary power; on boards that tell only a mean (MI200 and older), that."""
    now = told.get("current_socket_power", "N/A")
    return now if isinstance(now, int | float) and now else told.get("average_socket_power", "N/A")


class Amd:
    """Every GPU that the ranks see, as ``gpu 0``, …; by PCI address where their numbers do not follow."""

    def __init__(self, smi: Any = None, why: str = "") -> None:
        self._smi = smi
        self._failed = [("gpu", _EVERYTHING, why)] if why else []
        self._devices: dict[str, dict[str, Callable[[], Any]]] = {}
        if smi is not None:
            self._open()

    def _open(self) -> None:
        try:
            handles = self._smi.amdsmi_get_processor_handles()
            places = visible(len(handles), os.environ)
            if places is None:
                named = {f"gpu {self._smi.amdsmi_get_gpu_device_bdf(handle)}": handle for handle in handles}
            else:
                named = {f"gpu {number}": handles[place] for number, place in enumerate(places)}
        except self._smi.AmdSmiException as error:
            self._failed.append(("gpu", _EVERYTHING, _words(error)))
            return
        self._devices = {name: _fields(self._smi, handle) for name, handle in named.items()}

    def read(self, into: Readings) -> None:
        into.failed += self._failed
        self._failed = []
        for device, fields in self._devices.items():
            for name, reading in list(fields.items()):
                try:
                    value = reading()
                except self._smi.AmdSmiException as error:
                    why = _words(error)
                else:
                    why = "" if isinstance(value, int | float) else "the board does not tell it"
                    if not why:
                        into.add(device, name, float(value))
                        continue
                del fields[name]
                into.fail(device, name, why)

    def close(self) -> None:
        if self._smi is None:
            return
        try:
            self._smi.amdsmi_shut_down()
        except self._smi.AmdSmiException:
            return  # The driver is gone; there is nothing left to close.


def opened(driver: Path = DRIVER, load: Callable[[], Any] | None = None) -> Amd | None:
    """None where there is no AMD driver. Without the package or its library: a source that says so."""
    if not driver.exists():
        return None
    try:
        smi = (load or _loaded)()
    except ImportError as error:
        return Amd(why=str(error))
    try:
        smi.amdsmi_init(smi.AmdSmiInitFlags.INIT_AMD_GPUS)
    except smi.AmdSmiException as error:
        return Amd(why=_words(error))
    return Amd(smi)


def _loaded() -> Any:
    """ImportError: why it cannot be used. Without its library the package writes to stdout: that is looked at first."""
    found = importlib.util.find_spec("amdsmi")
    if found is None or found.origin is None:
        raise ImportError(f"an AMD driver is loaded, and the package amdsmi is not installed ({INSTALL})")
    own = Path(found.origin).parent / _LIBRARY
    roots = [os.environ[name] for name in ("ROCM_HOME", "ROCM_PATH") if name in os.environ] + ["/opt/rocm"]
    if not any(map(_is_library, [_LIBRARY, str(own), *(f"{root}/lib/{_LIBRARY}" for root in roots)])):
        raise ImportError(f"amdsmi needs {_LIBRARY}, which cannot be loaded: install ROCm's amd-smi-lib")
    try:
        return importlib.import_module("amdsmi")
    except (KeyError, AttributeError, OSError) as error:
        raise ImportError(f"the package amdsmi does not fit the installed {_LIBRARY}: {error!r}") from error


def _is_library(name: str) -> bool:
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True


def visible(count: int, environment: Mapping[str, str]) -> list[int] | None:
    """Places among amdsmi's GPUs in the ranks' order, None where a variable names one other than by its number.

    ROCR_VISIBLE_DEVICES is applied first and HIP_VISIBLE_DEVICES (or, without it, CUDA_VISIBLE_DEVICES) to what is
    left. Reference: ROCm documentation, "GPU isolation techniques".
    """
    left = list(range(count))
    rocr, hip = _VARIABLES
    for asked in (environment.get(rocr), environment.get(hip, environment.get(_CUDA))):
        if asked is None:
            continue
        parts = [part.strip() for part in asked.split(",") if part.strip()]
        if any(not part.lstrip("-").isdecimal() for part in parts):
            return None
        chosen = []
        for part in map(int, parts):
            if not 0 <= part < len(left):
                break
            chosen.append(left[part])
        left = chosen
    return left


def _words(error: Exception) -> str:
    """The library's own words without its code and line breaks."""
    return " ".join(str(getattr(error, "err_info", error)).split())
