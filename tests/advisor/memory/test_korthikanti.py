"""Figure 1 of arXiv 2205.05198: GiB per device of the first stage's activations and of its layers' state."""

from __future__ import annotations

import pytest

from meshscope.advisor.architecture import Architecture
from meshscope.advisor.candidate import Candidate, Numerics
from meshscope.advisor.memory.activations import activations
from meshscope.advisor.memory.place import Place, places
from meshscope.advisor.memory.state import state

GIB = 2**30
HALF = Numerics("fp16, fp32 gradients", "fp16", 2, 4, 8, master_bytes=4)
MODELS = {  # layers, width, heads, micro-batch, pipeline, virtual stages: tables 3 and 4 of the paper
    "22B": (48, 6144, 64, 4, 1, 1),
    "175B": (96, 12288, 96, 1, 8, 3),
    "530B": (105, 20480, 128, 1, 35, 3),
    "1T": (128, 25600, 160, 1, 64, 1),
}


def first_stage(name: str, *, is_selective: bool) -> Place:
    layers, width, heads, micro_batch, pipeline, virtual = MODELS[name]
    shape = Architecture(name, layers, width, heads, heads, 4 * width, 51200, is_gated=False, has_biases=True)
    candidate = Candidate(
        "", "torch", "megatron-2021", 2048, micro_batch, HALF, accumulate=512, tensor=8, pipeline=pipeline,
        virtual=virtual, is_sequence_parallel=is_selective, is_flash=False,
        checkpointing="selective" if is_selective else "none",
    )  # fmt: skip
    return places(shape, candidate)[0]


@pytest.mark.parametrize(
    ("name", "kept_gib", "selective_gib"),
    [("22B", 59.25, 9.5625), ("175B", 66.84375, 12.3515625), ("530B", 114.0234, 23.0762), ("1T", 131.25, 26.5625)],
)
def test_activations_of_the_first_stage_are_those_of_the_figure(
    name: str, kept_gib: float, selective_gib: float
) -> None:
    for is_selective, printed in ((False, kept_gib), (True, selective_gib)):
        place = first_stage(name, is_selective=is_selective)
        layers = [part for part in activations(place, "backward") if part.name == "layers"]
        assert layers[0].size_bytes / GIB == pytest.approx(printed, rel=0.01 if is_selective else 1e-4)


@pytest.mark.parametrize(
    ("name", "printed_gib"), [("22B", 45.5625), ("175B", 45.5625), ("530B", 31.6406), ("1T", 32.959)]
)
def test_parameters_and_optimizer_are_those_of_the_figure(name: str, printed_gib: float) -> None:
    """18 bytes a parameter of the layers' matrices; tables, biases and norms are left out there."""
    place = first_stage(name, is_selective=True)
    per_parameter = sum(part.size_bytes for part in state(place, "end")) / place.share.all
    width, layers = place.architecture.d_model, place.stage.layers
    assert per_parameter * 12 * width**2 * layers / 8 / GIB == pytest.approx(printed_gib, rel=1e-4)
