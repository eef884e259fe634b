"""Logs of device sensors as people bring them: headings with and without units, none at all, dmon, rocm-smi."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from meshscope.errors import TraceError
from meshscope.readers.records import record_reader_of
from meshscope.records import SensorRecord

MIB = 1 << 20
HEADING = "timestamp, name, index, utilization.gpu [%], utilization.memory [%], memory.used [MiB], memory.total [MiB], "
HEADING += "temperature.gpu, power.draw [W], clocks.current.sm [MHz]\n"


def row(second: int, index: int = 0, *, used: str = "1000 MiB", util: str = "50 %", power: str = "99.5 W") -> str:
    at = f"2026/04/25 16:06:{second:02}.78{index}"
    return f"{at}, NVIDIA A100-SXM4-80GB, {index}, {util}, 20 %, {used}, 81920 MiB, 40, {power}, 1410 MHz\n"


def log(path: Path, text: str) -> SensorRecord:
    path.write_text(text)
    reader = record_reader_of(path)
    assert reader is not None, text
    assert reader.format == "device log"
    (record,) = reader.read(path)
    assert isinstance(record, SensorRecord)
    return record


def series(record: SensorRecord, field: str, device: str = "gpu 0") -> list[float]:
    return record.samples.series(device, field)[1].tolist()


def why(record: SensorRecord, what: str) -> str:
    return " | ".join(reason for name, reason in record.cannot_say if name == what)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "gpu.csv"


def test_a_heading_with_units_names_every_sensor_as_a_recording_does(path: Path) -> None:
    record = log(path, HEADING + row(6) + row(7, util="100 %", used="2000 MiB"))
    assert record.samples.devices == ("gpu 0",)
    assert series(record, "utilization_frac") == [0.5, 1.0]
    assert series(record, "memory_utilization_frac") == [0.2, 0.2]
    assert series(record, "memory_used_bytes") == [1000 * MIB, 2000 * MIB]
    assert series(record, "memory_total_bytes") == [81920 * MIB] * 2
    assert series(record, "temperature_c") == [40, 40]
    assert series(record, "power_w") == [99.5, 99.5]
    assert series(record, "sm_clock_hz") == [1.41e9, 1.41e9]
    assert record.device_names == ("gpu 0: NVIDIA A100-SXM4-80GB",)
    assert record.samples.series("gpu 0", "power_w")[0].tolist() == [0, 1_000_000_000]


def test_cells_without_units_have_those_of_the_heading(path: Path) -> None:
    text = (HEADING + row(6)).replace(" %,", ",").replace(" MiB,", ",").replace(" W,", ",").replace(" MHz\n", "\n")
    record = log(path, text)
    assert series(record, "memory_used_bytes") == [1000 * MIB]
    assert series(record, "utilization_frac") == [0.5]
    assert series(record, "sm_clock_hz") == [1.41e9]


def test_a_time_without_a_zone_is_no_unix_time_and_said(path: Path) -> None:
    record = log(path, HEADING + row(6) + row(9))
    assert not record.has_unix_time
    assert (record.start_ns, record.end_ns) == (0, 3_000_000_000)
    assert "2026-04-25 16:06:06.780 there" in why(record, "t0_unix_ns")


@pytest.mark.parametrize("nothing", ["[N/A]", "[Not Supported]", "N/A", "ERR!", "[Unknown Error]", "-", ""])
def test_what_could_not_be_read_is_missing_and_never_zero(path: Path, nothing: str) -> None:
    record = log(path, HEADING + row(6, power=nothing) + row(7) + row(8, power=nothing))
    assert series(record, "power_w") == [99.5]
    assert not record.failed
    silent = log(path, HEADING + row(6, power=nothing) + row(7, power=nothing))
    ((device, field, reason),) = silent.failed
    assert (device, field) == ("gpu 0", "power_w")
    assert (nothing or "nothing") in reason


def test_several_gpus_are_told_by_their_index(path: Path) -> None:
    record = log(path, HEADING + row(6, 0) + row(6, 1, power="10 W") + row(7, 0) + row(7, 1, power="11 W"))
    assert record.samples.devices == ("gpu 0", "gpu 1")
    assert series(record, "power_w", "gpu 1") == [10, 11]


def test_without_an_index_they_are_told_by_what_identifies_them(path: Path) -> None:
    rows = "".join(f"2026/04/25 16:06:0{t}.1, GPU-{u}, {10 * t} %\n" for t in (1, 2) for u in "ab")
    record = log(path, "timestamp, uuid, utilization.gpu [%]\n" + rows)
    assert record.samples.devices == ("gpu GPU-a", "gpu GPU-b")
    assert series(record, "utilization_frac", "gpu GPU-b") == [0.1, 0.2]


def test_without_either_they_are_told_by_their_place_within_a_reading_and_that_is_said(path: Path) -> None:
    rows = "".join(f"2026/04/25 16:06:{t:02}.78{u}, {10 * t + u} %\n" for t in (1, 2, 3) for u in (0, 1))
    record = log(path, "timestamp, utilization.gpu [%]\n" + rows)
    assert series(record, "utilization_frac", "gpu 1") == [0.11, 0.21, 0.31]
    assert "2 to a reading are taken in order" in why(record, "device")


def test_readings_in_a_tight_loop_are_of_one_gpu(path: Path) -> None:
    rows = "".join(f"2026/04/25 16:06:01.{t}00, {t} %\n" for t in range(9))
    assert log(path, "timestamp, utilization.gpu [%]\n" + rows).samples.devices == ("gpu",)


@pytest.mark.parametrize(
    ("first", "second", "apart_s"),
    [
        ("04-25-2026, 16:06:06", "04-25-2026, 16:06:11", 5),
        ("03-04-2026, 23:59:59", "04-04-2026, 00:00:04", 30 * 86_400 + 5),
        ("25-04-2026, 16:06:06", "26-04-2026, 16:06:06", 86_400),
        ("2026-04-25, 16:06:06.5", "2026-04-25, 16:06:07", 0.5),
    ],
)
def test_a_date_apart_from_its_clock_is_one_time(path: Path, first: str, second: str, apart_s: float) -> None:
    record = log(path, f"date, time, utilization.gpu [%]\n{first}, 1 %\n{second}, 2 %\n")
    assert record.end_ns == round(apart_s * 1e9)
    assert ("month, day, year" in why(record, "time")) == first.startswith("03")


@pytest.mark.parametrize("stamp", ["1777133166.780", "2026-04-25T16:06:06.780Z", "2026-04-25 18:06:06.780+02:00"])
def test_a_time_with_a_zone_is_a_unix_time(path: Path, stamp: str) -> None:
    record = log(path, f"timestamp, utilization.gpu [%]\n{stamp}, 1 %\n")
    assert record.has_unix_time
    assert record.start_ns == 1_777_133_166_780_000_000


BARE = [(0, 0, 5, 995, 30, "12.1"), (90, 60, 700, 300, 55, "80.9"), (0, 0, 6, 994, 31, "12.2")]


def bare(times: int = 4) -> str:
    rows = [reading for _ in range(times) for reading in BARE]
    return "".join(
        f"2026/04/25 16:{t // 60:02}:{t % 60:02}.000, {u} %, {m} %, {used} MiB, {free} MiB, {warm}, {watts} W\n"
        for t, (u, m, used, free, warm, watts) in enumerate(rows)
    )


def test_without_a_heading_columns_are_told_by_their_cells_and_the_rest_is_numbered(path: Path) -> None:
    record = log(path, bare())
    assert series(record, "memory_used_bytes", "gpu")[:2] == [5 * MIB, 700 * MIB]
    assert series(record, "memory_free_bytes", "gpu")[:2] == [995 * MIB, 300 * MIB]
    assert series(record, "utilization_frac", "gpu")[:2] == [0.0, 0.9]
    assert series(record, "temperature_c", "gpu")[:2] == [30, 55]
    assert series(record, "power_w", "gpu")[:2] == [12.1, 80.9]
    assert series(record, "column_3_frac", "gpu")[:2] == [0.0, 0.6]
    assert "column 3 (in %)" in why(record, "column_3_frac")
    assert "told by their cells" in why(record, "names of columns")


def test_memory_that_is_used_is_told_by_the_load_and_not_by_its_place(path: Path) -> None:
    swapped = []
    for line in bare().splitlines():
        cells = line.split(", ")
        cells[3], cells[4] = cells[4], cells[3]
        swapped.append(", ".join(cells) + "\n")
    assert series(log(path, "".join(swapped)), "memory_used_bytes", "gpu")[:2] == [5 * MIB, 700 * MIB]


def test_of_an_idle_machine_nothing_tells_what_is_used(path: Path) -> None:
    rows = "".join(f"2026/04/25 16:06:{t:02}.0, 0 %, 0 %, {5 + t} MiB, {95 - t} MiB, 11.5 W\n" for t in range(9))
    record = log(path, rows)
    assert {"memory_used_bytes", "memory_free_bytes", "utilization_frac", "power_w"}.isdisjoint(record.samples.fields)
    assert series(record, "column_4_bytes", "gpu")[:2] == [5 * MIB, 6 * MIB]


DMON = """\
# gpu    pwr  gtemp  mtemp     sm    mem    enc    dec   mclk   pclk     fb
# Idx      W      C      C      %      %      %      %    MHz    MHz     MB
"""


def test_dmon_is_read_with_its_repeated_headings_and_its_missing_values(path: Path) -> None:
    body = "    0     60     35      -     {0}     10      0      0   1215   1410   2048\n"
    body += "    1     61     36     40      5      0      0      0   1215   1410      -\n"
    record = log(path, DMON + body.format(98) + DMON + body.format(99))
    assert record.samples.devices == ("gpu 0", "gpu 1")
    assert series(record, "utilization_frac") == [0.98, 0.99]
    assert series(record, "memory_utilization_frac") == [0.1, 0.1]
    assert series(record, "memory_used_bytes") == [2048 * MIB] * 2
    assert series(record, "memory_temperature_c", "gpu 1") == [40, 40]
    assert series(record, "memory_temperature_c") == []
    assert "no times" in why(record, "time")


def test_without_times_a_second_is_set_for_each_round_of_the_devices(path: Path) -> None:
    heading = "# gpu    pwr     sm\n# Idx      W      %\n"
    record = log(path, heading + "".join(f"    {gpu}     6{turn}     98\n" for turn in range(3) for gpu in range(2)))
    for gpu in ("gpu 0", "gpu 1"):
        assert record.samples.series(gpu, "power_w")[0].tolist() == [0, 1_000_000_000, 2_000_000_000]


def test_dmon_with_dates_and_times_has_times(path: Path) -> None:
    heading = "#Date       Time        gpu    pwr     sm\n#YYYYMMDD   HH:MM:SS    Idx      W      %\n"
    record = log(
        path, heading + " 20260425   16:06:06      0     60     98\n 20260425   16:06:08      0     61     97\n"
    )
    assert record.samples.series("gpu 0", "power_w")[0].tolist() == [0, 2_000_000_000]
    assert "2026-04-25 16:06:06" in why(record, "t0_unix_ns")


def test_clock_times_alone_pass_midnight(path: Path) -> None:
    heading = "#Time        gpu    pwr     sm\n#HH:MM:SS    Idx      W      %\n"
    record = log(path, heading + " 23:59:59      0     60     98\n 00:00:01      0     61     97\n")
    assert record.end_ns == 2_000_000_000
    assert "without a date" in why(record, "time")


def test_pmon_is_refused_with_what_to_log(path: Path) -> None:
    path.write_text(
        "# gpu        pid  type    sm   mem   enc   dec   command\n# Idx          #   C/G     %     %     %\n"
    )
    reader = record_reader_of(path)
    assert reader is not None
    with pytest.raises(TraceError, match="pmon") as told:
        reader.read(path)
    assert "dmon" in told.value.hint


def test_rocm_smi_names_its_cards(path: Path) -> None:
    text = "device,Temperature (Sensor edge) (C),GPU use (%),Average Graphics Package Power (W),VRAM Total Memory (B)\n"
    record = log(path, text + "card0,35.0,99,310.0,68702699520\ncard1,36.0,0,N/A,68702699520\n")
    assert record.samples.devices == ("gpu 0", "gpu 1")
    assert series(record, "utilization_frac", "gpu 0") == [0.99]
    assert series(record, "memory_total_bytes", "gpu 1") == [68702699520]
    assert series(record, "power_w", "gpu 1") == []


def test_a_log_that_was_restarted_goes_on_and_its_second_heading_is_counted(path: Path) -> None:
    record = log(path, HEADING + row(1) + HEADING + row(3))
    assert series(record, "power_w") == [99.5, 99.5]
    assert record.counts.repaired == {"heading once more: the log was restarted": 1}


def test_a_log_restarted_with_other_columns_keeps_both(path: Path) -> None:
    record = log(path, HEADING + row(1) + "timestamp, index, fan.speed [%]\n2026/04/25 16:06:02.780, 0, 30 %\n")
    assert series(record, "fan_frac") == [0.3]
    assert series(record, "power_w") == [99.5]
    assert record.end_ns == 1_000_000_000


@pytest.mark.parametrize("cut", [1, 4, 9, 30, 60])
def test_a_last_line_that_is_torn_is_dropped_and_counted(path: Path, cut: int) -> None:
    record = log(path, (HEADING + row(1) + row(2, power="7 W"))[:-cut])
    assert series(record, "power_w") == [99.5]
    assert record.counts.dropped == {"line that is cut short": 1}
    assert not record.is_complete


def test_lines_in_between_that_are_no_readings_are_counted(path: Path) -> None:
    record = log(path, HEADING + row(1) + "Failed to initialize NVML\n" + row(2)[:40] + "\n" + row(3))
    assert series(record, "power_w") == [99.5, 99.5]
    assert record.counts.dropped == {"line that is no reading": 1, "line that is cut short": 1}


def test_a_reading_without_a_time_is_counted(path: Path) -> None:
    record = log(path, HEADING + row(1) + row(2).replace("2026/04/25 16:06:02.780", "2026/99/25 16:06:02.780"))
    assert len(series(record, "power_w")) == 1
    assert record.counts.dropped == {"reading without a time": 1}


def test_a_sensor_that_is_not_known_keeps_its_own_name_with_its_unit(path: Path) -> None:
    heading = "timestamp, power.draw [W], encoder.stats.sessionCount, clocks.video [MHz]\n"
    record = log(path, heading + "2026/04/25 16:06:01, 1 W, 3, 9 MHz\n")
    assert series(record, "encoder_stats_sessioncount", "gpu") == [3]
    assert series(record, "clocks_video_hz", "gpu") == [9e6]


@pytest.mark.parametrize(
    "text",
    [
        "step,loss,mem,temp\n1,0.5,3,4\n",
        "time, value\n1, 2\n",
        "epoch 1 took 3 s, 40 %\n",
        "a,b\n",
        "# a comment\n1,2\n",
    ],
)
def test_a_table_of_something_else_is_no_device_log(path: Path, text: str) -> None:
    path.write_text(text)
    assert record_reader_of(path) is None


def test_a_heading_alone_is_refused_with_what_to_do(path: Path) -> None:
    path.write_text(HEADING)
    reader = record_reader_of(path)
    assert reader is not None
    with pytest.raises(TraceError, match="no readings") as told:
        reader.read(path)
    assert told.value.hint


def test_no_value_of_a_record_is_anything_but_a_number(path: Path) -> None:
    record = log(path, HEADING + row(1, power="nan W") + row(2, power="1e400 W") + row(3))
    assert all(math.isfinite(value) for value in record.samples.value.tolist())
    assert series(record, "power_w") == [99.5]


@pytest.mark.parametrize("stamp", ["9999/04/25 16:06:06", "9999-04-25T16:06:06Z", "99999999999.5"])
def test_a_time_that_no_clock_has_shown_is_no_time(path: Path, stamp: str) -> None:
    record = log(path, f"timestamp, utilization.gpu [%]\n{stamp}, 1 %\n")
    assert record.samples.value.tolist() == []
    assert record.counts.dropped == {"reading without a time": 1}


def test_a_log_with_its_own_copy_behind_it_counts_every_reading_once(path: Path) -> None:
    text = HEADING + row(1) + row(1, 1) + row(3, power="80 W")
    record = log(path, text + text)
    assert series(record, "power_w") == [99.5, 80]
    assert record.counts.dropped == {"reading written twice": 3}
    assert record.counts.read == 6


def test_equal_readings_are_left_where_the_clock_does_not_go_back(path: Path) -> None:
    record = log(path, HEADING + row(1) + row(1) + row(2))
    assert series(record, "power_w") == [99.5] * 3
    assert record.counts.dropped == {}


def test_a_clock_that_goes_back_repeats_no_reading_by_itself(path: Path) -> None:
    record = log(path, HEADING + row(5) + row(6) + row(2) + row(3, power="80 W"))
    assert len(series(record, "power_w")) == 4
