"""The predicted step drawn piece by piece: it adds up to what the forecast of time says, and opens as it was drawn."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from planned import MODEL, NUMERICS

from meshscope.advisor.candidate import Candidate
from meshscope.advisor.coverage import NotCovered
from meshscope.advisor.forecast import Forecast
from meshscope.advisor.hardware import cluster
from meshscope.advisor.simulated import Simulated, constants_version, write
from meshscope.advisor.simulated_steps import drawn_step
from meshscope.advisor.timing import timing
from meshscope.analysis.breakdown import breakdown
from meshscope.cli.opening import open_paths
from meshscope.discovery import bundled

NOW_UNIX_NS = 1_796_000_000_000_000_000
H100 = cluster("8xH100")

LAID = {
    "ddp": {"replicate": 8},
    "fsdp": {"shard": 8, "zero_stage": 3},
    "hsdp": {"replicate": 2, "shard": 4, "zero_stage": 3},
    "tp": {"replicate": 4, "tensor": 2},
    "pp": {"replicate": 4, "pipeline": 2, "accumulate": 4},
    "interleaved": {"replicate": 2, "pipeline": 4, "virtual": 2, "accumulate": 8},
}


def candidate(name: str) -> Candidate:
    known: dict[str, object] = {"seq_len": 2048, "micro_batch": 4, "numerics": NUMERICS, **LAID[name]}
    return Candidate(name, "torch", "torchtitan", **known)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", LAID)
def test_a_drawn_step_opens_as_it_was_predicted_to_the_nanosecond(tmp_path: Path, name: str) -> None:
    laid = candidate(name)
    time = drawn_step(MODEL, laid, H100)
    write(tmp_path / "plan", [Simulated(MODEL, laid, H100, Forecast(None, time))], now_unix_ns=NOW_UNIX_NS)
    (run,) = open_paths((tmp_path / "plan",)).runs
    longest = max((rank.per_step for rank in breakdown(run) if rank.per_step), key=lambda step: step.compute_ns)
    assert len(run.windows) == 8
    assert longest.span_ns == round(time.step_s.value * 1e9)
    assert longest.compute_ns == round(time.compute_s * 1e9)
    assert longest.exposed_ns == round(time.exposed_s * 1e9)
    assert longest.hidden_ns == round(time.hidden_s * 1e9)
    assert longest.idle_ns == round((time.bubble_s + time.idle_s) * 1e9)


@pytest.mark.parametrize("name", LAID)
def test_the_parts_of_a_drawn_step_are_those_of_the_forecast(name: str) -> None:
    """Within a hundredth of the step: a forecast counts handing on between stages to the bubble, a drawing shows it."""
    laid = candidate(name)
    told, time = timing(MODEL, laid, H100), drawn_step(MODEL, laid, H100)
    assert time.step_s == told.step_s
    hundredth = told.step_s.value / 100
    assert time.compute_s == pytest.approx(told.compute_s, abs=hundredth)
    assert time.exposed_s == pytest.approx(told.exposed_s, abs=hundredth)
    assert time.compute_s + time.exposed_s + time.bubble_s + time.idle_s == pytest.approx(told.step_s.value)
    assert max(span.end_ns for span in time.spans) <= round(told.step_s.value * 1e9)


def test_stages_of_a_pipeline_are_drawn_apart() -> None:
    time = drawn_step(MODEL, candidate("pp"), H100)
    names = {number: {span.name for span in time.spans if span.rank_class == number} for number in (0, 1)}
    assert "embedding" in names[0] - names[1]
    assert {"loss", "head"} <= names[1] - names[0]
    assert all(span.group == "pipeline" for span in time.spans if span.name == "send")


def test_no_two_pieces_of_a_lane_overlap() -> None:
    for name in LAID:
        spans = drawn_step(MODEL, candidate(name), H100).spans
        lanes = {(span.rank_class, span.lane) for span in spans}
        for key in lanes:
            mine = sorted((s.start_ns, s.end_ns) for s in spans if (s.rank_class, s.lane) == key)
            assert all(end_ns <= start_ns for (_, end_ns), (start_ns, _) in pairwise(mine)), (
                name,
                key,
            )


def test_a_step_of_too_many_pieces_is_refused() -> None:
    known = candidate("fsdp")
    many = Candidate(**{**vars(known), "micro_batch": 1, "accumulate": 500})
    with pytest.raises(NotCovered, match="too many to draw"):
        drawn_step(MODEL, many, H100)


def test_the_bundled_simulated_recording_says_what_it_is() -> None:
    opened = open_paths((bundled("recordings") / "simulated-8-h100-1.3b",))
    assert not opened.refused
    assert [run.name for run in opened.runs] == ["ddp simulated", "fsdp simulated"]
    assert all(run.is_simulated and len(run.windows) == 8 for run in opened.runs)
    assert all(run.experiment.simulated and run.experiment.simulated.constants for run in opened.runs)


def test_the_version_of_the_constants_is_a_digest() -> None:
    assert len(constants_version()) == 8
    assert constants_version() == constants_version()
