"""Real traces, made by other people: every figure of the reference, to the nanosecond."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from meshscope.analysis.breakdown import Breakdown, measure
from meshscope.errors import TraceError
from meshscope.kinds import KERNELS, Kind, classify
from meshscope.readers import read
from meshscope.readers.xplane_space import space
from meshscope.run import open_traces
from meshscope.spans import Window

pytestmark = pytest.mark.shared

REFUSED = {"odd-tl-rocprofv3": "rocprofv3", "odd-xla-tpu-utf8-mangled": "UTF-8"}
ABSTAINS = {
    "gpu-hta-cupti": "CUPTI",
    "odd-hta-mtia": "mtia_ccp_events",
    "odd-hta-non-gpu": "host activity",
    "odd-hta-rank-missing": "host activity",
    "odd-lightning-barelist-2021": "host activity",
}


def figures(window: Window, found: Breakdown) -> dict[str, int]:
    return {
        "n_events": window.counts.device,
        "span_ns": found.span_ns,
        "compute_ns": found.compute_ns,
        "comm_ns": found.collective_ns,
        "memory_ns": found.copy_ns,
        "overlap_ns": found.hidden_ns,
        "exposed_comm_ns": found.exposed_ns,
        "busy_ns": found.busy_ns,
        "idle_ns": found.idle_ns,
    }


def references(folder: Path, name: str) -> list[tuple[Path, Any]]:
    return [(path.parent, json.loads(path.read_text())) for path in sorted(folder.glob(f"traces/*/{name}"))]


def test_every_kineto_file_agrees_with_the_reference(shared: Path) -> None:
    checked = 0
    for folder, reference in references(shared, "reference.intervals.json"):
        for expected in reference["traces"]:
            if folder.name in REFUSED or not expected["all"]["n_events"]:
                continue
            (window,) = read(folder / expected["file"])
            found = figures(window, measure(window).total)
            assert found == {name: expected["all"][name] for name in found}, expected["file"]
            assert window.counts.read == expected["n_trace_events"]
            assert expected["rank"] in (None, window.rank)
            checked += 1
    assert checked >= 40


def test_every_xplane_file_agrees_with_the_reference(shared: Path) -> None:
    checked = 0
    for folder, reference in references(shared, "reference.xplane_intervals.json"):
        windows = {window.device: window for window in read(folder / reference["file"])}
        planes = [plane for plane in reference["planes"] if plane["n_events"]]
        assert sorted(windows) == sorted(int(plane["plane"].rsplit(":", 1)[1]) for plane in planes)
        for expected in planes:
            window = windows[int(expected["plane"].rsplit(":", 1)[1])]
            found = figures(window, measure(window).total)
            assert found == {name: expected[name] for name in found}, expected["plane"]
            checked += 1
    assert checked >= 13


def test_every_event_of_every_plane_of_an_xplane_file_is_read(shared: Path) -> None:
    checked = 0
    for folder, reference in references(shared, "reference.profiledata.json"):
        found = space((folder / reference["file"]).read_bytes())
        lines = {(plane.name, line.name): len(line) for plane in found.planes for line in plane.lines}
        for plane in reference["planes"]:
            assert sum(count for (name, _), count in lines.items() if name == plane["plane"]) == plane["events"]
            checked += plane["events"]
        expected = sum(plane["events"] for plane in reference["planes"])
        assert {window.counts.read for window in read(folder / reference["file"])} == {expected}
    assert checked > 10_000


def test_kernels_of_the_corpus_are_communication_where_the_reference_says_so(shared: Path) -> None:
    """By name alone: what a trace records beside names is left out here."""
    pattern = re.compile(_pattern(shared), re.IGNORECASE)
    names = {
        window.spans.names[number]
        for folder, reference in references(shared, "reference.intervals.json")
        for trace in reference["traces"]
        if folder.name not in REFUSED
        for window in read(folder / trace["file"])
        for number in set(window.spans.name[(window.spans.rule >= 0) & (window.spans.kind != Kind.HOST)].tolist())
        if window.device_kind == "gpu"
    }
    told = dict(zip(sorted(names), classify(sorted(names), KERNELS).kind == Kind.COLLECTIVE, strict=True))
    assert told == {name: pattern.search(name) is not None for name in names}
    assert sum(told.values()) >= 10


def _pattern(shared: Path) -> str:
    source = (shared / "traces" / "reference_intervals.py").read_text()
    parts = source[source.index("COMM_RE = re.compile(") :].split(", re.I)", 1)[0]
    return "".join(re.findall(r'r"([^"]*)"', parts))


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_trace_is_refused_by_its_name(shared: Path, case: str) -> None:
    files = [path for path in (shared / "traces" / case).iterdir() if path.name.endswith((".json.gz", ".pb"))]
    with pytest.raises(TraceError, match=REFUSED[case]) as told:
        read(files[0])
    assert told.value.hint


@pytest.mark.parametrize("case", ABSTAINS)
def test_a_trace_without_device_work_abstains_and_says_why(shared: Path, case: str) -> None:
    suffixes = (".json", ".json.gz")
    files = [f for f in (shared / "traces" / case).iterdir() if f.name.endswith(suffixes) and "reference" not in f.name]
    (window,) = read(files[0])
    assert window.device_kind == "none"
    assert ABSTAINS[case] in dict(window.cannot_say)["breakdown"]


def test_two_runs_left_in_one_folder_stay_two(shared: Path) -> None:
    runs = open_traces([shared / "traces" / "mr-torchrec-sst4-mixedruns"]).runs
    assert [[window.rank for window in run.windows] for run in runs] == [[0, 1, 2, 3], [0, 1, 2, 3]]


def test_ranks_of_different_worlds_are_not_one_run(shared: Path) -> None:
    runs = open_traces([shared / "traces" / "nccl-hta-trace-diff-ab"]).runs
    assert [[window.rank for window in run.windows] for run in runs] == [[3], [1]]


def test_all_ranks_of_one_run_are_one_run(shared: Path) -> None:
    (run,) = open_traces([shared / "traces" / "mr-megatron-tp8-a100"]).runs
    assert [window.rank for window in run.windows] == list(range(8))
    assert min(window.start_ns for window in run.windows) == 0
