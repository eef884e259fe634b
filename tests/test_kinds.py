"""Names → kinds: what is communication is told by what a kernel is, and every answer can name its rule."""

from __future__ import annotations

import pytest

from meshscope import kinds
from meshscope.kinds import INSTRUCTIONS, KERNELS, OPERATORS, XLA_KERNELS, Kind, classify, collective

COLLECTIVE_KERNELS = [
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)",
    "nccldevkernel_generic",
    "rcclGenericKernel",
    "void multimem_all_reduce_kernel<c10::BFloat16, 16>(...)",
    "void sglang::cross_device_reduce_2stage<half, 8>(...)",
    "void two_shot_all_reduce_kernel<...>",
    "nvshmemi_transfer",
    "deep_ep::internode::dispatch",
    "mscclpp_allreduce",
    "hcclAllReduce",
]


@pytest.mark.parametrize("name", COLLECTIVE_KERNELS)
def test_communication_kernels_are_collectives_whatever_their_library(name: str) -> None:
    assert classify([name], KERNELS).kind.tolist() == [Kind.COLLECTIVE]


@pytest.mark.parametrize(
    "name",
    ["ampere_sgemm_128x64_nn", "void at::native::reduce_kernel<512, 1, ...>", "triton_poi_fused_add_0", "Memcpy"],
)
def test_other_kernels_compute(name: str) -> None:
    assert classify([name], KERNELS).kind.tolist() == [Kind.COMPUTE]


def test_the_first_rule_that_matches_is_the_one_cited() -> None:
    found = classify(["ncclDevKernel_Generic", "gemm", "nvshmem_put"], KERNELS)
    assert [found.why(row) for row in range(3)] == ["NCCL or RCCL kernel", "everything else", "NVSHMEM or rocSHMEM kernel"]


def test_copies_are_known_by_name_only_where_the_trace_has_no_category_for_them() -> None:
    assert classify(["__amd_rocclr_copyBuffer.kd"], XLA_KERNELS).kind.tolist() == [Kind.COPY]
    assert classify(["__amd_rocclr_copyBuffer.kd"], KERNELS).kind.tolist() == [Kind.COMPUTE]


@pytest.mark.parametrize(
    "name",
    ["all-reduce", "all-reduce.5", "%all-gather-start.3 = (f32[8]) all-gather-start(%x)", "reduce-scatter", "send-done",
     "collective-permute.1", "ragged-all-to-all"],
)  # fmt: skip
def test_hlo_collectives_are_collectives(name: str) -> None:
    assert classify([name], INSTRUCTIONS).kind.tolist() == [Kind.COLLECTIVE]


@pytest.mark.parametrize("name", ["subtract_all-reduce_fusion", "dot.1", "copy-start", "sender", "%fusion = f32[] x"])
def test_other_instructions_compute(name: str) -> None:
    assert classify([name], INSTRUCTIONS).kind.tolist() == [Kind.COMPUTE]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("aten::addmm", Kind.COMPUTE),
        ("fsdp::all_gather_copy_in", Kind.COMPUTE),
        ("mylib::fused_rope", Kind.COMPUTE),
        ("gloo:all_reduce", Kind.COLLECTIVE),
        ("c10d::allreduce_", Kind.LAUNCH),
        ("_c10d_functional::all_reduce", Kind.LAUNCH),
        ("_c10d_functional::wait_tensor", Kind.WAIT),
        ("c10d::barrier", Kind.LAUNCH),
        ("c10d::monitored_barrier_", Kind.WAIT),
        ("autograd::engine::evaluate_function: RegisterPostBackwardFunctionBackward", Kind.HOST),
        ("torch::autograd::AccumulateGrad", Kind.HOST),
        ("AddmmBackward0", Kind.HOST),
        ("Optimizer.step#AdamW.step", Kind.HOST),
    ],
)
def test_operators_of_a_cpu_rank(name: str, kind: Kind) -> None:
    assert classify([name], OPERATORS).kind.tolist() == [kind]


@pytest.mark.parametrize(
    ("name", "canonical"),
    [
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", "all_reduce"),
        ("ncclKernel_SendRecv_RING_SIMPLE", "send_recv"),
        ("allreduce", "all_reduce"),
        ("_allgather_base", "all_gather"),
        ("_reduce_scatter_base", "reduce_scatter"),
        ("c10d::_reduce_scatter_base_", "reduce_scatter"),
        ("gloo:all_gather", "all_gather"),
        ("alltoall_base", "all_to_all"),
        ("broadcast", "broadcast"),
        ("collective-permute.3", "permute"),
        ("%all-reduce = f32[8] all-reduce(%all-gather.1)", "all_reduce"),
        ("ncclDevKernel_Generic", kinds.UNNAMED),
    ],
)
def test_collectives_have_one_name_each(name: str, canonical: str) -> None:
    assert collective(name) == canonical


def test_every_table_ends_with_a_rule_for_the_rest() -> None:
    for rules in (KERNELS, XLA_KERNELS, INSTRUCTIONS, OPERATORS):
        assert rules[-1].finds("")
