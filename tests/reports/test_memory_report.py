"""What the report and the JSON say of memory: who asked for what was alive, a failure, the headroom."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "readers" / "support"))
from made_records import MIB, block, call, segment, write_snapshot, write_timeline
from made_traces import UNIX_NS

from meshscope.reports.analysis_json import analysis_json
from meshscope.reports.text import report
from meshscope.run import open_traces

STACK = [{"name": "forward", "filename": "/home/user/gpt/\x1b[31mmodel.py", "line": 41}]


def said(path: Path) -> dict[str, Any]:
    opened = open_traces([path])
    (recording,) = json.loads(analysis_json(opened.runs, opened.refused))["recordings"]
    found: dict[str, Any] = recording
    return found


def text(path: Path) -> str:
    return " ".join(report(open_traces([path]).runs, encoding="utf-8").split())


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    """6 MiB were there before; 12 MiB came and are left of what was asked for by line 41; 90 MiB failed."""
    segments = [segment(block(0, 6 * MIB), block(6 * MIB, 12 * MIB), block(18 * MIB, 2 * MIB, "inactive"))]
    history = [
        call("alloc", 12 * MIB, 1, addr=6 * MIB, frames=STACK), call("oom", 90 * MIB, 5, device_free=4 * MIB),
    ]  # fmt: skip
    return write_snapshot(tmp_path / "memory_rank0.pickle", segments, history)


def test_the_json_tells_who_asked_for_what_was_alive(snapshot: Path) -> None:
    (memory,) = said(snapshot)["memory"]
    alive = memory["alive"]
    assert (alive["moment"], alive["total_bytes"], alive["count"]) == ("peak", 18 * MIB, 2)
    assert alive["total_bytes"] == memory["peak_bytes"]
    assert alive["sites"][0] == {
        "name": "gpt/�[31mmodel.py:41 forward", "count": 1, "bytes": 12 * MIB, "frac": pytest.approx(2 / 3),
    }  # fmt: skip
    assert alive["unplaced_bytes"] == 6 * MIB
    assert [group["name"] for group in alive["classes"]] == ["1 to 10 MiB", "10 to 100 MiB"]
    assert memory["over_time"] == [{"t_ns": memory["over_time"][0]["t_ns"], "total_bytes": 18 * MIB, "categories": {}}]


def test_the_json_tells_what_was_held_when_memory_ran_out(snapshot: Path) -> None:
    recording = said(snapshot)
    failure = recording["memory"][0]["failure"]
    assert (failure["asked_bytes"], failure["device_free_bytes"], failure["largest_free_bytes"]) == (
        90 * MIB, 4 * MIB, 2 * MIB,
    )  # fmt: skip
    (failed,) = recording["out_of_memory"]
    assert (failed["rank"], failed["cause"], failed["pool_free_bytes"]) == (0, "full", 2 * MIB)
    assert failed["alive"]["total_bytes"] == 18 * MIB
    assert recording["findings"][0]["code"] == "out-of-memory"
    assert recording["headroom"] == []
    assert any(one["what"] == "headroom" for one in recording["cannot_say"])


def test_the_report_has_a_row_for_each_site_and_no_escape_gets_through(snapshot: Path) -> None:
    shown = text(snapshot)
    assert "alive at the peak: 2 allocations, 18.9 MB; shares are of that" in shown
    assert "model.py:41 forward 1 12.6 MB 66.7 %" in shown
    assert "made before the history began: no stack 1 6.29 MB 33.3 %" in shown
    assert "out of memory, rank 0" in shown
    assert "\x1b" not in shown


def test_a_timeline_tells_its_categories_over_time(tmp_path: Path) -> None:
    rows: list[list[int | None]] = [
        [-1, 1, 7000, 0], [UNIX_NS, 2, 2000, 4], [UNIX_NS + 500, 4, -2000, 4], [UNIX_NS + 1000, 2, 100, 5],
    ]  # fmt: skip
    (memory,) = said(write_timeline(tmp_path / "memory_timeline.raw.json", rows))["memory"]
    assert [(moment["total_bytes"], moment["categories"]) for moment in memory["over_time"]] == [
        (9000, {"parameters": 7000, "activations": 2000, "gradients": 0}),
        (7000, {"parameters": 7000, "activations": 0, "gradients": 0}),
        (7100, {"parameters": 7000, "activations": 0, "gradients": 100}),
    ]
