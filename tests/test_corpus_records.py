"""Real files without spans, made by other people: every figure of the reference."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from meshscope.analysis.breakdown import measure
from meshscope.analysis.devices import devices
from meshscope.readers import read
from meshscope.readers.pickles import plain
from meshscope.readers.records import record_reader_of
from meshscope.readers.xplane_space import space
from meshscope.records import MemoryRecord, Record
from meshscope.reports.analysis_json import analysis
from meshscope.run import open_traces

pytestmark = pytest.mark.shared


def record_of(path: Path) -> Record:
    reader = record_reader_of(path)
    assert reader is not None
    (record,) = reader.read(path)
    return record


def test_the_snapshot_agrees_with_the_reference(shared: Path) -> None:
    folder = shared / "traces" / "mem-snapshot-medium-fwd"
    expected = json.loads((folder / "reference.memory.json").read_text())
    record = record_of(next(folder.glob("*.pickle")))
    assert isinstance(record, MemoryRecord)
    (trace,) = expected["traces"]
    assert record.device == trace["device"]
    assert record.reserved_bytes == expected["reserved_bytes"]
    assert record.end_bytes == record.figures["allocated_bytes"] == expected["allocated_bytes"]
    assert record.figures["active_bytes"] == expected["active_bytes"]
    assert record.figures["segments"] == expected["n_segments"]
    assert record.figures["blocks"] == sum(expected["block_states"].values())
    assert record.preexisting_bytes == trace["starting_allocated_estimate"]
    assert record.peak_bytes == trace["starting_allocated_estimate"] + trace["peak_net_alloc_bytes_over_trace"]
    assert record.actions == trace["actions"]
    history = record.history
    assert history["calls"] == trace["n"]
    assert history["net_alloc_bytes"] == trace["net_alloc_bytes_over_trace"]
    assert history["peak_net_alloc_bytes"] == trace["peak_net_alloc_bytes_over_trace"]
    assert history["peak_net_segment_bytes"] == trace["peak_net_segment_bytes"]
    assert history["first_time_ns"] == trace["first_time_us"] * 1000
    assert history["last_time_ns"] == trace["last_time_us"] * 1000


def test_what_was_alive_at_the_snapshots_peak_is_its_blocks_and_what_the_history_had_made_by_then(shared: Path) -> None:
    """The history frees all that it makes and nothing else, so its 223 blocks were there at every moment."""
    folder = shared / "traces" / "mem-snapshot-medium-fwd"
    path = next(folder.glob("*.pickle"))
    found = plain(path.read_bytes(), path.name)
    (calls,) = found["device_traces"]
    alive: dict[int, int] = {}
    fullest: dict[int, int] = {}
    for call in calls:
        if call["action"] == "alloc":
            alive[call["addr"]] = call["size"]
            fullest = dict(alive) if sum(alive.values()) > sum(fullest.values()) else fullest
        elif call["action"] == "free_requested":
            del alive[call["addr"]]
    blocks = [block for segment in found["segments"] for block in segment["blocks"]]
    held = [block["requested_size"] for block in blocks if block["state"] == "active_allocated"]
    record = record_of(path)
    assert isinstance(record, MemoryRecord)
    assert record.alive is not None
    assert sorted(record.alive.size_bytes.tolist()) == sorted([*held, *fullest.values()])
    assert int(record.alive.is_older.sum()) == len(held) == 223
    assert record.alive.total_bytes == record.peak_bytes
    assert record.alive.sites[0] == "cs336_basics/nn_utils.py:6 softmax"


def test_the_timeline_agrees_with_the_reference(shared: Path) -> None:
    folder = shared / "traces" / "mem-hta-timeline-raw"
    expected = json.loads((folder / "reference.memory.json").read_text())
    record = record_of(folder / "memory_timeline.raw.gz")
    assert isinstance(record, MemoryRecord)
    assert record.counts.read == expected["n"]
    names = {"preexisting": "1", "create": "2", "increment_version": "3", "destroy": "4"}
    assert {names[name]: count for name, count in record.actions.items()} == expected["actions"]
    assert record.peak_bytes == expected["peak_bytes_preexisting_plus_create_minus_destroy"]
    assert record.end_bytes == expected["net_bytes_end"]
    assert record.end_ns == expected["last"][0]
    assert sum(record.categories.values()) == record.peak_bytes


def test_the_log_without_a_heading_is_told_by_its_cells(shared: Path) -> None:
    (run,) = open_traces([shared / "traces" / "util-nvidia-smi-plato"]).runs
    found = {field.field: field for field in devices(run).fields}
    assert {field.count for field in found.values()} == {1923}
    assert set(found) == {
        "utilization_frac", "column_3_frac", "memory_used_bytes", "memory_free_bytes", "temperature_c", "power_w",
    }  # fmt: skip
    assert found["utilization_frac"].maximum == 0.98
    assert found["memory_used_bytes"].value[0] == 2 * 2**20
    assert found["power_w"].value[:2].tolist() == [11.64, 11.36]
    assert (found["temperature_c"].value.min(), found["temperature_c"].maximum) == (27, 46)
    assert run.now_ns == 9_636_953_000_000
    said = {one["what"] for one in analysis((run,))["recordings"][0]["cannot_say"]}
    assert {"breakdown", "column_3_frac", "names of columns", "t0_unix_ns", "memory"} <= said


def test_an_xplane_told_again_as_json_gives_the_same_numbers(shared: Path, tmp_path: Path) -> None:
    import sys

    sys.path.insert(0, str(Path(__file__).parent / "readers" / "support"))
    from made_records import as_jax_json

    checked = 0
    for path in sorted((shared / "traces").glob("xla-*/*.xplane.pb")):
        again = tmp_path / "a.trace.json.gz"
        content = path.read_bytes()
        again.write_bytes(as_jax_json(content))
        expected = {window.device: measure(window).total for window in read(path)}
        assert {window.device: measure(window).total for window in read(again)} == expected, path
        checked += len(space(content).planes) > 0
    assert checked >= 3
