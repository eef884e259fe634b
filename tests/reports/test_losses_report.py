"""Losses against one device, in the text and in the JSON."""

from __future__ import annotations

import json
from typing import Any

from drawn import run, steps

from meshscope.reports.analysis_json import analysis, analysis_json
from meshscope.reports.columns import WIDTH
from meshscope.reports.text import report

OPTIONS = {"model": "tiny", "seed": 1}


def _made(strategy: str, **about: Any) -> Any:
    loss = {"loss": about.pop("loss")} if "loss" in about else {}
    return run(steps([10] * 4, **loss), **({"strategy": strategy, "device_kind": "cpu", "options": OPTIONS} | about))


SINGLE = _made("torch-single", is_baseline=True)


def test_each_strategy_has_a_row_and_a_reason_where_there_is_one() -> None:
    odd = _made("fsdp", loss=6.0)
    text = report([_made("ddp"), odd, _made("zero1", faults=["slow input"]), SINGLE], encoding="utf-8")
    lines = text[text.index("The loss of each step") :].splitlines()
    assert [line.split() for line in lines[2:5]] == [
        ["ddp", "torch-single", "agree", "0.0e+00", "0", "4"],
        ["fsdp", "torch-single", "differ", "2.0e+00", "3", "4"],
        ["zero1", "torch-single", "excluded", "0.0e+00", "0", "4"],
    ]
    assert "– fsdp: differ: by more than 0.0001 of torch-single's loss." in lines
    assert "– zero1: excluded: ran with injected slow input." in lines
    assert max(map(len, lines)) <= WIDTH


def test_without_a_single_device_the_text_is_silent_and_the_json_says_why() -> None:
    assert "The loss of each step" not in report([_made("ddp")], encoding="utf-8")
    (found,) = analysis([_made("ddp")])["losses"]
    (strategy,) = found["strategies"]
    assert (strategy["state"], strategy["against"]) == ("cannot say", None)
    assert "largest_frac" not in strategy


def test_the_json_has_figures_tolerance_and_no_infinity() -> None:
    said = json.loads(analysis_json([_made("ddp", loss=5.0), _made("torch-single", is_baseline=True, loss=0.0)]))
    (found,) = said["losses"]
    assert (found["framework"], found["tolerance_frac"], found["first_steps"]) == ("torch", 1e-4, 60)
    assert found["strategies"] == [
        {
            "strategy": "ddp",
            "against": "torch-single",
            "state": "differ",
            "why": "by more than 0.0001 of torch-single's loss",
            "steps": 4,
            "at_step": 0,
        }
    ]
