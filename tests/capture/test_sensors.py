"""Sensors: NVML through a stand-in library that this test compiles, and the host's own."""

from __future__ import annotations

import itertools
import json
import math
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from meshscope.capture.sensors import Readings
from meshscope.capture.sensors.host import Host
from meshscope.capture.sensors.sampling import Sampling
from meshscope.recording.entries import Sampled
from meshscope.recording.journal import Tail

SOURCE = Path(__file__).parent / "standins" / "nvml.c"

# Reads three times, changing what the stand-in does in between, and prints what each beat gave.
SCRIPT = """
import json, os, sys
from meshscope.capture.sensors import Readings, nvml
gpus = nvml.opened()
beats = []
for lines in json.loads(sys.argv[1]):
    open(os.environ["NVML_STANDIN"], "w").write(lines)
    readings = Readings()
    gpus.read(readings)
    beats.append({"values": readings.values, "failed": readings.failed})
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


def _beats(library: Path, tmp_path: Path, *lines: str, **environment: str) -> list[dict]:
    known = os.environ | {"LD_LIBRARY_PATH": str(library), "NVML_STANDIN": str(tmp_path / "orders")} | environment
    (tmp_path / "orders").write_text("")
    command = [sys.executable, "-c", SCRIPT, json.dumps(lines)]
    done = subprocess.run(command, env=known, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_field_is_read_in_the_unit_of_its_name(library: Path, tmp_path: Path) -> None:
    first, second = _beats(library, tmp_path, "", "")
    values = first["values"]["gpu 0"]
    assert values == {
        "utilization_frac": 0.75,
        "memory_utilization_frac": 0.4,
        "memory_used_bytes": 20e9,
        "memory_total_bytes": 80e9,
        "power_w": 312.5,
        "power_limit_w": 700,
        "temperature_c": 61,
        "sm_clock_hz": 1980e6,
        "memory_clock_hz": 2619e6,
        "pcie_tx_bytes_per_s": 1_024_000,
        "pcie_rx_bytes_per_s": 2_048_000,
    }
    assert first["values"]["gpu 1"]["utilization_frac"] == 0.76
    assert second["values"]["gpu 0"]["nvlink_tx_bytes_per_s"] > 0, "a rate needs two readings of a counter"
    assert first["failed"] == second["failed"] == []


def test_a_field_that_is_refused_is_told_once_and_the_others_go_on(library: Path, tmp_path: Path) -> None:
    refusing = "refuse nvmlDeviceGetPowerUsage\nrefuse nvmlDeviceGetFieldValues\n"
    first, second = _beats(library, tmp_path, refusing, refusing)
    fields = ("power_w", "nvlink_tx_bytes_per_s", "nvlink_rx_bytes_per_s")
    assert first["failed"] == [[f"gpu {n}", field, "Not Supported"] for n in (0, 1) for field in fields]
    assert second["failed"] == []
    assert "power_w" not in second["values"]["gpu 0"]
    assert second["values"]["gpu 0"]["power_limit_w"] == 700


def test_a_device_lost_mid_run_fails_as_a_whole_and_the_other_goes_on(library: Path, tmp_path: Path) -> None:
    _, second, third = _beats(library, tmp_path, "", "lost 0\n", "lost 0\n")
    assert {(device, why) for device, _, why in second["failed"]} == {("gpu 0", "GPU is lost")}
    assert len(second["failed"]) == 13
    assert third["failed"] == []
    assert set(third["values"]) == {"gpu 1"}


@pytest.mark.parametrize(("visible", "first"), [("1", 0.76), ("GPU-12345678", 0.76), ("1,0", 0.76), ("0", 0.75)])
def test_gpus_are_numbered_as_the_ranks_see_them(library: Path, tmp_path: Path, visible: str, first: float) -> None:
    (beat,) = _beats(library, tmp_path, "", CUDA_VISIBLE_DEVICES=visible)
    assert beat["values"]["gpu 0"]["utilization_frac"] == first
    assert len(beat["values"]) == len(visible.split(","))


def test_without_a_driver_there_are_no_gpus_and_no_failures(tmp_path: Path) -> None:
    code = "from meshscope.capture.sensors import nvml; print(nvml.opened())"
    clean = {key: value for key, value in os.environ.items() if key != "LD_LIBRARY_PATH"}
    if subprocess.run(
        [shutil.which("ldconfig") or "/sbin/ldconfig", "-p"], capture_output=True, text=True, check=False
    ).stdout.count("libnvidia-ml"):
        pytest.skip("this machine has an NVIDIA driver")
    done = subprocess.run(
        [sys.executable, "-c", code], env=clean, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "None"


def test_the_host_tells_of_itself_and_of_each_rank_and_not_of_one_that_is_gone() -> None:
    host = Host(lambda: {0: os.getpid(), 1: 2**22 - 3})
    host.read(Readings())
    readings = Readings()
    host.read(readings)
    assert set(readings.values) == {"host", "rank 0"}
    assert readings.values["rank 0"]["rss_bytes"] > 1_000_000
    assert 0 <= readings.values["host"]["utilization_frac"] <= 1
    assert readings.values["host"]["memory_total_bytes"] > readings.values["host"]["memory_used_bytes"] > 0
    assert all(not math.isnan(value) for values in readings.values.values() for value in values.values())


def test_a_process_that_is_ending_has_no_memory_and_is_not_read_as_zero() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    try:
        source = Host(lambda: {0: child.pid})
        source.read(Readings())
        # Not waited for: it stays in the process table, without memory.
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        readings = Readings()
        source.read(readings)
        assert "rank 0" not in readings.values
    finally:
        child.wait()


def test_sampling_is_at_two_hertz_or_more(tmp_path: Path) -> None:
    sampling = Sampling(tmp_path, time.time_ns(), dict)
    sampling.start()
    time.sleep(2.6)
    sampling.stop()
    times = [e.t_ns for e in Tail(tmp_path / "journal" / "sensors.jsonl").read() if isinstance(e, Sampled)]
    assert len(times) >= 5
    gaps = sorted(after - before for before, after in itertools.pairwise(times))
    assert gaps[len(gaps) // 2] <= 500_000_000
