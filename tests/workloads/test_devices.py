"""Devices: which ones a script trains on, against stand-ins for torch and JAX."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

Import = Callable[[str], ModuleType]


class Torch(SimpleNamespace):
    """A stand-in for torch on a machine with ``gpus`` CUDA devices, which keeps what was set."""

    def __init__(self, gpus: int) -> None:
        super().__init__(chosen=None, threads=None)
        self.cuda = SimpleNamespace(
            device_count=lambda: gpus, set_device=lambda device: setattr(self, "chosen", device)
        )

    def device(self, kind: str, index: int | None = None) -> str:
        return kind if index is None else f"{kind}:{index}"

    def set_float32_matmul_precision(self, level: str) -> None:
        self.precision = level

    def set_num_threads(self, threads: int) -> None:
        self.threads = threads


class Jax(SimpleNamespace):
    """A stand-in for JAX with GPUs, or with as many CPU devices as it was told to make."""

    def __init__(self, gpus: int) -> None:
        self.settings: dict[str, Any] = {}
        super().__init__(config=SimpleNamespace(update=self.settings.__setitem__))
        self.gpus = gpus

    def devices(self) -> list[SimpleNamespace]:
        on_cpu = not self.gpus or self.settings.get("jax_platforms") == "cpu"
        count = self.settings["jax_num_cpu_devices"] if on_cpu else self.gpus
        return [SimpleNamespace(platform="cpu" if on_cpu else "gpu", id=number) for number in range(count)]


@pytest.fixture
def framework(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Any], Any]:
    """Puts a stand-in where ``import torch`` or ``import jax`` finds it."""
    for name in ("LOCAL_WORLD_SIZE", "OMP_NUM_THREADS", "RANK", "LOCAL_RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)

    def stand_in(name: str, module: Any) -> Any:
        monkeypatch.setitem(sys.modules, name, module)
        return module

    return stand_in


def asked(workload: Import, **changes: Any) -> Any:
    return replace(workload("options").PRESETS["tiny"], **changes)


@pytest.mark.parametrize("device", ["auto", "cuda", "gpu"])
def test_a_torch_rank_takes_the_gpu_of_its_place_on_the_machine(
    workload: Import, framework: Any, monkeypatch: pytest.MonkeyPatch, device: str
) -> None:
    torch = framework("torch", Torch(gpus=4))
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    assert workload("devices").torch_device(asked(workload, device=device), local_rank=3) == "cuda:3"
    assert torch.chosen == "cuda:3"


def test_torch_trains_on_cpu_where_there_is_no_gpu_or_when_asked(workload: Import, framework: Any) -> None:
    framework("torch", Torch(gpus=0))
    assert workload("devices").torch_device(asked(workload)) == "cpu"
    framework("torch", Torch(gpus=8))
    assert workload("devices").torch_device(asked(workload, device="cpu")) == "cpu"


@pytest.mark.parametrize(("gpus", "device", "hint"), [(2, "auto", "Ask for 2 at most"), (0, "cuda", "--device cpu")])
def test_more_torch_ranks_than_gpus_are_refused(
    workload: Import, framework: Any, monkeypatch: pytest.MonkeyPatch, gpus: int, device: str, hint: str
) -> None:
    framework("torch", Torch(gpus=gpus))
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    with pytest.raises(workload("options").OptionError, match=f"4 ranks need 4 CUDA devices; .* {gpus}") as refused:
        workload("devices").torch_device(asked(workload, device=device), local_rank=0)
    assert hint in refused.value.hint


def test_ranks_on_cpu_share_the_cores_unless_the_launcher_did(
    workload: Import, framework: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 12)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    torch = framework("torch", Torch(gpus=0))
    workload("devices").torch_device(asked(workload), local_rank=1)
    assert torch.threads == 3

    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    torch = framework("torch", Torch(gpus=0))
    workload("devices").torch_device(asked(workload), local_rank=1)
    assert torch.threads is None


def test_a_single_device_script_refuses_company(
    workload: Import, framework: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    framework("torch", Torch(gpus=0))
    framework("jax", Jax(gpus=0))
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    with pytest.raises(workload("options").OptionError, match="one device, not on 2"):
        workload("devices").torch_device(asked(workload))
    with pytest.raises(workload("options").OptionError, match="one device, not on 3"):
        workload("devices").jax_device(asked(workload, devices=3))


def test_ranks_come_from_torchrun_and_nowhere_else(
    workload: Import, framework: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(workload("options").OptionError) as refused:
        workload("devices").torchrun_ranks()
    assert "torchrun --standalone" in refused.value.hint
    for name, value in {"RANK": "5", "LOCAL_RANK": "1", "WORLD_SIZE": "8"}.items():
        monkeypatch.setenv(name, value)
    assert workload("devices").torchrun_ranks() == (5, 1, 8)


def test_jax_on_cpu_gets_as_many_devices_as_asked(workload: Import, framework: Any) -> None:
    jax = framework("jax", Jax(gpus=2))
    assert len(workload("devices").jax_devices(asked(workload, device="cpu", devices=4))) == 4
    assert jax.settings == {"jax_platforms": "cpu", "jax_num_cpu_devices": 4}


def test_jax_takes_the_first_gpus(workload: Import, framework: Any) -> None:
    jax = framework("jax", Jax(gpus=8))
    found = workload("devices").jax_devices(asked(workload, devices=2))
    assert [(device.platform, device.id) for device in found] == [("gpu", 0), ("gpu", 1)]
    assert "jax_platforms" not in jax.settings


def test_more_jax_devices_than_present_are_refused(workload: Import, framework: Any) -> None:
    framework("jax", Jax(gpus=2))
    with pytest.raises(workload("options").OptionError, match="4 ranks need 4 GPU devices; this machine has 2"):
        workload("devices").jax_devices(asked(workload, devices=4))


def test_jax_without_a_gpu_says_so_when_one_is_asked_for(workload: Import, framework: Any) -> None:
    framework("jax", Jax(gpus=0))
    with pytest.raises(workload("options").OptionError, match="JAX sees no GPU") as refused:
        workload("devices").jax_devices(asked(workload, device="gpu"))
    assert "jax[cuda12]" in refused.value.hint
