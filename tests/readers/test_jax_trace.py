"""JAX's JSON: the numbers of the xplane beside it, to the nanosecond."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from made_records import write_jax_json
from made_traces import UNIX_NS, Line, XSpace

from meshscope import readers
from meshscope.analysis.breakdown import measure
from meshscope.analysis.collectives import measure as collectives
from meshscope.readers import jax_trace, time_bounds
from meshscope.spans import Window


def op(name: str, start_us: float, dur_us: float, device: int) -> tuple[str, int, int, dict[str, Any]]:
    return name, round(start_us * 1e6), round(dur_us * 1e6), {"hlo_op": name, "device_ordinal": device}


KEY = "all reduce RendezvousKey{run_id=RunId: 1, global_devices=[0, 1], num_local_participants=2}"
CPU: list[Line] = [
    ("tf_XLAEigen/1", [op("dot.4", 1.25, 10.333333, 0), op("all-reduce.3", 12, 9.5, 0),
                       ("Rendezvous", 13_000_000, 4_000_001, {"name": KEY})]),
    ("tf_XLAEigen/2", [op("dot.4", 2, 19.001999, 1), op("all-reduce.3", 22, 1.5, 1)]),
    ("python", [("train", 0, 30_000_000, {"step_num": 7}), ("$file.py:1 f", 0, 5_000_000, {})]),
]  # fmt: skip
GPU: list[Line] = [
    ("Stream #13(Kernel)", [("gemm_fusion", 1_000, 5_500, {"hlo_op": "dot.1", "cuda_graph_id": 3}),
                            ("loop_kernel", 7_001, 3_998, {"hlo_op": "all-reduce-start.1"})]),
    ("Stream #14(MemcpyD2H)", [("MemcpyD2H", 2_000, 9_000, {})]),
    ("Steps", [("0", 0, 20_000, {}), ("1", 20_000, 9_000, {})]),
]  # fmt: skip
TPU: list[Line] = [
    ("XLA Ops", [("%fusion.1 = f32[8] fusion(%a)", 0, 3_333, {}),
                 ("%all-reduce.2 = f32[8] all-reduce(%b)", 4_000, 777, {})]),
    ("XLA Modules", [("jit_step(1)", 0, 9_000, {})]),
    ("Steps", [("4", 0, 9_000, {})]),
    ("Async XLA Ops", [("%copy-start.1 = f32[8] copy-start(%c)", 100, 5_000, {})]),
]  # fmt: skip
MADE = {
    "cpu": XSpace().plane("/host:CPU", CPU),
    "gpu": XSpace().plane("/device:GPU:0", GPU, timestamp_ns=123).plane("/device:GPU:1", GPU),
    "tpu": XSpace().plane("/device:TPU:0", TPU).plane("/host:CPU", [("python", [("f", 0, 5, {})])]),
}


def totals(window: Window) -> dict[object, tuple[object, ...]]:
    pieces = collectives(window).pieces
    return {key: (p.row.tolist(), p.busy_ns, p.hidden_ns, p.wait_ns, p.bytes) for key, p in pieces.items()}


def facts(window: Window) -> tuple[object, ...]:
    spans = window.spans
    return (
        window.rank, window.device, window.device_kind, window.framework, window.steps, window.step_ns.tolist(),
        window.counts.device, measure(window).total, measure(window).stepped, totals(window),
        spans.start_ns.tolist(), spans.end_ns.tolist(), [spans.name_of(row) for row in range(len(spans))],
        spans.how.tolist(), spans.kind.tolist(), [spans.lanes[lane] for lane in spans.lane.tolist()],
    )  # fmt: skip


@pytest.mark.parametrize("is_perfetto", [False, True])
@pytest.mark.parametrize("kind", MADE)
def test_the_json_gives_what_the_xplane_gives(tmp_path: Path, kind: str, is_perfetto: bool) -> None:
    xplane = readers.read(MADE[kind].write(tmp_path / "a.xplane.pb"))
    path = write_jax_json(tmp_path / "a.trace.json.gz", MADE[kind], is_perfetto=is_perfetto)
    assert readers.reader_of(path).format == "JAX trace JSON"
    assert [facts(window) for window in readers.read(path)] == [facts(window) for window in xplane]
    assert {window.device_kind for window in xplane} == {kind}


def test_it_does_not_say_when_it_was_made(tmp_path: Path) -> None:
    made = XSpace().plane("/device:TPU:0", TPU, timestamp_ns=5_000).started(UNIX_NS)
    (window,) = readers.read(write_jax_json(tmp_path / "a.trace.json.gz", made))
    assert not window.has_unix_time
    assert window.start_ns == 0
    assert "t0_unix_ns" in dict(window.cannot_say)


def test_a_shortened_name_is_told_by_the_whole_text_beside_it(tmp_path: Path) -> None:
    whole = "%psum.3 = f32[8] all-reduce(%a)"
    events = [
        {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/device:TPU:0"}},
        {"ph": "M", "pid": 1, "tid": 2, "name": "thread_name", "args": {"name": "XLA Ops"}},
        {"ph": "X", "pid": 1, "tid": 2, "ts": 0, "dur": 5, "name": "psum.3", "args": {"long_name": whole}},
    ]
    path = tmp_path / "a.trace.json.gz"
    path.write_bytes(gzip.compress(json.dumps({"displayTimeUnit": "ns", "traceEvents": events}).encode()))
    (window,) = readers.read(path)
    assert window.spans.names == (whole,)


def test_at_the_limit_of_events_the_rest_is_missing_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_jax_json(tmp_path / "a.trace.json.gz", MADE["tpu"])
    (window,) = readers.read(path)
    assert window.is_complete
    monkeypatch.setattr(jax_trace, "MOST_EVENTS", 6)
    (window,) = readers.read(path)
    assert not window.is_complete
    assert "XLA drops what is beyond 6" in dict(window.cannot_say)["events"]


def test_events_that_cannot_be_at_their_time_are_counted_in_the_words_of_every_format(tmp_path: Path) -> None:
    path = write_jax_json(tmp_path / "a.trace.json.gz", MADE["tpu"])
    told = json.loads(gzip.decompress(path.read_bytes()))
    cases = {
        time_bounds.NO_TIME: ({"dur": 1}, {"ts": "x", "dur": 1}),
        time_bounds.OUT_OF_RANGE: ({"ts": 1e300, "dur": 1}, {"ts": 5e12, "dur": 1}),
        time_bounds.RATHER_NANOSECONDS: ({"ts": 1_790_000_000_000_000_000, "dur": 1},),
        time_bounds.TOO_EARLY: ({"ts": -1e300, "dur": 1},),
        time_bounds.NO_DURATION: ({"ts": 1, "dur": "x"},),
        time_bounds.TOO_LONG: ({"ts": 1, "dur": 1e300},),
        time_bounds.NEGATIVE: ({"ts": 1, "dur": -1},),
    }
    told["traceEvents"][2:2] = [
        {"ph": "X", "pid": 1, "tid": 1, "name": "%a = f32[] b()", **times}
        for several in cases.values() for times in several
    ]  # fmt: skip
    path.write_bytes(gzip.compress(json.dumps(told).encode()))
    (window,) = readers.read(path)
    assert window.counts.dropped == {reason: len(several) for reason, several in cases.items()}
    assert window.counts.device == 2


@pytest.mark.parametrize(
    "token", ["45960.646000000001", "0.43099999999999999", "9.9999999999999995e-07", "7200000000.5"]
)
def test_a_double_of_microseconds_gives_its_picoseconds_back(token: str) -> None:
    import msgspec

    expected = {"45960.646000000001": 45_960_646_000, "0.43099999999999999": 431_000, "9.9999999999999995e-07": 1,
                "7200000000.5": 7_200_000_000_500_000}  # fmt: skip
    assert jax_trace._picoseconds(msgspec.Raw(token.encode())) == expected[token]


def test_operations_that_only_a_program_could_tell_are_doubted(tmp_path: Path) -> None:
    made = XSpace().plane("/host:CPU", [("tf_XLAEigen/1", [op("dot.4", 1, 5, 0), op("psum.7", 8, 2, 0)])])
    (window,) = readers.read(write_jax_json(tmp_path / "a.trace.json.gz", made))
    assert "1 operation is named after JAX's own" in dict(window.cannot_say)["collectives"]
    (window,) = readers.read(write_jax_json(tmp_path / "a.trace.json.gz", XSpace().plane("/device:TPU:0", TPU)))
    assert "collectives" not in dict(window.cannot_say)


def test_a_profile_without_a_single_event_says_so(tmp_path: Path) -> None:
    (window,) = readers.read(
        write_jax_json(tmp_path / "a.trace.json.gz", XSpace().plane("/host:CPU", [("python", [])]))
    )
    assert window.device_kind == "none"
    assert "no operation on any device plane" in dict(window.cannot_say)["breakdown"]


def test_two_profiles_behind_each_other_are_no_rank_at_all(tmp_path: Path) -> None:
    path = write_jax_json(tmp_path / "a.trace.json.gz", XSpace().plane("/host:CPU", CPU))
    assert {window.device_kind for window in readers.read(path)} == {"cpu"}
    path.write_bytes(path.read_bytes() * 2)
    (window,) = readers.read(path)
    assert (window.device_kind, len(window.spans), window.counts.device) == ("none", 0, 0)
    assert "another trace begins inside this one" in dict(window.cannot_say)["breakdown"]
