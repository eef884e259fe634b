"""What a layer keeps: the published formulas, and sums of saved tensors by hand."""

from __future__ import annotations

import pytest

from meshscope.advisor.architecture import Architecture
from meshscope.advisor.candidate import Candidate, Numerics
from meshscope.advisor.memory.activations import layer_bytes
from meshscope.advisor.memory.place import places

HALF = Numerics("", "bf16", 2, 4, 8, master_bytes=4)
PURE = Numerics("", "bf16", 2, 2, 4)
AUTOCAST = Numerics("", "bf16", 4, 4, 8, cast_bytes=2)
S, H, A = 2048, 6144, 64
GPT = Architecture("gpt-22b", 48, H, A, A, 4 * H, 51200, is_gated=False, has_biases=True)
LLAMA = Architecture("llama-3-70b", 80, 8192, 64, 8, 28672, 128256)


def per_token(architecture: Architecture, stack: str, numerics: Numerics = HALF, **degrees: object) -> float:
    candidate = Candidate("", "torch", stack, S, 1, numerics, **degrees)  # type: ignore[arg-type]
    return layer_bytes(places(architecture, candidate)[0], is_mixture=False)


@pytest.mark.parametrize(
    ("tensor", "is_sequence_parallel", "checkpointing", "coefficient"),
    [
        (1, True, "none", 34 + 5 * A * S / H),
        (8, False, "none", 10 + 24 / 8 + 5 * A * S / (H * 8)),
        (8, True, "none", (34 + 5 * A * S / H) / 8),
        (8, True, "selective", 34 / 8),
    ],
)
def test_a_gpt_block_keeps_what_korthikanti_and_others_count(
    tensor: int, is_sequence_parallel: bool, checkpointing: str, coefficient: float
) -> None:
    """arXiv 2205.05198, equations 1 to 4 and table 2. Log-sums per row, 4 B a head, stand for what selective drops."""
    kept = per_token(GPT, "megatron-2021", tensor=tensor, is_sequence_parallel=is_sequence_parallel,
                     checkpointing=checkpointing, is_flash=False)  # fmt: skip
    log_sums = 4 * A / tensor if checkpointing == "selective" else 0
    assert kept - log_sums == pytest.approx(coefficient * H)


def test_a_gated_block_with_fused_kernels_keeps_12_widths_6_of_the_mlp_and_4_of_the_keys() -> None:
    h, f = LLAMA.d_model, LLAMA.d_ff
    assert per_token(LLAMA, "megatron-te") - 4 * 64 == 12 * h + 4 * h * 8 / 64 + 6 * f
    assert per_token(LLAMA, "megatron-te", tensor=4) == per_token(LLAMA, "megatron-te") / 4


def test_eager_torch_keeps_what_saved_tensors_hooks_count() -> None:
    """Two RMSNorms of 4 + 2 + 2 bytes, queries, keys and values of full width, attention's output, 8 of the MLP's."""
    h, f = LLAMA.d_model, LLAMA.d_ff
    assert per_token(LLAMA, "torch", PURE) - 4 * 64 == 16 * h + 6 * h + 2 * h + 8 * f


def test_under_autocast_the_stream_stays_fp32_and_each_product_has_its_own_cast() -> None:
    """A norm: fp32 input and normalized values (8); its output is cast thrice, before the MLP twice."""
    h, f = LLAMA.d_model, LLAMA.d_ff
    assert per_token(LLAMA, "torch", AUTOCAST) - 4 * 64 == (8 + 3 * 2) * h + (8 + 2 * 2) * h + 8 * h + 8 * f


def test_fp8_products_of_transformer_engine_keep_one_byte_of_their_input() -> None:
    wide = per_token(LLAMA, "megatron-te")
    narrow = per_token(LLAMA, "megatron-te", Numerics("", "fp8", 2, 4, 8, master_bytes=4))
    h, f = LLAMA.d_model, LLAMA.d_ff
    assert wide - narrow == 2 * h - h + f  # two norms' outputs and the MLP's; attention's output is kept in both


def test_latent_attention_keeps_wide_heads_though_its_parameters_are_narrow() -> None:
    latent = Architecture("", 1, 5120, 128, 128, 1536, 1000, head_dim=128, query_rank=1536, kv_rank=512, rope_dim=64)
    matrices = 5120 * 1536 + 1536 * 128 * 192 + 5120 * 576 + 2 * 512 * 128 * 128 + 128 * 128 * 5120
    assert latent.attention_parameters == matrices + 1536 + 512
    narrow, wide = 2 * (2 * 1536 + 2 * 512 + 64), 2 * (2 * 128 * 192 + 2 * 128 * 128)
    assert per_token(latent, "megatron-te") == 2 * 4 * 5120 + narrow + wide + 4 * 128 + 6 * 1536
