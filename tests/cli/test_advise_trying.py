"""Which candidates ``advise --try`` runs; what becomes of them is seen in live runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from meshscope.advisor.answer import Answer, answer
from meshscope.advisor.hardware import cluster
from meshscope.advisor.request import Request, posed
from meshscope.capture import frameworks
from meshscope.cli.advise_trying import trials, tried
from meshscope.errors import InputError


def asked(model: str, devices: str) -> Answer:
    request = Request(model=model, devices=devices, batch=8, precision="fp32")
    return answer(posed(request), with_sensitivities=False)


@pytest.fixture(scope="module")
def here() -> Answer:
    return asked("tiny", "2xcpu")


def test_the_fastest_come_first_each_once_and_settings_count(here: Answer) -> None:
    found = list(trials(here, 4))
    assert len(found) == 4
    assert [one.ranked.step_s for one in found] == sorted(one.ranked.step_s for one in found)
    assert len({one.bundled.flags for one in found}) == 4
    assert any("--bucket-mb" in one.bundled.flags for one in found)


def test_what_is_run_is_what_was_asked_about(here: Answer) -> None:
    for one in trials(here, 3):
        options, candidate = one.bundled.options, one.ranked.candidate
        assert one.bundled.devices == 2
        assert options.batch == 8
        assert options.accumulate == candidate.accumulate
        assert options.seq == candidate.seq_len


def test_devices_that_are_not_here_are_not_tried(here: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frameworks, "probe", lambda names: {name: frameworks.Framework() for name in names})
    question = replace(here.posed.question, cluster=cluster("8xH100"))
    elsewhere = replace(here, posed=replace(here.posed, question=question))
    with pytest.raises(InputError, match="has not 8 × H100"):
        tried(elsewhere, 1, is_json=True)


def test_a_model_that_no_workload_builds_is_not_tried() -> None:
    with pytest.raises(InputError, match="No candidate"):
        tried(asked("layers=2,d_model=128,heads=2,vocab=512", "2xcpu"), 1, is_json=False)
