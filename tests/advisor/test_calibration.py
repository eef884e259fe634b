"""Factors of a machine from one recording, and what they predict of others."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from meshscope.advisor.against import against, ran_on
from meshscope.advisor.calibration import Calibration, calibration, factors
from meshscope.advisor.candidate import Candidate
from meshscope.advisor.coverage import NotCovered
from meshscope.advisor.fitting import Observed, fitted
from meshscope.advisor.hardware import cluster
from meshscope.advisor.multipliers import NEUTRAL, Multipliers
from meshscope.advisor.numerics import AMP, BF16_MIXED
from meshscope.advisor.presets import preset
from meshscope.advisor.readings import Readings, bound_by, readings
from meshscope.advisor.recorded import Asked, recorded
from meshscope.advisor.timing import timing
from meshscope.reports.against_json import against_json
from meshscope.reports.against_text import against_text
from meshscope.run import Gallery, Run


@pytest.fixture(scope="module")
def runs() -> dict[str, Run]:
    folder = Path(__file__).resolve().parents[2] / "recordings" / "tiny-4-cpu-ranks"
    _, found = Gallery(folder).at(time.time_ns())
    return {run.experiment.strategy: run for run in found}


@pytest.fixture(scope="module")
def on_ddp(runs: dict[str, Run]) -> Calibration:
    return calibration(runs["ddp"], ran_on(recorded(runs["ddp"])))


def predict(at: Multipliers) -> dict[str, float]:
    compute, sent = 2.0 * at.matmul, 1.0 * at.collective_bandwidth
    return {"compute": compute, "sent": sent, "step": compute + sent}


def test_factors_that_made_a_measurement_are_found_again() -> None:
    seen = (Observed("compute", 3.0, 0.02), Observed("sent", 4.0, 0.02), Observed("step", 7.0, 0.02))
    found = fitted(predict, seen, {"matmul": 1.0, "collective_bandwidth": 3.0}).multipliers
    assert found.matmul == pytest.approx(1.5, rel=0.01)
    assert found.collective_bandwidth == pytest.approx(4.0, rel=0.01)


def test_what_nothing_was_measured_of_stays_as_it_is() -> None:
    found = fitted(predict, (Observed("compute", 3.0, 0.02),), {"matmul": 1.0, "collective_bandwidth": 3.0})
    assert found.multipliers.collective_bandwidth == pytest.approx(1.0)
    assert found.multipliers.launch == 1.0


def test_one_wild_measurement_does_not_carry_the_others_away() -> None:
    seen = tuple(Observed("compute", 3.0, 0.02) for _ in range(5))
    found = fitted(predict, (*seen, Observed("compute", 300.0, 0.02)), {"matmul": 1.0}).multipliers
    assert found.matmul == pytest.approx(1.5, rel=0.02)


def test_a_recording_is_met_by_its_own_calibration(on_ddp: Calibration) -> None:
    assert abs(on_ddp.residuals["step"]) < 0.02
    assert len(on_ddp.multipliers.factors) == 8
    assert on_ddp.multipliers.provenance.strategy == "ddp"


@pytest.mark.parametrize("strategy", ["fsdp", "torch-single"])
def test_other_strategies_of_the_same_machine_are_predicted_from_ddp_alone(
    strategy: str, runs: dict[str, Run], on_ddp: Calibration
) -> None:
    """Within 15 % of the recorded median; the recording that the factors come from says nothing of either."""
    found = against(runs[strategy], None, on_ddp.multipliers)
    assert abs(found.error_frac) < 0.15
    assert found.is_inside


def test_state_is_predicted_to_the_byte_and_collectives_by_their_number(
    runs: dict[str, Run], on_ddp: Calibration
) -> None:
    for strategy in ("ddp", "fsdp"):
        found = against(runs[strategy], None, on_ddp.multipliers)
        held = {side.name: side for side in found.memory}
        assert held["parameters"].error == held["gradients"].error == 0
        assert abs(held["optimizer"].error) <= 4 * 27  # AdamW counts its steps in a float for each tensor
        assert found.collectives
        assert all(side.times[0] == side.times[1] for side in found.collectives)


def test_the_report_says_where_it_is_most_wrong_and_on_what_it_rests(runs: dict[str, Run], on_ddp: Calibration) -> None:
    found = against(runs["fsdp"], None, on_ddp.multipliers)
    text = against_text(found)
    assert "Calibrated on ddp" in text
    assert f"Most wrong: {max(found.terms, key=lambda side: abs(side.error)).name}" in text
    told = against_json(found)
    assert told["step_s"]["error_frac"] == found.error_frac
    assert {term["name"] for term in told["terms"]} == {"compute", "exposed communication", "idle"}


def test_without_a_calibration_the_interval_is_as_wide_as_not_knowing_the_machine(runs: dict[str, Run]) -> None:
    found = against(runs["fsdp"])
    assert found.step is not None
    assert found.step.source == "assumed"
    assert found.step.high / found.step.low == pytest.approx(4.0)
    assert "Calibrated on nothing" in against_text(found)


def test_a_recording_with_faults_or_of_an_unknown_model_is_refused(runs: dict[str, Run]) -> None:
    import msgspec

    run = runs["ddp"]
    for change in ({"faults": ["slow-input"]}, {"options": {"model": "mine:net"}}, {"is_attached": True}):
        with pytest.raises(NotCovered):
            recorded(replace(run, experiment=msgspec.structs.replace(run.experiment, **change)))


def test_ranks_of_several_nodes_ran_on_as_many_nodes() -> None:
    asked = replace(ASKED, devices=16, device_name="NVIDIA H100 80GB HBM3", nodes=2)
    found = ran_on(asked)
    assert (found.devices, found.per_node, found.nodes) == (16, 8, 2)
    assert ran_on(replace(asked, device_name="cpu", device_kind="cpu", cores=64)).cores_per_rank == 8


def test_a_run_without_profiled_steps_cannot_be_calibrated_on(runs: dict[str, Run]) -> None:
    run = replace(runs["ddp"], windows=())
    with pytest.raises(NotCovered, match="profiled"):
        calibration(run, ran_on(recorded(run)))


def test_operators_and_kernels_are_told_apart_by_what_bounds_them() -> None:
    assert bound_by("aten::mm") == bound_by("sm90_xmma_gemm_bf16") == bound_by("nvjet_tst_128x256") == "matmul"
    assert bound_by("aten::_scaled_dot_product_flash_attention_for_cpu_backward") == "attention"
    assert bound_by("aten::gelu") == bound_by("vectorized_elementwise_kernel") == "memory_bound"


def test_compute_by_class_adds_up_to_the_compute_of_the_step(runs: dict[str, Run]) -> None:
    """Operators nest and each counts by itself, so that nothing is counted twice."""
    found = readings(runs["torch-single"])
    assert sum(found.by_class.values()) == pytest.approx(found.compute_s, rel=0.02)


H100S = cluster("8xH100")
ON_GPUS = Candidate("ddp", "torch", "torch", 1024, 8, AMP, replicate=8, is_bucket_view=True)
SHARDED = replace(ON_GPUS, strategy="fsdp", replicate=1, shard=8, zero_stage=3, numerics=BF16_MIXED)
ASKED = Asked(preset("1.3b").architecture, ON_GPUS, 8, "gpu", "H100", 0)


def as_if_measured(truth: Multipliers) -> Readings:
    """What a recording of DDP would say on GPUs that differ from the tables by ``truth``."""
    told = timing(ASKED.architecture, ON_GPUS, H100S, truth)
    step_s = told.step_s.value
    found = Readings(
        step_s, step_s, step_s, 50, step_s, step_s, told.compute_s, told.hidden_s, told.exposed_s, told.idle_s
    )
    classes = {("forward", name): seconds for name, seconds in _classes(truth).items()}
    return replace(found, by_class=classes, device_kind="gpu")


def _classes(truth: Multipliers) -> dict[str, float]:
    slow = {name: replace(truth, **{name: 2 * factor}) for name, factor in truth.factors.items()}
    base_s = timing(ASKED.architecture, ON_GPUS, H100S, truth).compute_s
    return {
        name: timing(ASKED.architecture, ON_GPUS, H100S, slow[name]).compute_s - base_s
        for name in ("matmul", "attention", "memory_bound")
    }


def test_gpus_that_differ_from_the_tables_are_met_by_ddp_and_fsdp_is_then_predicted() -> None:
    """Tables alone are 8 % off; the factors of one recording leave 2 %."""
    truth = Multipliers(matmul=1.15, memory_bound=0.92, collective_bandwidth=1.25)
    found = factors(ASKED, as_if_measured(truth), H100S).multipliers
    cold, warm, real = (timing(ASKED.architecture, SHARDED, H100S, one).step_s.value for one in (NEUTRAL, found, truth))
    assert abs(cold / real - 1) > 0.05
    assert abs(warm / real - 1) < 0.02
