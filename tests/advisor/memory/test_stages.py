"""Pipeline stages: layers, tables, and micro-batches in flight."""

from __future__ import annotations

from dataclasses import replace

import pytest

from meshscope.advisor.architecture import Architecture
from meshscope.advisor.candidate import Candidate, Numerics
from meshscope.advisor.coverage import NotCovered
from meshscope.advisor.memory.stages import in_flight, stages

MODEL = Architecture("", 126, 512, 8, 8, 1024, 1000)
PLAIN = Candidate("", "torch", "megatron", 128, 1, Numerics("", "bf16", 2, 4, 8, 4), accumulate=32, pipeline=8)


def test_one_forward_one_backward_keeps_as_many_micro_batches_as_stages_follow() -> None:
    assert [in_flight(PLAIN, index) for index in range(8)] == [8, 7, 6, 5, 4, 3, 2, 1]
    assert in_flight(replace(PLAIN, accumulate=3), 0) == 3


def test_gpipe_keeps_all_of_them() -> None:
    assert in_flight(replace(PLAIN, schedule="gpipe"), 7) == 32


@pytest.mark.parametrize(("pipeline", "virtual"), [(8, 3), (35, 3), (4, 2)])
def test_interleaved_stages_keep_1_plus_p_minus_1_over_p_v_of_all_layers(pipeline: int, virtual: int) -> None:
    """arXiv 2205.05198, section 4.2.3. A stage's own layers are a p-th, so p times that many micro-batches."""
    laid = replace(PLAIN, pipeline=pipeline, virtual=virtual, schedule="interleaved", accumulate=10_000)
    assert in_flight(laid, 0) / pipeline == pytest.approx(1 + (pipeline - 1) / (pipeline * virtual))


def test_layers_that_do_not_divide_go_to_the_middle() -> None:
    counts = [stage.layers for stage in stages(MODEL, PLAIN)]
    assert counts == [15, 16, 16, 16, 16, 16, 16, 15]


def test_dense_layers_come_first() -> None:
    mixture = replace(MODEL, layers=8, experts=4, top_k=1, dense_layers=3)
    held = [(stage.plain_layers, stage.mixture_layers) for stage in stages(mixture, replace(PLAIN, pipeline=4))]
    assert held == [(2, 0), (1, 1), (0, 2), (0, 2)]


def test_more_stages_than_layers_are_refused() -> None:
    with pytest.raises(NotCovered, match="128 pipeline stages are more than the 126 layers"):
        stages(MODEL, replace(PLAIN, pipeline=128))
