"""The two reports: what other programs rely on, and what a plain terminal shows."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from drawn import run, steps, windows

from meshscope.discovery import bundled
from meshscope.recording.entries import Compiled, Ended, MemoryMeasured, Phase, Sampled, SensorFailed, TraceWritten
from meshscope.recording.layout import recordings
from meshscope.reports.analysis_json import analysis, analysis_json
from meshscope.reports.columns import WIDTH
from meshscope.reports.comparison_json import comparison_json
from meshscope.reports.text import report
from meshscope.run import Gallery, Run

Golden = Callable[[str, str], None]

MS = 1_000_000
DDP = """
    0 step        aaaaaaaaaabbbbbbbbbb
    0 compute     ########..########..
    0 all_reduce  ....#####.....#####.
    1 step        aaaaaaaaaabbbbbbbbbb
    1 compute     #######...#######...
    1 all_reduce  ....#####.....#####.
"""
PMAP = """
    0 step        aaaaaaaaaaaaaaaaaaaa
    0 compute     ########............
    0 all_gather  ........##########..
    0 wait        ........####........
"""


def ddp() -> Run:
    sizes = {"parameters": 10_000_000, "gradients": 10_000_000, "optimizer": 20_000_000}
    how = dict.fromkeys(sizes, "exact")
    memory = [
        MemoryMeasured(t_ns=1, rank=rank, device=rank, step=1, source="trees", categories=sizes, how=how,
                       peak_bytes=61_000_000, peak_how="derived")
        for rank in (0, 1)
    ]  # fmt: skip
    trace = TraceWritten(
        t_ns=9, rank=0, path="a", format="kineto", first_step=5, end_step=7, size_bytes=1, stop_ns=20 * MS
    )
    sensors = [Sampled(t_ns=at, device="cpu", values={"utilization_frac": at / 10}) for at in (4, 6)]
    failed = SensorFailed(t_ns=1, device="gpu 0", field="power_w", why="not supported")
    ended = Ended(t_ns=10**10, outcome="done")
    entries = [
        *steps([90, 80, 70, 71, 72, 75, 76, 70, 71, 72], profiled=[5, 6]),
        *memory,
        trace,
        *sensors,
        failed,
        ended,
    ]
    return run(entries, windows=windows(DDP, device_kind="cpu", tells_wait=False), device_kind="cpu")


def pmap(outcome: str = "done", why: str = "") -> Run:
    compiled = Compiled(t_ns=1, rank=0, name="step", stage="compile", duration_ns=1_900 * MS)
    ended = Ended(t_ns=10**10, outcome=outcome, why=why, rank=1)
    entries = [*steps([300, 170, 140, 141, 142, 140], ranks=1, samples=32), compiled, ended]
    (window,) = windows(PMAP, device_kind="cpu", framework="jax")
    return run(entries, windows=[window], strategy="pmap", framework="jax", device_kind="cpu")


def alone(picture: str = "0 compute ####", **about: Any) -> Run:
    """A trace without a recording."""
    known: dict[str, Any] = {"strategy": "", "title": "trace.json", "planned_steps": 0, "ranks": 1}
    return replace(run(windows=windows(picture, **about), **known), path="/somewhere/trace.json")


def test_the_text_report_of_two_strategies(golden: Golden) -> None:
    golden("two_strategies.txt", report([ddp(), pmap()], encoding="utf-8"))


def test_the_json_of_two_strategies(golden: Golden) -> None:
    golden("two_strategies.json", analysis_json([ddp(), pmap()], [("x.json", "no events", "give another")]))


def bundled_recordings() -> list[Path]:
    return [
        recording for plan in sorted(bundled("recordings").glob("*/plan.json")) for recording in recordings(plan.parent)
    ]


@pytest.mark.parametrize("folder", bundled_recordings(), ids=lambda folder: folder.name)
def test_what_the_bundled_recordings_say(golden: Golden, folder: Path) -> None:
    gallery = Gallery(folder)
    end = gallery.end_unix_ns
    assert end is not None
    said = analysis(gallery.at(end)[1])
    for recording in said["recordings"]:
        recording["path"] = Path(recording["path"]).name
    golden(f"recordings/{folder.name}.json", json.dumps(said, indent=1))


@pytest.mark.parametrize("runs", [[], [ddp()], [ddp(), pmap()], [alone()]], ids=len)
def test_no_line_is_wider_than_a_plain_terminal(runs: list[Run]) -> None:
    assert max((len(line) for line in report(runs, encoding="utf-8").splitlines()), default=0) <= WIDTH


def test_a_terminal_without_unicode_gets_ascii() -> None:
    assert not report([ddp(), pmap()], encoding="utf-8").isascii()
    for encoding in ("ascii", "no-such-encoding"):
        text = report([ddp(), pmap("failed", "…")], encoding=encoding)
        assert text.isascii()
        assert "?" not in text


def test_nothing_in_a_name_can_steer_the_terminal() -> None:
    hostile = run(strategy="\x1b[31mred\x07", title="\u202eevil")
    assert "\x1b" not in report([hostile], encoding="utf-8")
    assert "\u202e" not in report([hostile], encoding="utf-8")


def test_a_trace_alone_is_told_without_a_comparison() -> None:
    text = report([alone()], encoding="utf-8")
    assert text.startswith("/somewhere/trace.json: torch, 1 GPU rank")
    assert "samples/s" not in text


def test_a_failure_is_told_with_its_reason() -> None:
    killed = pmap("failed", "rank 1 was killed (SIGKILL)")
    said = report([ddp(), killed], encoding="utf-8")
    assert "pmap failed: rank 1 was killed (SIGKILL)" in said
    assert "pmap is not ranked: it failed before its last step." in said


def test_a_trace_that_could_not_be_read_is_told_where_there_is_no_other() -> None:
    broken = replace(run(steps([9.0] * 9)), refused=(("traces/a.json", "no events", "look"),))
    assert "  not read: traces/a.json: no events" in report([broken], encoding="utf-8").splitlines()


def test_lines_of_the_journal_that_could_not_be_read_are_told() -> None:
    damaged = replace(ddp(), skipped_lines=3)
    assert "  not read: 3 lines of the journal" in report([damaged], encoding="utf-8").splitlines()
    (said,) = analysis([damaged])["recordings"]
    assert {"what": "journal", "why": "3 lines of it could not be read"} in said["cannot_say"]


def test_one_of_anything_is_singular() -> None:
    again = [
        Compiled(t_ns=1, rank=0, name="f", stage="compile", duration_ns=5, is_recompilation=again, step=9 * again)
        for again in (False, True)
    ]
    entries = [*steps([9.0] * 9, ranks=1, profiled=[5]), *again]
    many = windows("\n".join(f"{rank} compute ####" for rank in range(17)))
    one = run(entries, ranks=1, cores=1, device_kind="cpu", windows=many)
    said = " ".join(report([one], encoding="utf-8").split())
    for words in ("1 CPU rank has 1 core:", "1 warm step that profiling touched took", "again 1 time;", "1 more rank "):
        assert words in said
    assert "6 warm steps that profiling touched took" in report([run(steps([9.0] * 9, profiled=range(2, 8)))])


def every_value(said: Any) -> list[Any]:
    if isinstance(said, dict):
        return [value for one in said.values() for value in every_value(one)]
    if isinstance(said, list):
        return [value for one in said for value in every_value(one)]
    return [said]


def test_json_is_finite_and_what_is_unknown_is_absent_and_said() -> None:
    fresh = run([Phase(t_ns=0, rank=0, phase="launching")], strategy="fsdp")
    said = json.loads(analysis_json([fresh, ddp()]))
    assert all(math.isfinite(value) for value in every_value(said) if isinstance(value, float))
    empty, full = said["recordings"]
    assert "median_ns" not in empty["steps"]
    assert {"what": "steps", "why": "no step has finished"} in empty["cannot_say"]
    assert "compile_ns" not in full["steps"]
    assert "steps.compile_ns" in {doubt["what"] for doubt in full["cannot_say"]}
    assert {"what": "gpu 0 power_w", "why": "not supported"} in full["cannot_say"]


def test_json_has_the_parts_other_programs_rely_on() -> None:
    (said,) = json.loads(analysis_json([ddp()]))["recordings"]
    assert set(said) >= {
        "path", "framework", "strategy", "device_kind", "ranks", "collectives", "memory", "steps", "devices",
        "findings", "cannot_say",
    }  # fmt: skip
    rank = said["ranks"][0]
    assert set(rank) == {"rank", "device", "rank_from", "windows", "breakdown", "per_step", "events"}
    for part in (rank["breakdown"], rank["per_step"]):
        assert part["hidden_ns"] + part["exposed_ns"] == part["collective_ns"]
        assert part["busy_ns"] + part["idle_ns"] == part["span_ns"]
        assert part["wait_ns"] == 0
    assert "wait_ns" not in {doubt["what"] for doubt in said["cannot_say"]}
    assert rank["per_step"]["steps"] == 2
    assert rank["windows"] == [{"start_ns": 0, "end_ns": 190, "steps": [0, 1], "complete": True}]
    assert said["memory"][0]["categories"]["optimizer"] == {"bytes": 20_000_000, "how": "exact"}
    assert said["devices"][0] == {
        "device": "cpu", "field": "utilization_frac", "count": 2, "mean": 0.5, "max": 0.6, "last": 0.6,
    }  # fmt: skip


def test_json_compares_the_strategies() -> None:
    lost = replace(pmap("failed"), ended=None, now_ns=10**12)
    found = json.loads(analysis_json([ddp(), lost, alone()]))["comparison"]
    assert set(found) == {"leader", "verdict", "footnotes", "strategies"}
    assert (found["leader"], found["verdict"][:16]) == ("ddp", "ddp: 444 samples")
    assert "pmap is not ranked: it broke off before its last step." in found["footnotes"]
    first, second = found["strategies"]
    assert (first["strategy"], first["ranked"], first["not_ranked_why"]) == ("ddp", True, None)
    assert (second["ranked"], second["not_ranked_why"]) == (False, "broke off before its last step")
    assert (first["median_ns"], first["peak_bytes"], first["peak_how"]) == (72 * MS, 61_000_000, "derived")
    assert first["shares"] == pytest.approx({"compute": 0.4, "hidden": 0.35, "exposed": 0.15, "copy": 0, "idle": 0.1})
    assert first["exposed_frac"] == pytest.approx(0.15)
    assert {"samples_per_s", "spread", "parallel_lines", "profiler_cost_frac"} <= set(first)
    assert not {"speedup", "efficiency_frac", "compile_ns"} & set(first)
    assert second["compile_ns"] == 1_900 * MS
    assert not {"peak_bytes", "peak_how"} & set(second)


def test_json_of_traces_alone_compares_nothing() -> None:
    assert json.loads(analysis_json([alone()]))["comparison"] is None
    assert "samples/s     ±" in report([ddp(), alone()], encoding="utf-8")
    assert len(comparison_json([ddp(), alone()])["strategies"]) == 1  # type: ignore[index]


def test_a_path_that_is_no_text_does_not_stop_the_json() -> None:
    odd = replace(ddp(), path="/tmp/caf\udce9", refused=(("traces/\udcff.json", "no events", ""),))
    said = json.loads(analysis_json([odd], [("\udc80", "the line\nbreak", "é")]))
    assert said["recordings"][0]["path"] == "/tmp/caf�"
    assert said["refused"][0] == {"path": "�", "why": "the line\nbreak", "hint": "é"}
    assert said["refused"][1]["path"] == "/tmp/caf�/traces/�.json"


def test_json_of_a_trace_without_device_work_has_no_breakdown_and_says_why() -> None:
    none = alone("0 host ####", device_kind="none", cannot_say=(("breakdown", "only host activity"),))
    (said,) = json.loads(analysis_json([none]))["recordings"]
    assert (said["strategy"], said["device_kind"]) == (None, "gpu")
    assert "breakdown" not in said["ranks"][0]
    assert {"what": "breakdown", "why": "only host activity"} in said["cannot_say"]


def test_json_lists_refused_files_and_refused_traces_of_a_recording() -> None:
    broken = replace(ddp(), path="r", refused=(("traces/a.json", "no events", "look"),))
    said = json.loads(analysis_json([broken], [("x.json", "empty", "give another")]))
    assert said["refused"] == [
        {"path": "x.json", "why": "empty", "hint": "give another"},
        {"path": "r/traces/a.json", "why": "no events", "hint": "look"},
    ]


def test_a_fault_that_was_put_in_stands_in_both_reports() -> None:
    made = run(steps([9.0] * 9), strategy="ddp", title="DDP, with injected same key", faults=["same key"])
    assert "ddp: DDP, with injected same key" in report([made])
    assert "No clean run: ddp ran with injected same key." in report([made, replace(ddp(), path="other")])
    (said,) = json.loads(analysis_json([made]))["recordings"]
    assert said["injected"] == ["same key"]
    (clean,) = json.loads(analysis_json([ddp()]))["recordings"]
    assert "injected" not in clean


def test_the_parts_of_a_step_in_the_table_add_up_to_it_and_compute_is_told_apart() -> None:
    lines = report((ddp(),), encoding="utf-8").splitlines()
    (at,) = (number for number, line in enumerate(lines) if "compute alone" in line and "wait ms" in line)
    shares = [float(cell) for cell in re.findall(r"([\d.]+) %", lines[at + 1])]
    # Of ten: eight compute, four of them beside the all-reduce, one of it exposed, one idle.
    assert shares == [40.0, 40.0, 10.0, 0.0, 10.0]
