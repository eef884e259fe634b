"""Findings in both reports."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from drawn import run, steps

from meshscope.analysis.findings import Finding
from meshscope.recording.entries import Checked
from meshscope.reports import findings_text
from meshscope.reports.analysis_json import analysis, analysis_json
from meshscope.reports.text import report
from meshscope.run import Run

MS = 1_000_000


def troubled(why: str = "state") -> Run:
    """Steps that wait for their batches on both ranks, and ranks that draw the same random numbers."""
    keys = [
        Checked(t_ns=step, rank=rank, step=step, parameters=0.0, rng=f"{why} {step}")
        for step in range(3)
        for rank in (0, 1)
    ]
    return run([*steps([100.0] * 20, data_wait_ns=30 * MS), *keys])


def test_both_reports_tell_findings_with_cost_evidence_and_fix_the_gravest_first() -> None:
    (recording,) = analysis([troubled()])["recordings"]
    grave, costly = recording["findings"]
    assert (grave["code"], grave["grave"], grave["rank"], grave["cost_ns"]) == ("same-key", True, None, None)
    assert "cost_frac" not in grave
    assert (costly["code"], costly["title"], costly["cost_ns"]) == ("input-bound", "input-bound", 30 * MS)
    assert costly["of"] == "the median step of 101 ms"
    assert round(costly["cost_frac"], 3) == 0.297
    assert costly["evidence"]
    assert costly["advice"]
    assert "num_workers=8" in costly["fix"]
    lines = report([troubled()], encoding="utf-8").splitlines()
    at = lines.index("  findings:")
    assert lines[at + 1] == "    1 same random key on every device: spoils the run"
    assert "    2 input-bound: 30.0 ms, 29.7 % of the median step of 101 ms" in lines
    assert any(line.startswith("      | loader = torch.utils.data.DataLoader(") for line in lines)
    assert at < lines.index(next(line for line in lines if line.startswith("  steps:")))


def test_that_costs_do_not_add_up_is_said_where_several_have_one(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Finding("a", "a", (), "Do this.", "", cost_ns=1.0, cost_frac=0.5, of="the step")
    for found, head in (
        ((one, one), "  findings (their costs overlap, and do not add up):"),
        ((one, replace(one, cost_frac=math.nan)), "  findings:"),
    ):
        monkeypatch.setattr(findings_text, "findings", lambda _, found=found: found)
        assert findings_text.findings_lines(run())[0] == head


def test_a_healthy_run_has_an_empty_list_and_says_what_was_looked_for() -> None:
    healthy = run(steps([100.0] * 20))
    (recording,) = analysis([healthy])["recordings"]
    assert recording["findings"] == []
    states = {one["code"]: one["state"] for one in recording["looked_for"]}
    assert (states["hang"], states["host-bound"]) == ("judged", "cannot say")
    text = " ".join(report([healthy], encoding="utf-8").split())
    judged, untold = (sum(state == of for state in states.values()) for of in ("judged", "cannot say"))
    assert judged < untold
    assert f"None shows, but only {judged} of {judged + untold} pitfalls could be judged." in text
    assert f"; {untold} could not be judged, " in text.partition("looked for and not found: ")[2]


def test_what_is_not_known_is_no_number_in_the_json() -> None:
    said = json.loads(analysis_json([troubled()]))["recordings"][0]["findings"][0]
    assert said["cost_ns"] is None


def test_lines_to_paste_are_whole_within_eighty_characters() -> None:
    lines = report([troubled()], encoding="utf-8").splitlines()
    assert max(len(line) for line in lines) <= 80
    (_, costly) = analysis([troubled()])["recordings"][0]["findings"]
    assert all(f"      | {code}" in lines for code in costly["fix"].splitlines())
