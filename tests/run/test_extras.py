"""Files without spans on Runs: which of them join a run's traces, and which are recordings of their own."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

from made_records import MIB, UNIX_US, block, call, entry, segment, write_flight, write_snapshot, write_timeline
from made_traces import UNIX_NS, XSpace, kernel, write_kineto

from meshscope.analysis.devices import devices
from meshscope.analysis.memory import memory
from meshscope.readers.records import is_record
from meshscope.records import FlightRecord, MemoryRecord, Record, SensorRecord
from meshscope.run import Run, open_traces


def trace(path: Path, rank: int) -> Path:
    return write_kineto(path, [kernel("gemm", 0, 1000)], rank=rank)


def snapshot(path: Path, *, at_us: int = 500) -> Path:
    return write_snapshot(path, [segment(block(0, MIB))], [call("alloc", MIB, at_us)])


def contents(runs: tuple[Run, ...]) -> list[tuple[list[int], list[tuple[type[Record], int]]]]:
    return [([w.rank for w in run.windows], [(type(record), record.rank) for record in run.records]) for run in runs]


def test_a_snapshot_whose_name_and_time_are_a_ranks_joins_its_run(tmp_path: Path) -> None:
    for rank in (0, 1):
        trace(tmp_path / f"rank{rank}.json", rank)
    snapshot(tmp_path / "memory_rank1.pickle")
    (run,) = open_traces([tmp_path]).runs
    assert contents((run,)) == [([0, 1], [(MemoryRecord, 1)])]
    (record,) = run.records
    assert record.start_ns == 500_000
    assert record.source == str(tmp_path / "memory_rank1.pickle")
    assert "breakdown" not in dict(record.cannot_say)
    assert [(rank.rank, rank.peak_bytes) for rank in memory(run)] == [(1, MIB)]


def test_a_snapshot_of_another_time_or_rank_or_of_none_is_a_recording_of_its_own(tmp_path: Path) -> None:
    trace(tmp_path / "rank0.json", 0)
    snapshot(tmp_path / "a_rank0.pickle", at_us=9_000_000)
    snapshot(tmp_path / "b_rank7.pickle")
    snapshot(tmp_path / "c.pickle")
    found = contents(open_traces([tmp_path]).runs)
    assert found == [([0], []), ([], [(MemoryRecord, 0)]), ([], [(MemoryRecord, 7)]), ([], [(MemoryRecord, 0)])]


def test_a_second_snapshot_of_one_rank_is_not_merged_with_the_first(tmp_path: Path) -> None:
    trace(tmp_path / "rank0.json", 0)
    snapshot(tmp_path / "a_rank0.pickle")
    snapshot(tmp_path / "b_rank0.pickle")
    assert contents(open_traces([tmp_path]).runs) == [([0], [(MemoryRecord, 0)]), ([], [(MemoryRecord, 0)])]


def test_the_ranks_snapshots_of_one_time_are_one_recording(tmp_path: Path) -> None:
    for rank in (1, 0):
        snapshot(tmp_path / f"memory_rank{rank}.pickle")
    (run,) = open_traces([tmp_path]).runs
    assert [record.rank for record in run.records] == [0, 1]
    assert (run.path, run.experiment.ranks, run.experiment.device_kind) == (str(tmp_path), 2, "gpu")
    assert run.experiment.t0_unix_ns == (UNIX_US + 500) * 1000
    assert run.now_ns == 0


def test_the_ranks_flight_recorders_are_one_recording(tmp_path: Path) -> None:
    for rank in range(3):
        write_flight(tmp_path / f"nccl_trace_rank_{rank}", [entry(1)])
    write_flight(tmp_path / "old_rank_0", [entry(1, time_created_ns=UNIX_NS - 9 * 3600 * 10**9)])
    runs = open_traces([tmp_path]).runs
    assert contents(runs) == [
        ([], [(FlightRecord, 0), (FlightRecord, 1), (FlightRecord, 2)]),
        ([], [(FlightRecord, 0)]),
    ]


def test_a_log_in_an_unknown_zone_joins_nothing_and_its_readings_are_the_runs(tmp_path: Path) -> None:
    trace(tmp_path / "rank0.json", 0)
    heading = "timestamp, index, utilization.gpu [%], power.draw [W]\n"
    (tmp_path / "gpu.csv").write_text(heading + "2026/09/21 16:53:20.000, 0, 50 %, [N/A]\n" * 3)
    traced, logged = open_traces([tmp_path]).runs
    assert contents((traced, logged)) == [([0], []), ([], [(SensorRecord, -1)])]
    found = devices(logged)
    assert [(f.device, f.field, f.count, f.mean) for f in found.fields] == [("gpu 0", "utilization_frac", 3, 0.5)]
    assert found.failed == (("gpu 0", "power_w", "the log has [N/A] for it"),)
    assert logged.experiment.t0_unix_ns == 0


def test_a_log_with_unix_times_joins_the_run_whose_time_it_is_of(tmp_path: Path) -> None:
    trace(tmp_path / "rank0.json", 0)
    second = UNIX_NS // 10**9
    rows = "".join(f"{second + t}, {t} %\n" for t in (-1, 0, 1))
    (tmp_path / "gpu.csv").write_text("timestamp, utilization.gpu [%]\n" + rows)
    (run,) = open_traces([tmp_path]).runs
    assert run.samples.time_ns.tolist() == [-(10**9), 0, 10**9]


def test_tables_and_logs_that_are_not_ours_are_passed_over_in_a_folder(tmp_path: Path) -> None:
    trace(tmp_path / "rank0.json", 0)
    (tmp_path / "loss.csv").write_text("step,loss\n1,2\n")
    (tmp_path / "train.log").write_text("step 1 of 9\n")
    (tmp_path / "data.pkl").write_bytes(pickle.dumps({"x": [1, 2, 3]}))
    opened = open_traces([tmp_path])
    assert (len(opened.runs), opened.refused) == (1, ())


def test_a_record_that_cannot_be_read_costs_nothing_else(tmp_path: Path) -> None:
    trace(tmp_path / "rank0.json", 0)
    path = snapshot(tmp_path / "memory_rank0.pickle")
    path.write_bytes(path.read_bytes()[:60])
    opened = open_traces([tmp_path])
    assert contents(opened.runs) == [([0], [])]
    ((refused, why, hint),) = opened.refused
    assert (refused, "stops in the middle" in why, bool(hint)) == (str(path), True, True)


def test_of_a_profile_told_three_times_the_xplane_is_read(tmp_path: Path) -> None:
    from made_records import write_jax_json

    made = XSpace().plane("/device:TPU:0", [("XLA Ops", [("%dot = f32[]", 5, 40_000, {})])])
    made.write(tmp_path / "host.xplane.pb")
    for name in ("host.trace.json.gz", "perfetto_trace.json.gz"):
        write_jax_json(tmp_path / name, made, is_perfetto=name.startswith("perfetto"))
    (run,) = open_traces([tmp_path]).runs
    assert [Path(window.source).name for window in run.windows] == ["host.xplane.pb"]
    (tmp_path / "host.xplane.pb").unlink()
    (run,) = open_traces([tmp_path]).runs
    assert [Path(window.source).name for window in run.windows] == ["host.trace.json.gz"]
    (tmp_path / "host.trace.json.gz").unlink()
    (run,) = open_traces([tmp_path]).runs
    assert [Path(window.source).name for window in run.windows] == ["perfetto_trace.json.gz"]


def test_a_timeline_is_a_recording_with_its_categories(tmp_path: Path) -> None:
    path = write_timeline(tmp_path / "memory_timeline.raw.json.gz", [[-1, 1, 70, 0], [UNIX_NS, 2, 30, 4]])
    (run,) = open_traces([path]).runs
    (rank,) = memory(run)
    assert (rank.rank, rank.peak_bytes, rank.in_use_bytes, rank.pool_bytes) == (0, 100, 100, None)
    assert [(c.name, c.size_bytes, c.how) for c in rank.categories] == [
        ("parameters", 70, "measured"), ("activations", 30, "measured"),
    ]  # fmt: skip


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    assert not is_record(tmp_path / "pipe.csv")
