"""AMD GPUs by a stand-in for amdsmi that answers as py-interface/amdsmi_interface.py of github.com/ROCm/amdsmi does."""

from __future__ import annotations

from enum import IntEnum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from meshscope.capture.sensors import Readings, amd


class SmiError(Exception):
    """As AmdSmiLibraryException, whose text spans two lines."""

    def __init__(self, err_info: str) -> None:
        super().__init__(2)
        self.err_info = err_info

    def __str__(self) -> str:
        return f"Error code:\n\t2 | {self.err_info}"


class StandIn:
    """Two MI300X; the functions in ``refused`` raise, and ``power`` is what each socket tells."""

    AmdSmiException = SmiError
    AmdSmiInitFlags = SimpleNamespace(INIT_AMD_GPUS=2)
    AmdSmiMemoryType = IntEnum("AmdSmiMemoryType", {"VRAM": 0})
    AmdSmiTemperatureMetric = IntEnum("AmdSmiTemperatureMetric", {"CURRENT": 0})
    AmdSmiTemperatureType = IntEnum("AmdSmiTemperatureType", {"EDGE": 0, "HOTSPOT": 1})
    AmdSmiClkType = IntEnum("AmdSmiClkType", {"GFX": 0, "MEM": 4})

    def __init__(self, *refused: str, power: dict[str, Any] | None = None) -> None:
        self.refused = refused
        self.power = power or {"current_socket_power": 512, "average_socket_power": "N/A"}
        self.is_open = False

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("amdsmi_") and name in object.__getattribute__(self, "refused"):
            return self._refuse
        return object.__getattribute__(self, name)

    @staticmethod
    def _refuse(*_: Any) -> None:
        raise SmiError("AMDSMI_STATUS_NOT_SUPPORTED - Feature not supported")

    def amdsmi_init(self, flags: int) -> None:
        assert flags == 2
        self.is_open = True

    def amdsmi_shut_down(self) -> None:
        self.is_open = False

    def amdsmi_get_processor_handles(self) -> list[int]:
        return [0, 1]

    def amdsmi_get_gpu_device_bdf(self, handle: int) -> str:
        return f"0000:{handle + 5:02x}:00.0"

    def amdsmi_get_gpu_activity(self, handle: int) -> dict[str, Any]:
        return {"gfx_activity": 90 + handle, "umc_activity": 25, "mm_activity": "N/A"}

    def amdsmi_get_gpu_memory_usage(self, handle: int, kind: int) -> int:
        return 48_000_000_000 if kind == self.AmdSmiMemoryType.VRAM else 0

    def amdsmi_get_gpu_memory_total(self, handle: int, kind: int) -> int:
        return 192_000_000_000

    def amdsmi_get_power_info(self, handle: int) -> dict[str, Any]:
        return self.power

    def amdsmi_get_temp_metric(self, handle: int, sensor: int, metric: int) -> int:
        return 63 if sensor == self.AmdSmiTemperatureType.HOTSPOT else 40

    def amdsmi_get_clock_info(self, handle: int, kind: int) -> dict[str, Any]:
        return {"clk": 2100 if kind == self.AmdSmiClkType.GFX else "N/A", "min_clk": 132, "max_clk": 2100}


@pytest.fixture(autouse=True)
def _no_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)


def _source(tmp_path: Path, smi: StandIn) -> amd.Amd:
    found = amd.opened(tmp_path, lambda: smi)
    assert found is not None
    return found


def _read(source: amd.Amd) -> Readings:
    readings = Readings()
    source.read(readings)
    return readings


def test_every_field_is_in_the_unit_of_its_name_and_what_a_board_does_not_tell_is_told_once(tmp_path: Path) -> None:
    smi = StandIn()
    source = _source(tmp_path, smi)
    first, second = _read(source), _read(source)
    assert first.values["gpu 1"] == {
        "utilization_frac": pytest.approx(0.91),
        "memory_utilization_frac": 0.25,
        "memory_used_bytes": 48e9,
        "memory_total_bytes": 192e9,
        "power_w": 512,
        "temperature_c": 63,
        "sm_clock_hz": 2.1e9,
    }
    assert first.failed == [(f"gpu {n}", "memory_clock_hz", "the board does not tell it") for n in (0, 1)]
    assert second.failed == []
    source.close()
    assert not smi.is_open


def test_boards_that_tell_only_a_mean_power_have_that(tmp_path: Path) -> None:
    old = StandIn(power={"current_socket_power": "N/A", "average_socket_power": 231})
    assert _read(_source(tmp_path, old)).values["gpu 0"]["power_w"] == 231


def test_a_refused_field_says_so_in_one_line_and_the_others_go_on(tmp_path: Path) -> None:
    readings = _read(_source(tmp_path, StandIn("amdsmi_get_gpu_activity")))
    why = "AMDSMI_STATUS_NOT_SUPPORTED - Feature not supported"
    assert ("gpu 0", "utilization_frac", why) in readings.failed
    assert readings.values["gpu 0"]["temperature_c"] == 63


@pytest.mark.parametrize("function", ["amdsmi_init", "amdsmi_get_processor_handles"])
def test_a_library_that_refuses_altogether_is_a_reason(tmp_path: Path, function: str) -> None:
    source = _source(tmp_path, StandIn(function))
    first = _read(source)
    assert first.failed == [("gpu", "everything", "AMDSMI_STATUS_NOT_SUPPORTED - Feature not supported")]
    assert first.values == {}
    assert _read(source).failed == []
    source.close()


def test_without_a_driver_there_is_no_source_and_without_the_package_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert amd.opened(tmp_path / "none") is None
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    missing = amd.opened(tmp_path)
    assert missing is not None
    ((device, field, why),) = _read(missing).failed
    assert (device, field) == ("gpu", "everything")
    assert "pip install 'meshscope[amd]'" in why
    missing.close()


def test_the_package_is_not_imported_without_its_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It would write to stdout, which may be a terminal's screen, and end in a KeyError."""
    monkeypatch.setenv("ROCM_PATH", str(tmp_path))
    package = SimpleNamespace(origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: package)
    monkeypatch.setattr(amd, "_is_library", lambda name: False)
    source = amd.opened(tmp_path)
    assert source is not None
    assert "needs libamd_smi.so" in _read(source).failed[0][2]
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("environment", "places"),
    [
        ({}, [0, 1, 2, 3]),
        ({"HIP_VISIBLE_DEVICES": "2,0"}, [2, 0]),
        ({"ROCR_VISIBLE_DEVICES": "1,3", "HIP_VISIBLE_DEVICES": "1"}, [3]),
        ({"CUDA_VISIBLE_DEVICES": "3"}, [3]),
        ({"HIP_VISIBLE_DEVICES": "1", "CUDA_VISIBLE_DEVICES": "3"}, [1]),
        ({"HIP_VISIBLE_DEVICES": "0,-1,1"}, [0]),
        ({"HIP_VISIBLE_DEVICES": ""}, []),
        ({"ROCR_VISIBLE_DEVICES": "GPU-abc"}, None),
    ],
)
def test_gpus_are_numbered_as_rocm_numbers_them_for_the_ranks(
    environment: dict[str, str], places: list[int] | None
) -> None:
    assert amd.visible(4, environment) == places


def test_gpus_that_a_variable_names_by_uuid_are_called_by_their_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROCR_VISIBLE_DEVICES", "GPU-abc")
    assert set(_read(_source(tmp_path, StandIn())).values) == {"gpu 0000:05:00.0", "gpu 0000:06:00.0"}
