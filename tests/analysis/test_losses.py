"""Strategies that learn what one device learns agree with it; those that are not meant to are not judged."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from drawn import run, steps

from meshscope.analysis.losses import AGREE, DIFFER, EARLY_STEPS, EXCLUDED, UNSURE, Agreement, losses
from meshscope.recording.entries import Entry
from meshscope.run import Run

OPTIONS = {"model": "tiny", "seed": 1, "batch": 8, "lr": 0.001, "precision": "fp32", "dropout": 0.0, "compress": "none"}
FALLING = (8.0, 4.0, 2.0, 1.0)


def made(strategy: str, told: Sequence[float | None], *, ranks: int = 2, **about: Any) -> Run:
    """A run on CPU ranks, each of which tells these losses."""
    entries: list[Entry] = [
        msgspec.structs.replace(done, loss=told[done.step]) for done in steps([10] * len(told), ranks=ranks)
    ]
    known = {"device_kind": "cpu", "options": OPTIONS, "planned_steps": len(told), "ranks": ranks}
    return run(entries, strategy=strategy, **(known | about))


def single(told: Sequence[float | None] = FALLING, **about: Any) -> Run:
    return made("torch-single", told, ranks=1, is_baseline=True, **about)


def only(*runs: Run) -> Agreement:
    (found,) = losses(runs)
    return found


def test_the_largest_difference_is_a_share_of_the_single_devices_loss() -> None:
    """8.0004 is 5e-5 of 8 away, 2.00004 is 2e-5 of 2."""
    found = only(made("ddp", (8.0004, 4.0, 2.00004, 1.0)), single())
    assert (found.state, found.at_step, found.steps, found.against) == (AGREE, 0, 4, "torch-single")
    assert found.largest_frac == pytest.approx(5e-5)
    assert found.why == ""


def test_more_than_rounding_differs_and_says_in_which_step_most() -> None:
    """1.0002 is 2e-4 of 1 away."""
    found = only(made("ddp", (8.0, 4.0, 2.0, 1.0002)), single())
    assert (found.state, found.at_step) == (DIFFER, 3)
    assert found.largest_frac == pytest.approx(2e-4)


def test_the_loss_is_the_mean_of_ranks() -> None:
    apart = (-0.5, 0.5)
    told = steps([10] * 4)
    entries = [msgspec.structs.replace(done, loss=FALLING[done.step] + apart[done.rank]) for done in told]
    spread = run(entries, strategy="ddp", device_kind="cpu", options=OPTIONS, planned_steps=4)
    assert only(spread, single()).largest_frac == 0


def test_a_strategy_is_held_against_the_device_of_its_own_framework() -> None:
    other = made("jax-single", (1.0, 1.0, 1.0, 1.0), ranks=1, framework="jax", is_baseline=True)
    ddp, pmap = losses((made("ddp", FALLING), made("pmap", (1.0,) * 4, framework="jax"), other, single()))
    assert [(one.against, one.state) for one in (ddp, pmap)] == [("torch-single", AGREE), ("jax-single", AGREE)]


def test_without_a_single_device_nothing_is_said() -> None:
    found = only(made("ddp", FALLING))
    assert (found.state, found.steps, found.against) == (UNSURE, 0, "")
    assert "no single-device run" in found.why
    assert math.isnan(found.largest_frac)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"seed": 2}, "not the same seed: 2, and 1 on one device"),
        ({"batch": 16}, "not the same batch: 16, and 8 on one device"),
        ({"experts": 4}, "not the same experts: 4, and not told on one device"),
        ({"precision": "bf16"}, "bf16 rounds too coarsely to tell"),
        ({"compress": "fp16"}, "its gradients are sent as fp16"),
    ],
)
def test_what_is_not_meant_to_agree_is_not_judged(changed: dict[str, Any], why: str) -> None:
    found = only(made("ddp", (9.0, 9.0, 9.0, 9.0), options=OPTIONS | changed), single())
    assert (found.state, found.why) == (EXCLUDED, why)
    assert found.largest_frac == pytest.approx(8.0), "the figures are told all the same"


def test_dropout_faults_and_gpus_are_not_judged() -> None:
    dropped = {"options": OPTIONS | {"dropout": 0.1}}
    assert only(made("ddp", FALLING, **dropped), single(**dropped)).why == "ranks draw a dropout of their own"
    assert only(made("ddp", FALLING, faults=["ragged batch"]), single()).why == "ran with injected ragged batch"
    own = {"model": "mine:make"}
    assert only(made("ddp", FALLING, **own), single(**own)).why.startswith("a model of your own")
    on_gpus = only(made("ddp", FALLING, device_kind="gpu"), single(device_kind="gpu"))
    assert (on_gpus.state, "tf32" in on_gpus.why) == (EXCLUDED, True)


@pytest.mark.parametrize("how", [{"accumulate": 8}, {"tensor": 2, "spec": "tp"}, {"schedule": "gpipe", "stages": 2}])
def test_how_the_work_is_shared_changes_nothing_about_the_losses(how: dict[str, Any]) -> None:
    assert only(made("ddp", FALLING, options=OPTIONS | how), single()).state == AGREE


def test_of_several_single_devices_the_one_with_the_same_seed_counts() -> None:
    other = single((1.0,) * 4, options=OPTIONS | {"seed": 2})
    assert only(made("ddp", FALLING), other, single()).state == AGREE


def test_a_loss_that_is_not_known_leaves_it_open_but_a_difference_stands() -> None:
    assert only(made("ddp", (8.0, 4.0, None, 1.0)), single()).why == "no loss is known of step 2"
    assert only(made("ddp", (8.0, 4.0, None, 1.0)), single()).state == UNSURE
    assert only(made("ddp", (8.0, 4.1, None, 1.0)), single()).state == DIFFER


def test_one_update_tells_too_little() -> None:
    assert only(made("ddp", FALLING[:2]), single()).why == "losses after one update tell too little: 3 steps are needed"
    assert only(made("ddp", FALLING[:2]), single()).state == UNSURE
    assert only(made("ddp", FALLING[:3]), single()).state == AGREE


def test_a_run_that_ended_early_agrees_as_far_as_it_got() -> None:
    found = only(made("ddp", FALLING[:3], planned_steps=4), single())
    assert (found.state, found.why) == (AGREE, "as far as it got: 3 of 4 steps")


def test_late_steps_are_not_judged() -> None:
    told = [1.0] * EARLY_STEPS
    found = only(made("ddp", [*told, 3.0]), single([*told, 1.0]))
    assert (found.state, found.steps, found.largest_frac) == (AGREE, EARLY_STEPS, 0.0)
    assert only(made("ddp", [*told[:-1], 3.0]), single(told)).state == DIFFER


def test_of_what_others_wrote_nothing_is_said() -> None:
    assert losses((made("mine", FALLING, model="", options={}), single())) == ()
