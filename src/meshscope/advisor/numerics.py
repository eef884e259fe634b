"""Named mixtures of precisions: how many bytes each part of the state takes, and what matrices are multiplied in.

Bytes per parameter: the ZeRO paper (arXiv 1910.02054, section 3), Megatron-LM's README (its table of bytes per
parameter of the distributed optimizer), torchtitan docs/bf16_optimizer_states.md.
"""

from __future__ import annotations

import difflib

from meshscope.advisor.candidate import Numerics
from meshscope.errors import InputError

BF16_MIXED = Numerics("bf16-mixed", "bf16", 4, 4, 8, cast_bytes=2, reduce_bytes=4)
"""Parameters, gradients and moments in fp32; a layer is cast as it is used (FSDP's mixed precision, Flax's dtype)."""
AMP = Numerics("amp", "bf16", 4, 4, 8, cast_bytes=2, reduce_bytes=4)
"""The same state under torch.autocast, whose cast of every weight lives until the end of the forward pass."""
BF16_PURE = Numerics("bf16-pure", "bf16", 2, 2, 4, reduce_bytes=2)
"""Everything in bf16, the moments too."""
MEGATRON = Numerics("megatron", "bf16", 2, 4, 8, master_bytes=4, reduce_bytes=4)
"""bf16 parameters, fp32 gradients, and an fp32 copy in the optimizer."""
FP8 = Numerics("fp8", "fp8", 4, 4, 8, cast_bytes=2, reduce_bytes=4)
"""As bf16-mixed, with the products of linear layers in fp8."""
FP32 = Numerics("fp32", "fp32", 4, 4, 8, reduce_bytes=4)
TF32 = Numerics("tf32", "tf32", 4, 4, 8, reduce_bytes=4)
FP16 = Numerics("fp16-mixed", "fp16", 4, 4, 8, cast_bytes=2, reduce_bytes=4)

NUMERICS = {each.name: each for each in (BF16_MIXED, AMP, BF16_PURE, MEGATRON, FP8, FP32, TF32, FP16)}
_OTHER_NAMES = {
    "bf16": "bf16-mixed", "bfloat16": "bf16-mixed", "mixed": "bf16-mixed", "bf16-true": "bf16-pure", "autocast": "amp",
    "fp16": "fp16-mixed", "float32": "fp32",
}  # fmt: skip


def numerics(name: str) -> Numerics:
    """The mixture called so. InputError: there is none of this name; the hint lists them."""
    plain = name.strip().lower()
    found = NUMERICS.get(_OTHER_NAMES.get(plain, plain))
    if found is None:
        near = difflib.get_close_matches(plain, NUMERICS, 1)
        hint = f"Did you mean {near[0]}? " if near else ""
        raise InputError(f"There is no precision {name!r}.", hint=f"{hint}There are {', '.join(NUMERICS)}.")
    return found


def state_bytes(numerics: Numerics) -> float:
    """Bytes per parameter that stay from step to step, of all parts together: 16 of most mixtures."""
    parts = (numerics.parameter_bytes, numerics.gradient_bytes, numerics.optimizer_bytes, numerics.master_bytes)
    return sum(parts)
