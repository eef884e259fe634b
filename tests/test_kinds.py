"""Names → kinds: what is communication is told by what a kernel is, and every answer can name its rule."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from meshscope import config, kinds
from meshscope.kinds import INSTRUCTIONS, KERNELS, OPERATORS, XLA_KERNELS, Kind, classify, collective, rules_digest

FAMILIES = {
    "NCCL or RCCL kernel": [
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "all_reduce"),
        ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevComm*, unsigned long, ncclWork*)", "reduce_scatter"),
        ("ncclDevKernel_AllGather_RING_LL(ncclDevComm*, unsigned long, ncclWork*)", "all_gather"),
        ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)", "send_recv"),
        ("ncclKernel_Broadcast_RING_LL_Sum_int8_t(ncclWorkElem)", "broadcast"),
        ("ncclAllReduceRingLLKernel_sum_f32(ncclColl)", "all_reduce"),
        ("ncclSymkDevKernel_AllReduce_RSxLDMC_AGxSTMC_sum_bf16(ncclSymkDevWorkArgs4K)", "all_reduce"),
        ("ncclSymkDevKernel_ReduceScatter_LL_sum_f32(ncclSymkDevWorkArgs4K)", "reduce_scatter"),
        ("ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)", "unnamed"),
        ("nccldevkernel_generic", "unnamed"),
        ("NCCLDEVKERNEL_ALLGATHER_RING_LL", "all_gather"),
        ("void rcclGenericKernel<1, false>(ncclDevKernelArgsStorage<4096ul>)", "unnamed"),
    ],
    "oneCCL kernel": [("oneccl_allreduce_pcie", "all_reduce"), ("ccl_kernel_reduce_scatter", "reduce_scatter")],
    "HCCL kernel": [
        ("hcom_allReduce__503_0_1", "all_reduce"),
        ("hcom_allGather_", "all_gather"),
        ("hcom_reduceScatter_", "reduce_scatter"),
        ("hcom_broadcast__428_0_1", "broadcast"),
        ("hcclAllReduce", "all_reduce"),
    ],
    "MSCCL or MSCCL++ kernel": [
        ("mscclKernel_Sum_half_Simple_false(ncclDevComm*, mscclAlgo*, mscclWork*)", "unnamed"),
        ("void mscclpp::allreduceAllPairs<__half>(...)", "all_reduce"),
    ],
    "NVSHMEM or rocSHMEM kernel": [
        ("void nvshmemi_transfer_rma_nbi<...>", "unnamed"),
        ("nvshmem_alltoall_on_stream_kernel", "all_to_all"),
        ("rocshmem_put_kernel", "unnamed"),
    ],
    "DeepEP kernel": [
        ("void deep_ep::intranode::dispatch<8, 768, 8192>(int4*, float*, ...)", "all_to_all"),
        ("void deep_ep::internode_ll::combine<false, 7168, 9>(void*, ...)", "all_to_all"),
        ("deepep_dispatch", "all_to_all"),
        ("ep::internode::notify_dispatch", "all_to_all"),
    ],
    "expert-parallel dispatch or combine kernel": [
        ("tensorrt_llm::kernels::moe_comm::moeA2ADispatchKernel", "all_to_all"),
        ("void mori::moe::EpDispatchIntraNodeKernel<__hip_bfloat16>(...)", "all_to_all"),
        ("EpCombineInterNodeKernel_bf16", "all_to_all"),
        ("void hybrid_ep::dispatch_kernel<true, 8>(...)", "all_to_all"),
        ("void hybrid_ep::combine_kernel<true, 8>(...)", "all_to_all"),
    ],
    "mori shmem kernel": [("mori::shmem::ShmemBarrierAllKernel(...)", "barrier")],
    "aiter collective kernel": [
        ("void aiter::reduce_scatter_cross_device_store<__hip_bfloat16, 8>(aiter::RankData*, ...)", "reduce_scatter"),
        ("void aiter::allgather_vec<__half, 8>(...)", "all_gather"),
        ("void aiter::allgather_lastdim<__half, 8>(...)", "all_gather"),
    ],
    "aiter all-reduce, second kernel": [
        ("void aiter::local_device_load_rmsnorm<__hip_bfloat16>(...)", "all_reduce"),
        ("void aiter::local_device_load_rmsnorm_naive<__hip_bfloat16, 1024>(...)", "all_reduce"),
    ],
    "symmetric-memory or custom all-reduce kernel": [
        ("void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(...)", "all_reduce"),
        ("void (anonymous namespace)::multimem_one_shot_all_reduce_kernel<c10::BFloat16, 16>(...)", "all_reduce"),
        ("void (anonymous namespace)::multimem_all_gather_kernel<16>(char*, char*, ...)", "all_gather"),
        ("void (anonymous namespace)::two_shot_all_reduce_kernel<...>", "all_reduce"),
        ("void sglang::cross_device_reduce_2stage<half, 8>(sglang::RankData*, ...)", "all_reduce"),
        ("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*, ...)", "all_reduce"),
        ("void aiter::cross_device_reduce_2stage<__half, 8>(...)", "all_reduce"),
        ("void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<...>", "all_reduce"),
        ("void tensorrt_llm::kernels::ar_fusion::allreduce_fusion_kernel_twoshot_sync<...>", "all_reduce"),
        ("void tensorrt_llm::kernels::oneShotAllReduceKernel<__nv_bfloat16, 8, true>(...)", "all_reduce"),
        ("void tensorrt_llm::kernels::mnnvl::twoshot_allreduce_kernel<8, __half>(...)", "all_reduce"),
        ("void c10d::intra_node_comm::twoShotAllReduceKernel<8, true>(...)", "all_reduce"),
        ("quickreduce::allreduce_prototype_twoshot<AllReduceTwoshot<__half, CodecQ4<__half, 8>, true>, __half>",
         "all_reduce"),
        ("kuserbuffers_pushsend(int*, int*, int4*, int4*, int)", "send"),
        ("userbuffers_fp16_sum_inplace_gpu_rw_ag", "unnamed"),
        ("void stream_executor::gpu::AllReduceKernelImpl<float>(std::array<...>)", "all_reduce"),
    ],
}  # fmt: skip
"""Kernel names as the libraries have them, by the rule that is to find them, with the collective they tell."""


@pytest.mark.parametrize(
    ("rule", "name", "canonical"), [(rule, *one) for rule, names in FAMILIES.items() for one in names]
)
def test_communication_kernels_are_collectives_whatever_their_library(rule: str, name: str, canonical: str) -> None:
    for table in (KERNELS, XLA_KERNELS):
        found = classify([name, name.upper(), name.lower()][: 1 if "AllReduceKernel" in name else 3], table)
        assert set(found.kind.tolist()) == {Kind.COLLECTIVE}
    found = classify([name], KERNELS)
    assert (found.why(0), found.collective(0)) == (rule, canonical)


def test_a_hint_is_in_every_name_that_its_pattern_finds() -> None:
    known = [name for names in FAMILIES.values() for name, _ in names] + LOOKALIKES
    pieces = [
        "all_reduce",
        "reducescatter",
        "alltoallv",
        "all_to_all",
        "all_toall",
        "gather",
        "kernel",
        "lamport",
        "style",
        "one_shot",
        "twoshot",
        "ep",
        "deep",
        "dispatch",
        "combine",
        "moe",
        "a2a",
        "cross_device_",
        "multimem_",
        "fused_",
        "_comm",
        "pplx::",
        "userbuffers",
        "c10d::symmetric_memory::",
        "multigpubarrierkernel",
        "quick",
        "ccl::",
        "hcom_",
        "internode::",
        "nvshmem",
        "_impl",
    ]
    known += [a + b + c for a in pieces for b in pieces for c in (*pieces, "")]
    for rule in (*KERNELS, *INSTRUCTIONS):
        assert [name for name in known if rule.searches(name) and not rule.is_hinted(name.lower())] == []


LOOKALIKES = [
    "ampere_sgemm_128x64_nn",
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::func_wrapper_t<float>>>(...)",
    "void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*, int, long, long, long)",
    "void at::native::_scatter_gather_elementwise_kernel<128, 8, ...>(int, ...)",
    "void at::native::index_elementwise_kernel<128, 4, ...>",
    "void cub::DeviceReduceKernel<...>",
    "small_gather_kernel",
    "void aiter::rmsnorm2d_fwd_kernel<__hip_bfloat16>(...)",
    "void aiter::gather_kv_b_proj<__half>(...)",
    "void aiter::local_load_rmsnorm<__half>(...)",
    "void hybrid_ep::permute_kernel<8>(...)",
    "void flash::combine_kernel<64>(...)",
    "void dispatch_kernel<float>(...)",
    "memori::shmem::copy",
    "shmem_tiled_gemm_kernel",
    "overall_reduce_kernel",
    "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x128_64x3_tn_align8>(...)",
    "triton_poi_fused_add_0",
    "triton_poi_fused_all_gather_into_tensor_wait_tensor_3",
    "triton_red_fused__to_copy_all_reduce_kernel_7",
    "triton_per_fused_reduce_scatter_kernel_1",
    "triton_fused_all_to_all_kernel",
    "fused_reduce_scatter_like_softmax",
    "sleepdeepepoch_kernel",
    "sweep::internode_fill",
    "incclude_mask",
    "tfrcclose_kernel",
    "thccl",
    "all_reduced_precision_gemm",
    "nvjet_tst_64x64_64x16_2x1_2cta_v_bz_bias_TNT",
    "Memcpy DtoD (Device -> Device)",
    "broadcast_kernel",
    "void send_mask_to_device_kernel<float>",
    "",
]


@pytest.mark.parametrize("name", LOOKALIKES)
def test_what_only_looks_like_communication_computes(name: str) -> None:
    assert classify([name], KERNELS).kind.tolist() == [Kind.COMPUTE]


def test_the_first_rule_that_matches_is_the_one_cited() -> None:
    found = classify(["ncclDevKernel_Generic", "gemm", "triton_red_fused_all_reduce_kernel"], KERNELS)
    cited = [found.why(row) for row in range(3)]
    assert cited == ["NCCL or RCCL kernel", "everything else", "kernel that Inductor fused"]


def test_copies_are_known_by_name_only_where_the_trace_has_no_category_for_them() -> None:
    assert classify(["__amd_rocclr_copyBuffer.kd"], XLA_KERNELS).kind.tolist() == [Kind.COPY]
    assert classify(["__amd_rocclr_copyBuffer.kd"], KERNELS).kind.tolist() == [Kind.COMPUTE]


@pytest.mark.parametrize(
    ("name", "canonical"),
    [
        ("all-reduce", "all_reduce"),
        ("all-reduce.5", "all_reduce"),
        ("all-gather.12.clone.1", "all_gather"),
        ("all-gather-start.3.remat2", "all_gather"),
        ("%all-gather-start.3 = (f32[8]) all-gather-start(%x)", "all_gather"),
        ("reduce-scatter", "reduce_scatter"),
        ("send-done", "send"),
        ("collective-permute.1", "permute"),
        ("ragged-all-to-all", "all_to_all"),
        ("psum.7", "all_reduce"),
        ("pmax", "all_reduce"),
        ("ppermute.3", "permute"),
        ("all_gather.7", "all_gather"),
        ("reduce_scatter.10", "reduce_scatter"),
        ("psum_scatter.2", "reduce_scatter"),
        ("%psum.335 = f32[]{:T(128)} all-reduce(%get-tuple-element.16181), channel_id=1", "all_reduce"),
        ("%f.1 = (bf16[8,128]{1,0:T(8,128)(2,1)}, u32[]) all-gather-start(bf16[1,128] %p)", "all_gather"),
        ("async-collective-start.4", "unnamed"),
    ],
)
def test_hlo_collectives_are_told_by_what_they_do_whatever_they_are_called(name: str, canonical: str) -> None:
    found = classify([name], INSTRUCTIONS)
    assert found.kind.tolist() == [Kind.COLLECTIVE]
    assert found.collective(0) == canonical


@pytest.mark.parametrize(
    "name",
    ["subtract_all-reduce_fusion", "dot.1", "copy-start", "sender", "%fusion = f32[] x", "psumptuous",
     "all_gather_fusion", "%all_gather.8 = f32[8]{0} transpose(%all-gather.7)",
     "%psum.2 = f32[] add(%all-reduce.1, %x)",
     "%fusion.3 = f32[8] fusion(%all-reduce.1), calls=%fused"],
)  # fmt: skip
def test_other_instructions_compute(name: str) -> None:
    assert classify([name], INSTRUCTIONS).kind.tolist() == [Kind.COMPUTE]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("aten::addmm", Kind.COMPUTE),
        ("aten::gather", Kind.COMPUTE),
        ("aten::scatter_add_", Kind.COMPUTE),
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


@pytest.mark.parametrize(
    "piece", ["epdispatch", "lamport_style", "all_reduce", "triton_", "a.clone", " all-gather", "(f32, "]
)
@pytest.mark.parametrize("rules", [KERNELS, XLA_KERNELS, INSTRUCTIONS, OPERATORS], ids=["kernels", "xla", "hlo", "cpu"])
def test_a_name_made_to_be_slow_is_told_in_time(piece: str, rules: tuple[kinds.Rule, ...]) -> None:
    began_s = time.process_time()
    classify([piece * 20_000, "%x = " + piece * 20_000], rules)
    assert time.process_time() - began_s < 10


@pytest.fixture
def settings() -> Iterator[None]:
    before = config.current()
    yield
    config.use(before)


def use(*rules: config.KernelRule) -> None:
    config.use(config.Settings(rules))


@pytest.mark.usefixtures("settings")
def test_a_users_rule_comes_before_all_others_and_takes_effect_at_once() -> None:
    names = ["my_ring_step", "ncclDevKernel_AllReduce_Sum", "gemm"]
    assert classify(names, KERNELS).kind.tolist() == [Kind.COMPUTE, Kind.COLLECTIVE, Kind.COMPUTE]
    use(
        config.KernelRule("MY_RING", "collective", "all_to_all", "our ring"),
        config.KernelRule("^nccl", "other", "", "not ours"),
    )
    found = classify(names, KERNELS)
    assert found.kind.tolist() == [Kind.COLLECTIVE, Kind.OTHER, Kind.COMPUTE]
    assert [found.why(row) for row in range(3)] == ["our ring", "not ours", "everything else"]
    assert found.collective(0) == "all_to_all"
    assert classify(["my_ring"], XLA_KERNELS).why(0) == classify(["my_ring"], INSTRUCTIONS).why(0) == "our ring"
    use()
    assert classify(names, KERNELS).kind.tolist() == [Kind.COMPUTE, Kind.COLLECTIVE, Kind.COMPUTE]


@pytest.mark.usefixtures("settings")
def test_a_users_rule_cannot_pass_for_one_of_the_built_in_ones() -> None:
    use(config.KernelRule("ring", "copy", "", "everything else"))
    assert classify(["ring"], KERNELS).why(0) == "everything else (yours)"


@pytest.mark.usefixtures("settings")
def test_a_rule_for_kernels_is_none_for_operators_of_the_host() -> None:
    use(config.KernelRule("aten", "collective", "", "mine"))
    assert classify(["aten::add"], OPERATORS).kind.tolist() == [Kind.COMPUTE]


@pytest.mark.usefixtures("settings")
def test_the_digest_tells_one_state_of_the_rules_from_another() -> None:
    plain = rules_digest()
    rule = config.KernelRule("ring", "collective", "", "mine")
    digests = {plain}
    for other in (rule, replace(rule, kind="compute"), replace(rule, pattern="ring2")):
        use(other)
        digests.add(rules_digest())
    assert len(digests) == 4
    use()
    assert rules_digest() == plain


def test_the_collectives_that_a_file_may_name_are_those_there_are() -> None:
    assert set(config.COLLECTIVES) == {canonical for canonical, _ in kinds._COLLECTIVES}
    assert {kind.upper() for kind in config.KINDS} <= {kind.name for kind in Kind}
