"""Steps of CPU ranks, worked by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from meshscope.advisor.architecture import Architecture
from meshscope.advisor.candidate import Candidate
from meshscope.advisor.coverage import NotCovered
from meshscope.advisor.cpu_beside import beside, bucketed
from meshscope.advisor.cpu_costs import cpu_costs
from meshscope.advisor.cpu_ranks import cpu_timing
from meshscope.advisor.cpu_stages import blocks_of_stages, course, in_flight, turns
from meshscope.advisor.cpu_steps import cpu_step
from meshscope.advisor.hardware import cluster
from meshscope.advisor.multipliers import Multipliers
from meshscope.advisor.numerics import FP32

TINY = Architecture("tiny", 4, 256, 4, 4, 1024, 2048, is_gated=False, is_tied=True, positions=64)
TWO = replace(cluster("2xcpu"), cores_per_rank=1.0)
DDP = Candidate("ddp", "torch", "torch", 64, 4, FP32, replicate=2, bucket_bytes=3 * 2**20, is_bucket_view=True)
FSDP = replace(DDP, strategy="fsdp", replicate=1, shard=2, zero_stage=3)
PIPELINE = replace(DDP, strategy="pp-1f1b", replicate=1, pipeline=2, micro_batch=1, accumulate=8)


@pytest.mark.parametrize(("schedule", "end_s"), [("gpipe", (9.0, 7.0)), ("1f1b", (9.0, 7.0))])
def test_two_stages_of_two_micro_batches_end_when_counting_on_fingers_says(
    schedule: str, end_s: tuple[float, float]
) -> None:
    """Forward takes 1, backward 2, passing on nothing: the last stage works from 1 to 7, the first is done 2 later."""
    found = course(schedule, 2, (1.0, 1.0), (2.0, 2.0), 0.0)
    assert found.end_s == end_s
    assert found.busy_s == (6.0, 6.0)


def test_a_slow_stage_sets_the_pace_of_one_forward_one_backward() -> None:
    """The last stage takes 2 + 4 for each of 3 micro-batches from 1 on, and the first ends with one backward of 2."""
    assert course("1f1b", 3, (1.0, 2.0), (2.0, 4.0), 0.0).end_s == (21.0, 19.0)


def test_two_stretches_on_each_rank_halve_what_ranks_wait_for() -> None:
    """Of 4 micro-batches of forward 2 and backward 4 on each of 2 ranks, plain 1F1B waits 6 and interleaved half."""
    plain = course("1f1b", 4, (2.0, 2.0), (4.0, 4.0), 0.0)
    halved = course("interleaved", 4, (1.0,) * 4, (2.0,) * 4, 0.0, ranks=2)
    assert plain.busy_s == halved.busy_s == (24.0, 24.0)
    assert (max(plain.end_s), max(halved.end_s)) == (30.0, 27.0)


def test_gpipe_keeps_every_micro_batch_and_1f1b_one_for_each_stage_behind() -> None:
    assert [in_flight(turns("gpipe", rank, 2, 8)) for rank in (0, 1)] == [8, 8]
    assert [in_flight(turns("1f1b", rank, 2, 8)) for rank in (0, 1)] == [2, 1]
    gpipe, other = (cpu_timing(TINY, replace(PIPELINE, schedule=name), TWO).step_s.value for name in ("gpipe", "1f1b"))
    assert gpipe > other


def test_the_stage_with_the_output_layer_gets_as_few_blocks_as_make_the_slowest_quickest() -> None:
    assert blocks_of_stages(TINY, 2) == (2, 2)
    assert blocks_of_stages(replace(TINY, vocab=50_304), 2) == (4, 0)
    assert sum(blocks_of_stages(replace(TINY, layers=24), 5)) == 24


def test_compute_and_transfer_both_take_longer_beside_each_other() -> None:
    """After 1 s a transfer of 2 s begins; beside it the next second of compute takes 2, and 1 s of it is left."""
    found = beside([(1.0, 2.0), (1.0, 0.0)], contention=2.0)
    assert (found.compute_s, found.hidden_s, found.exposed_s) == (3.0, 2.0, 1.0)


def test_what_fills_no_bucket_goes_with_the_last_one() -> None:
    assert bucketed([2.0, 2.0, 1.0], 3.0) == [0.0, 4.0, 1.0]
    assert bucketed([2.0, 0.5], 3.0) == [0.0, 2.5]


def test_parts_of_a_step_add_up_and_none_is_negative() -> None:
    for asked in (DDP, FSDP, PIPELINE, replace(DDP, replicate=1, shard=2, zero_stage=1)):
        found = cpu_step(TINY, asked, cpu_costs(TWO, "fp32", Multipliers()))
        parts = (found.compute_s, found.launch_s, found.exposed_s, found.bubble_s)
        assert min(parts) >= 0
        assert found.step_s == pytest.approx(sum(parts))


def test_fsdp_gathers_each_block_twice_and_the_rest_once() -> None:
    found = cpu_step(TINY, FSDP, cpu_costs(TWO, "fp32", Multipliers()))
    kinds = [kind for kind, _, _ in found.transfers]
    assert kinds.count("all_gather") == 2 * TINY.layers + 1
    assert kinds.count("reduce_scatter") == TINY.layers + 1


@pytest.mark.parametrize("name", ["matmul", "attention", "memory_bound", "launch", "collective_bandwidth", "step_tail"])
def test_a_slower_machine_is_never_predicted_to_be_faster(name: str) -> None:
    for asked in (DDP, FSDP, PIPELINE):
        slow = cpu_timing(TINY, asked, TWO, replace(Multipliers(), **{name: 3.0}))
        assert slow.step_s.value > cpu_timing(TINY, asked, TWO).step_s.value


@pytest.mark.parametrize(
    "change",
    [{"framework": "jax"}, {"tensor": 2}, {"is_compiled": True}, {"checkpointing": "selective"}, {"zero_stage": 2}],
)
def test_what_is_not_modelled_is_refused_with_a_reason(change: dict[str, object]) -> None:
    with pytest.raises(NotCovered) as refused:
        cpu_step(TINY, replace(DDP, **change), cpu_costs(TWO, "fp32", Multipliers()))  # type: ignore[arg-type]
    assert "not modelled" in refused.value.reason
