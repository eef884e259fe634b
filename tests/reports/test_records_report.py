"""What the report and the JSON say of files without spans: all that they hold, and what they cannot tell."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "readers" / "support"))
from made_records import MIB, UNIX_US, block, call, entry, segment, write_flight, write_snapshot, write_timeline
from made_traces import UNIX_NS, kernel, write_kineto

from meshscope.reports.analysis_json import analysis, analysis_json
from meshscope.reports.text import report
from meshscope.run import open_traces


def said(path: Path) -> dict[str, Any]:
    opened = open_traces([path])
    (recording,) = json.loads(analysis_json(opened.runs, opened.refused))["recordings"]
    found: dict[str, Any] = recording
    return found


def text(path: Path) -> str:
    lines = report(open_traces([path]).runs, encoding="utf-8").splitlines()
    assert all(len(line) <= 80 or str(path)[:40] in line for line in lines)
    return " ".join(" ".join(lines).split())


def whys(recording: dict[str, Any], what: str) -> str:
    return " | ".join(one["why"] for one in recording["cannot_say"] if one["what"] == what)


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    held = segment(block(0, 6 * MIB), block(6 * MIB, 2 * MIB, "inactive"))
    history = [call("alloc", 3 * MIB, 1), call("free_requested", 3 * MIB, 2), call("oom", 90 * MIB, 5)]
    return write_snapshot(tmp_path / "memory_rank0.pickle", [held], history)


def test_a_snapshot_is_one_entry_of_memory_with_all_its_figures(snapshot: Path) -> None:
    recording = said(snapshot)
    (memory,) = recording["memory"]
    told = {key: memory[key] for key in ("rank", "device", "source", "peak_bytes", "end_bytes", "reserved_bytes",
                                         "preexisting_bytes", "categories")}  # fmt: skip
    assert told == {
        "rank": 0, "device": 0, "source": "snapshot of torch's CUDA allocator", "peak_bytes": 9 * MIB,
        "end_bytes": 6 * MIB, "reserved_bytes": 8 * MIB, "preexisting_bytes": 6 * MIB, "categories": {},
    }  # fmt: skip
    assert memory["allocator"]["free_bytes"] == 2 * MIB
    assert memory["history"]["peak_net_alloc_bytes"] == 3 * MIB
    assert "step" not in memory
    assert recording["ranks"] == []
    assert "holds no device work" in whys(recording, "breakdown")
    assert "neither a journal nor a trace" in whys(recording, "steps")
    (file,) = recording["files"]
    assert (file["path"], file["complete"], file["events"]["read"]) == (str(snapshot), True, 5)


def test_the_report_of_a_snapshot_has_no_empty_breakdown(snapshot: Path) -> None:
    shown = text(snapshot)
    assert "snapshot of torch's CUDA allocator, 1 rank" in shown
    assert "6.29 MB 9.44 MB 6.29 MB 8.39 MB 2.10 MB" in shown
    assert "out of memory 1 time, asking for up to 94.4 MB" in shown
    assert "cannot say breakdown: a snapshot of torch's CUDA allocator holds no device work" in shown
    assert "where a step goes" not in shown
    assert "trace events" not in shown


def test_a_timeline_tells_its_categories_at_the_peak_and_no_device(tmp_path: Path) -> None:
    path = write_timeline(tmp_path / "memory_timeline.raw.json.gz", [[-1, 1, 70, 0], [UNIX_NS, 2, 30, 4]])
    recording = said(path)
    (memory,) = recording["memory"]
    assert memory["categories"] == {
        "parameters": {"bytes": 70, "how": "measured"}, "activations": {"bytes": 30, "how": "measured"},
    }  # fmt: skip
    assert (memory["device"], memory["peak_bytes"], memory["preexisting_bytes"]) == (None, 100, 70)
    assert "reserved_bytes" not in memory
    assert whys(recording, "memory.reserved_bytes")
    assert "at the peak: parameters 70 B, activations 30 B" in text(path)


def test_flight_recorders_say_who_waited_for_whom(tmp_path: Path) -> None:
    stuck = entry(2, state="started", retired=False)
    write_flight(tmp_path / "nccl_trace_rank_0", [entry(1), stuck])
    write_flight(tmp_path / "nccl_trace_rank_1", [entry(1)])
    shown = text(tmp_path)
    assert "not done: all_reduce 2 of group 0 (default_pg): rank 0 had called it" in shown
    assert "rank 1 had not called it (newest there: rank 1: all_reduce 1)" in shown
    assert "of rank 2 there is no dump" in shown
    assert "called at train_step (train.py:42)" in shown
    told = said(tmp_path)["flight_recorder"]
    (unfinished,) = told["unfinished"]
    assert (unfinished["waiting"], unfinished["absent"], unfinished["unknown"]) == ([0], [1], [2])
    assert [(one["rank"], one["calls"], one["unfinished"]) for one in told["ranks"]] == [(0, 2, 1), (1, 1, 0)]
    assert [(one["name"], one["count"], one["unfinished"]) for one in told["collectives"]] == [("all_reduce", 3, 1)]
    assert [(one["rank"], one["sequence"], one["state"]) for one in told["entries"]] == [
        (0, 1, "completed"), (0, 2, "started"), (1, 1, "completed"),
    ]  # fmt: skip


def test_a_device_log_is_a_table_of_readings(tmp_path: Path) -> None:
    path = tmp_path / "gpu.csv"
    rows = "".join(f"2026/04/25 16:06:0{t}.000, NVIDIA H100, 3, {10 * t} %, [N/A]\n" for t in range(1, 5))
    path.write_text("timestamp, name, index, utilization.gpu [%], power.draw [W]\n" + rows)
    recording = said(path)
    assert recording["devices"] == [
        {"device": "gpu 3", "field": "utilization_frac", "count": 4, "mean": 0.25, "max": 0.4, "last": 0.4}
    ]
    assert (recording["framework"], recording["memory"], recording["ranks"]) == (None, [], [])
    assert whys(recording, "gpu 3 power_w") == "the log has [N/A] for it"
    shown = text(path)
    assert "devices (4 readings over 3.00 s)" in shown
    assert "gpu 3 utilization_frac 25.0 % 40.0 % 40.0 %" in shown
    assert "not read: gpu 3 power_w: the log has [N/A] for it" in shown
    assert "gpu 3: NVIDIA H100" in shown


def test_what_was_dropped_of_a_record_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "gpu.csv"
    path.write_text("timestamp, utilization.gpu [%]\n2026/04/25 16:06:01.0, 1 %\nFailed\n2026/04/25 16:06:0")
    assert "records: 1 read; dropped 1 (line that is cut short); dropped 1 (line that is no reading)" in text(path)
    (file,) = said(path)["files"]
    assert file["complete"] is False
    assert file["events"]["dropped"] == {"line that is cut short": 1, "line that is no reading": 1}


def test_a_record_beside_traces_adds_to_them_and_takes_nothing_away(tmp_path: Path) -> None:
    write_kineto(tmp_path / "rank0.json", [kernel("gemm", 0, 1000)], rank=0)
    alone = analysis(open_traces([tmp_path]).runs)["recordings"][0]
    write_snapshot(tmp_path / "memory_rank0.pickle", [segment(block(0, MIB))], [call("alloc", MIB, 500)])
    both = analysis(open_traces([tmp_path]).runs)["recordings"][0]
    assert both["ranks"][0]["breakdown"] == alone["ranks"][0]["breakdown"]
    assert both["memory"][0]["peak_bytes"] == MIB
    assert not whys(both, "breakdown")
    assert not whys(both, "memory")
    assert both["files"][0]["start_ns"] == (UNIX_US + 500) * 1000 - UNIX_NS


def test_text_from_a_file_cannot_steer_the_terminal(tmp_path: Path) -> None:
    evil = "\x1b[31m\u202e"
    path = write_flight(tmp_path / "nccl_trace_rank_0", [entry(1, f"all_reduce{evil}", process_group=(evil, evil),
                                                               state="started", retired=False)])  # fmt: skip
    assert "\x1b" not in report(open_traces([path]).runs, encoding="utf-8")
    assert "\u202e" not in report(open_traces([path]).runs, encoding="utf-8")
    snapshot = write_snapshot(
        tmp_path / "a.pickle", [segment(block(0, MIB))], [call("alloc", MIB, 1, addr=5, note=evil)]
    )
    assert "\x1b" not in report(open_traces([snapshot]).runs, encoding="utf-8")
    analysis_json(open_traces([tmp_path]).runs)
