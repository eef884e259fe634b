"""TPUs by a stand-in for tpu-info that answers as tpu_info/metrics.py (0.14) does."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from meshscope.capture.sensors import Readings, tpu


class Usage(NamedTuple):
    device_id: int
    memory_usage: int
    total_memory: int
    duty_cycle_pct: float


class RpcError(Exception):
    def details(self) -> str:
        return "failed to connect to all\naddresses"


V6E = "TPU v6e chip"


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """The PCI devices of a host with one TPU v6e and a network card of Google's."""
    for name, ids in {"0000:00:04.0": ("0x1ae0", "0x006f"), "0000:00:05.0": ("0x1ae0", "0x0042")}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "vendor").write_text(f"{ids[0]}\n")
        (tmp_path / name / "device").write_text(f"{ids[1]}\n")
    return tmp_path


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Puts the package in place, whose ``get_chip_usage`` does as told."""

    def install(usage: Callable[[Any], list[Usage]], chip: Any = V6E) -> None:
        package, metrics, device, grpc = map(ModuleType, ("tpu_info", "tpu_info.metrics", "tpu_info.device", "grpc"))
        metrics.get_chip_usage, device.get_local_chips, grpc.RpcError = usage, lambda: (chip, 1), RpcError
        for one in (package, metrics, device, grpc):
            monkeypatch.setitem(sys.modules, one.__name__, one)

    return install


def _usages(chip: Any) -> list[Usage]:
    assert chip == V6E
    return [Usage(0, 8_000_000_000, 32_000_000_000, 87.5), Usage(1, 4_000_000_000, 32_000_000_000, 12.5)]


def _opened(machine: Path) -> tpu.Tpu:
    found = tpu.opened(machine)
    assert found is not None
    return found


def _read(source: tpu.Tpu) -> Readings:
    readings = Readings()
    source.read(readings)
    return readings


def test_use_and_memory_are_read_every_other_second(machine: Path, installed: Callable[..., None]) -> None:
    installed(_usages)
    source = _opened(machine)
    now_s = 100.0
    source._clock = lambda: now_s
    first = _read(source)
    assert first.values == {
        "tpu 0": {"utilization_frac": 0.875, "memory_used_bytes": 8e9, "memory_total_bytes": 32e9},
        "tpu 1": {"utilization_frac": 0.125, "memory_used_bytes": 4e9, "memory_total_bytes": 32e9},
    }
    now_s = 101.0
    assert _read(source).values == {}
    now_s = 102.0
    assert _read(source).values == first.values


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RpcError(), "failed to connect to all addresses"),
        (AssertionError("Metrics not found for all chips"), "Metrics not found for all chips"),
    ],
)
def test_a_service_that_is_not_up_is_waited_for_told_once_after_a_minute_and_asked_again(
    machine: Path, installed: Callable[..., None], error: Exception, said: str
) -> None:
    is_up = False

    def usage(chip: Any) -> list[Usage]:
        if not is_up:
            raise error
        return _usages(chip)

    installed(usage)
    source = _opened(machine)
    times_s = iter((0.0, 30.0, 59.0, 61.5, 90.0, 95.0))
    source._clock = lambda: next(times_s)
    told = [_read(source).failed for _ in range(5)]
    why = f"libtpu's metrics service at localhost:8431 does not answer: {said}"
    assert told == [[], [], [], [("tpu", "everything", why)], []]
    is_up = True
    assert set(_read(source).values) == {"tpu 0", "tpu 1"}


def test_without_tpus_there_is_no_source_and_without_the_package_a_reason(
    machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tpu.opened(tmp_path / "none") is None
    (machine / "0000:00:04.0" / "device").write_text("0x0042\n")
    assert tpu.opened(machine) is None, "Google makes network cards too"
    (machine / "0000:00:04.0" / "device").write_text("0x006f\n")
    monkeypatch.setitem(sys.modules, "tpu_info.metrics", None)
    ((device, field, why),) = _read(_opened(machine)).failed
    assert (device, field) == ("tpu", "everything")
    assert "pip install 'meshscope[tpu]'" in why


def test_chips_that_the_package_does_not_know_are_a_reason(machine: Path, installed: Callable[..., None]) -> None:
    installed(_usages, chip=None)
    readings = _read(_opened(machine))
    assert readings.failed == [("tpu", "everything", "tpu-info does not know the chips of this machine")]
    assert readings.values == {}
