"""What a published run multiplies in, and how many bytes its state has, by the words people have for it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from meshscope.advisor.candidate import Numerics
from meshscope.advisor.cells import text
from meshscope.advisor.stacks import Stack


def precision(row: Mapping[str, str], ran: Stack, zero_stage: int, assumed: list[str]) -> Numerics:
    """bf16 where nothing is said."""
    said = text(row, "precision").lower()
    if not said:
        assumed.append("precision")
    return _numerics(said or "bf16", ran, zero_stage)


def _compute(said: str) -> str:
    for pattern, compute in (
        (r"nvfp4|fp4", "fp4"),
        (r"fp8|f8|int8", "fp8"),
        (r"bf16|bfloat", "bf16"),
        (r"fp16|half|amp|mixed|16", "fp16"),
        (r"tf32", "tf32"),
    ):
        if re.search(pattern, said):
            return compute
    return "fp32"


def _numerics(said: str, ran: Stack, zero_stage: int) -> Numerics:
    compute = _compute(said)
    if compute in ("tf32", "fp32"):
        return Numerics(said, compute, 4, 4, 8, reduce_bytes=4)
    if "pure" in said and ran.family == "fsdp1":
        # FSDP's shards stay fp32; what is pure is what travels and multiplies (Composer, mixed_precision: PURE).
        return Numerics(said, compute, 4, 4, 8, cast_bytes=2, reduce_bytes=2)
    if "pure" in said:
        return Numerics(said, compute, 2, 2, 4, reduce_bytes=2)
    if ran.is_megatron:
        # bf16 parameters beside an fp32 master; gradients add up in fp32 (Megatron-LM, README), fp16's in fp16.
        wide = 2.0 if compute == "fp16" or ran.has_narrow_gradients else 4.0
        return Numerics(said, compute, 2, wide, 8, master_bytes=4, reduce_bytes=wide)
    reduce_bytes = 2.0 if zero_stage == 3 and ran.reduces_in_half else 4.0
    return Numerics(said, compute, 4, 4, 8, cast_bytes=2, reduce_bytes=reduce_bytes)
