"""``all`` plans what can run here, and says of the rest why it cannot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from meshscope.capture import everything, frameworks, launch
from meshscope.capture.frameworks import Framework
from meshscope.capture.launch import Request
from meshscope.errors import InputError
from meshscope.experiment import Plan

CPU = Framework(version="1")
EXPERTS = ("ep", "jax-ep")


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """Sets what frameworks find on this machine: CPUs at first. Nothing is really probed."""

    def set_found(torch: Framework = CPU, jax: Framework = CPU, missing: tuple[str, ...] = ()) -> None:
        found = {"torch": torch, "jax": jax}
        monkeypatch.setattr(frameworks, "probe", lambda names: {name: found[name] for name in names})
        monkeypatch.setattr(frameworks, "missing", lambda name: (name,) if name in missing else ())

    set_found()
    monkeypatch.chdir(tmp_path)
    return set_found


def _plan(*strategies: str, **asked: object) -> Plan:
    return launch.plan(Request(strategies=strategies or ("all",), **asked))


def _ranks(plan: Plan) -> dict[str, int]:
    return {run.strategy: run.ranks for run in plan.runs}


def test_what_needs_more_ranks_gets_them_and_it_is_said() -> None:
    plan = _plan(ranks=2)
    ranks = _ranks(plan)
    assert {name for name, count in ranks.items() if count == 4} == {"fsdp-tp", "hsdp", "pjit-2d"}
    assert ranks["ddp"] == ranks["tp"] == ranks["pp-1f1b"] == 2
    assert ranks["torch-single"] == ranks["jax-single"] == 1
    assert "fsdp-tp, hsdp, pjit-2d: 4 ranks, which they need; the others have 2." in plan.notes


def test_every_strategy_is_planned_or_left_out_with_its_reason() -> None:
    known = set(launch.scripts.workloads(Request(())))
    plan = _plan()
    assert set(plan.left_out) == {"dp", *EXPERTS}
    assert plan.left_out["dp"] == "runs on GPUs only, and this run is on the CPU"
    assert plan.left_out["ep"] == "cannot train the transformer: it spreads experts over ranks"
    assert set(_ranks(plan)) == known - set(plan.left_out)
    assert "dp is left out: runs on GPUs only, and this run is on the CPU." in plan.notes
    assert _ranks(plan)["pp-interleaved"] == 2
    assert "pp-interleaved: 2 ranks, the most they can have with this model; the others have 4." in plan.notes


def test_a_mixture_of_experts_is_for_those_that_spread_experts() -> None:
    assert {"ep", "jax-ep", "ddp"} <= set(_ranks(_plan(model="moe", ranks=2)))


def test_two_gpus_run_dp_and_leave_out_what_needs_four(here: Callable[..., None]) -> None:
    gpus = Framework(version="1", platform="gpu", names=("H100",) * 2)
    here(torch=gpus, jax=gpus)
    plan = _plan()
    assert set(plan.left_out) == {"fsdp-tp", "hsdp", "pjit-2d", *EXPERTS}
    assert plan.left_out["hsdp"] == "4 ranks need 4 devices, and there are 2"
    assert "dp" in _ranks(plan)


def test_what_a_size_does_not_divide_among_is_left_out() -> None:
    """Six ranks do not share a batch of eight, but one of 48; of four heads they cannot have any."""
    plan = _plan(ranks=6, batch=48)
    assert {"tp", "pjit-tp", "cp"} <= plan.left_out.keys()
    assert plan.left_out["tp"].startswith("--heads 4 does not divide among 6 ranks")
    assert _ranks(plan)["ddp"] == 6


def test_only_a_number_of_ranks_that_nobody_asked_for_is_lowered() -> None:
    assert "of a pipeline need 7 blocks" in _plan(ranks=4).left_out["pp-interleaved"]


def test_by_its_name_it_is_refused_all_the_same() -> None:
    for named in (("hsdp",), ("all", "hsdp")):
        with pytest.raises(InputError, match="hsdp cannot run on 2 ranks"):
            _plan(*named, ranks=2)


def test_a_framework_that_is_not_installed_is_left_out(here: Callable[..., None]) -> None:
    here(missing=("jax",))
    plan = _plan()
    assert plan.left_out["pmap"] == "jax is not installed"
    assert {run.framework for run in plan.runs} == {"torch"}


def test_what_nothing_can_run_is_refused_as_one() -> None:
    with pytest.raises(InputError, match=r"^No strategy can run so: there is no model 'huge'\.$"):
        _plan(model="huge")
    with pytest.raises(InputError, match=r"batch of 8 .* \(so for \d+ of \d+ strategies\)"):
        _plan(ranks=6)


def test_a_reason_does_not_begin_with_the_strategys_name() -> None:
    plan = _plan(options=("--inject", "straggler"))
    assert plan.left_out["torch-single"].startswith("straggler makes no sense in torch-single")
    assert not any(why.startswith(name) for name, why in plan.left_out.items())


def test_without_all_nothing_is_a_bystander() -> None:
    workload = launch.scripts.workloads(Request(()))["hsdp"]
    assert not everything.is_bystander(Request(("ddp",)), workload)
    assert everything.is_bystander(Request(("all", "ddp")), workload)


def test_a_run_of_a_sweep_keeps_the_ranks_that_it_is_named_by() -> None:
    plan = _plan(ranks_each=(2, 4))
    assert plan.left_out["hsdp ranks 2"] == "hsdp cannot run on 2 ranks"
    assert _ranks(plan)["hsdp ranks 4"] == 4
    assert not any("which they need" in note for note in plan.notes)
