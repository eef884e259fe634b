"""NVML where a GPU is divided (MIG), virtual, Windows' own (WSL), or another for each rank; by the stand-in library."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from meshscope.capture.sensors.nvml_visible import Shown, visible

SOURCE = Path(__file__).parent / "standins" / "nvml.c"

# Two beats; between them there come to be processes of ranks, each with devices of its own where told so.
SCRIPT = """
import json, os, pathlib, subprocess, sys
from meshscope.capture.sensors import Readings, nvml
nvml._WSL = pathlib.Path(os.environ.get("WSL_AT", "/nowhere"))
given = json.loads(sys.argv[1])
pids = {}
gpus = nvml.opened(lambda: pids)
beats, ranks = [], []
for _ in range(2):
    readings = Readings()
    gpus.read(readings)
    beats.append({"values": readings.values, "failed": readings.failed})
    for rank, visible in enumerate(given):
        clean = {key: value for key, value in os.environ.items() if key != "CUDA_VISIBLE_DEVICES"}
        own = clean if visible is None else clean | {"CUDA_VISIBLE_DEVICES": visible}
        ranks.append(subprocess.Popen(["sleep", "60"], env=own))
        pids[rank] = ranks[-1].pid
for rank in ranks:
    rank.kill()
    rank.wait()
gpus.close()
print(json.dumps(beats))
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler to build the NVML stand-in with")
    folder = tmp_path_factory.mktemp("nvml")
    line = [compiler, "-shared", "-fPIC", "-Wall", "-Werror", "-o", str(folder / "libnvidia-ml.so.1"), str(SOURCE)]
    subprocess.run(line, check=True, capture_output=True, timeout=60)
    return folder


def _beats(library: Path, setting: str, ranks: tuple[str | None, ...] = (), **environment: str) -> list[dict]:
    known = os.environ | {"LD_LIBRARY_PATH": str(library), "NVML_STANDIN_SETTING": setting} | environment
    command = [sys.executable, "-c", SCRIPT, json.dumps(ranks)]
    done = subprocess.run(command, env=known, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _reasons(beat: dict, device: str) -> dict[str, str]:
    return {name: why for of, name, why in beat["failed"] if of == device}


def test_an_instance_tells_its_memory_and_by_counters_its_use_and_nothing_of_the_whole_board(library: Path) -> None:
    first, second = _beats(library, "mig", CUDA_VISIBLE_DEVICES="MIG-20000000,MIG-GPU-02345678/1/0,1")
    assert second["values"]["gpu 0"] == {
        "memory_used_bytes": 6e9,
        "memory_total_bytes": 10e9,
        "utilization_frac": 0.42,
        "sm_busy_frac": 0.21,
        "memory_bandwidth_frac": pytest.approx(0.042),
    }
    assert second["values"]["gpu 1"]["utilization_frac"] == 0.41, "by its older name"
    assert second["values"]["gpu 2"]["utilization_frac"] == 0.76, "the GPU that is not divided"
    assert "utilization_frac" not in first["values"]["gpu 0"], "a share of time needs two readings"
    told = _reasons(first, "gpu 0")
    assert set(told.values()) == {"NVML tells it of the whole GPU, which other MIG instances share"}
    assert {"power_w", "temperature_c", "sm_clock_hz", "memory_utilization_frac"} <= told.keys()
    assert second["failed"] == []


def test_an_instance_of_a_gpu_without_counters_has_no_utilization_and_says_why(library: Path) -> None:
    first, second = _beats(library, "mig-ampere", CUDA_VISIBLE_DEVICES="0")
    assert second["values"] == {"gpu 0": {"memory_used_bytes": 3e9, "memory_total_bytes": 10e9}}
    assert _reasons(first, "gpu 0")["utilization_frac"] == "Not Supported (MIG instance)"


def test_a_virtual_gpu_tells_its_use_and_that_its_host_knows_the_rest(library: Path) -> None:
    first, second = _beats(library, "vgpu")
    assert second["values"]["gpu 0"] == {
        "utilization_frac": 0.75,
        "memory_utilization_frac": 0.4,
        "memory_used_bytes": 20e9,
        "memory_total_bytes": 80e9,
    }
    assert _reasons(first, "gpu 0")["power_w"] == "Not Supported (a virtual GPU: its host knows)"


def test_under_wsl_what_windows_keeps_is_no_number(library: Path, tmp_path: Path) -> None:
    first, second = _beats(library, "wsl-hidden", WSL_AT=str(tmp_path))
    told = _reasons(first, "gpu 1")
    assert told["memory_used_bytes"] == "not available (WSL: the driver is that of Windows)"
    assert told["pcie_tx_bytes_per_s"] == "Unknown Error (WSL: the driver is that of Windows)"
    values = second["values"]["gpu 1"]
    assert "memory_used_bytes" not in values
    assert (values["memory_total_bytes"], values["power_w"]) == (80e9, 312.5)


def test_ranks_that_all_see_the_same_devices_number_them_by_their_own_environment(library: Path) -> None:
    before, after = _beats(library, "", ranks=("1", "1"))
    assert before["values"]["gpu 0"]["utilization_frac"] == 0.75
    assert {device: found["utilization_frac"] for device, found in after["values"].items()} == {"gpu 0": 0.76}


def test_ranks_with_devices_of_their_own_are_not_told_apart_by_number(library: Path) -> None:
    """Each of them calls its device 0: ``gpu 0`` would be another's for one of them."""
    _, after = _beats(library, "mig", ranks=("MIG-20000000", "GPU-1"))
    assert {device: found["memory_used_bytes"] for device, found in after["values"].items()} == {
        "MIG-20000000": 6e9,
        "GPU-12345678": 20e9,
    }


A, B = Shown("GPU-aa11"), Shown("GPU-aa22")
INSTANCE = Shown("MIG-bb", parent=object(), older_name="MIG-GPU-cc/1/0")
CARDS = [[A], [B], [INSTANCE]]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (None, [A, B]),
        ("", []),
        ("1,0", [B, A]),
        ("0,7,1", [A]),
        ("0,-1,1", [A]),
        ("GPU-aa2", [B]),
        ("GPU-aa,0", []),  # Not unique.
        ("2", [INSTANCE]),
        ("MIG-GPU-cc/1/0,GPU-aa1", [INSTANCE, A]),
    ],
)
def test_cuda_reads_from_left_to_right_and_stops_at_what_names_no_device(asked: str | None, found: list[Shown]) -> None:
    assert visible(CARDS, asked) == found


def test_with_nothing_asked_and_only_divided_gpus_all_instances_are_there() -> None:
    assert visible([[INSTANCE], []], None) == [INSTANCE]
