"""Losses and parameters that are no finite numbers, and stay so."""

from __future__ import annotations

import math

from asked import codes, only, said
from drawn import run, steps
from msgspec.structs import replace

from meshscope.analysis.findings import findings
from meshscope.analysis.looked_for import looked_for
from meshscope.analysis.steps import steps as counted_steps
from meshscope.recording.entries import Checked, Sampled, StepDone
from meshscope.reports.analysis_json import analysis


def losses(*values: float | None, ranks: int = 2) -> list[StepDone]:
    return [replace(one, loss=values[one.step]) for one in steps([100.0] * len(values), ranks=ranks)]


def checks(*sums: tuple[int, float], ranks: int = 2) -> list[Checked]:
    return [
        Checked(t_ns=step + 1, rank=rank, step=step, parameters=total, rng=f"{rank} {step}")
        for step, total in sums
        for rank in range(ranks)
    ]


def test_parameters_and_loss_that_are_lost_are_told_with_their_steps() -> None:
    lost = run(
        [*losses(5.0, 4.0, math.inf, math.nan, math.nan), *checks((0, 1.0), (2, math.nan), (4, -math.inf))],
        strategy="ddp",
    )
    found = only("not-finite", lost)
    assert found.title == "parameters are not finite since step 2"
    assert found.is_grave
    assert found.ranks == (0, 1)
    assert said(found) == (
        "the loss of ranks 0–1 is inf since step 2\n"
        "the sum of parameters of ranks 0–1 is NaN at the check of step 2, still finite at step 0"
    )
    assert "clip_grad_norm_" in found.fix
    assert analysis([lost])["recordings"][0]["not_finite"] == {
        "loss_since_step": 2, "parameters_since_step": 2, "ranks": [0, 1]
    }  # fmt: skip
    (drift,) = (one for one in looked_for(lost) if one.code == "ranks-drift")
    assert (drift.state, "parameters are not finite since step 2" in drift.why) == ("cannot say", True)
    assert codes(lost) == ["not-finite"]


def test_the_loss_may_be_lost_before_a_check_sees_it() -> None:
    early = run([*losses(5.0, math.nan, math.nan, math.nan), *checks((0, 1.0), (3, math.inf))], framework="jax")
    found = only("not-finite", early)
    assert found.title == "the loss is not finite since step 1, parameters since step 3"
    assert "optax.clip_by_global_norm" in found.fix
    assert only("not-finite", run(losses(5.0, math.nan))).title == "the loss is not finite since step 1"


def test_one_lost_rank_is_named() -> None:
    one = [replace(step, loss=math.nan) if step.rank == 1 and step.step else step for step in losses(5.0, 4.0, 3.0)]
    assert only("not-finite", run(one)).rank == 1


def test_what_is_finite_again_was_an_overflow_that_was_skipped() -> None:
    healed = run([*losses(5.0, math.inf, 4.0), *checks((0, math.inf), (2, 1.0))])
    assert codes(healed) == []
    assert "not_finite" not in analysis([healed])["recordings"][0]


def test_a_stage_that_tells_no_loss_has_not_lost_it() -> None:
    assert codes(run(losses(None, None, None))) == []


def test_a_replay_before_that_step_knows_nothing_of_it() -> None:
    lost = losses(5.0, 4.0, math.nan)
    first_ns = min(one.t_ns for one in lost if one.step == 2)
    assert codes(run(lost, now_ns=first_ns - 1)) == []
    assert codes(run(lost, now_ns=first_ns)) == ["not-finite"]


def test_infinite_losses_and_readings_are_drawn_nowhere() -> None:
    known = run(
        [*losses(5.0, math.inf), Sampled(t_ns=1, device="gpu 0", values={"power_w": math.inf, "clock_hz": 1.0})]
    )
    assert [value for value in known.steps.loss.tolist() if not math.isnan(value)] == [5.0, 5.0]
    assert known.samples.fields == ("clock_hz",)
    assert findings(known)
    assert counted_steps(known).loss_lost_step == 1
    assert counted_steps(run(losses(5.0, 4.0))).loss_lost_step == -1
