"""Shapes of models that are known by name or by size alone, where whoever ran them printed no more."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

from meshscope.advisor.architecture import Architecture
from meshscope.advisor.coverage import NotCovered

_LATENT = {"query_rank": 1536, "kv_rank": 512, "rope_dim": 64, "head_dim": 128}
"""Multi-head latent attention, as DeepSeek-V2 and those after it have it (arXiv 2405.04434, section 3.1.2)."""

# Published by the authors of each: configs of openai/gpt-oss-120b, Qwen/Qwen3-*, deepseek-ai/DeepSeek-V2, -V3,
# mistralai/Mixtral-*, moonshotai/Kimi-K2. Widths are of one expert; ``dense`` layers come first.
_MIXTURES: tuple[tuple[str, dict[str, Any]], ...] = (
    (
        r"deepseek.?v3",
        {"experts": 256, "top_k": 8, "shared_experts": 1, "dense_layers": 3, "d_ff": 2048, "layers": 61, **_LATENT},
    ),
    (
        r"deepseek.?v2.?lite",
        {
            "experts": 64,
            "top_k": 6,
            "shared_experts": 2,
            "dense_layers": 1,
            "d_ff": 1408,
            "layers": 27,
            **_LATENT,
            "query_rank": 0,
        },
    ),
    (
        r"deepseek.?v2",
        {"experts": 160, "top_k": 6, "shared_experts": 2, "dense_layers": 1, "d_ff": 1536, "layers": 60, **_LATENT},
    ),
    (
        r"kimi.?k2",
        {"experts": 384, "top_k": 8, "shared_experts": 1, "dense_layers": 1, "d_ff": 2048, "layers": 61, **_LATENT},
    ),
    (r"qwen3.?(30b.?a3b|235b.?a22b)", {"experts": 128, "top_k": 8, "head_dim": 128}),
    (r"gpt.?oss.?120b", {"experts": 128, "top_k": 4, "head_dim": 64}),
    (r"gpt.?oss.?20b", {"experts": 32, "top_k": 4, "head_dim": 64}),
    (r"mixtral", {"experts": 8, "top_k": 2}),
)

_NARROW_ATTENTION = r"deepseek|kimi"
"""Multi-head latent attention: queries, keys and values pass narrow matrices (DeepSeek-V2, arXiv 2405.04434)."""

_FAMILY: tuple[tuple[float, int, int, int], ...] = (
    (0.11e9, 12, 768, 12),
    (0.30e9, 24, 1024, 16),
    (0.68e9, 24, 1536, 16),
    (1.21e9, 24, 2048, 16),
    (2.5e9, 32, 2560, 32),
    (6.4e9, 32, 4096, 32),
    (12.6e9, 40, 5120, 40),
    (29.6e9, 48, 7168, 56),
    (64.4e9, 80, 8192, 64),
    (173.9e9, 96, 12288, 96),
    (405e9, 126, 16384, 128),
    (1007e9, 128, 25600, 160),
)
"""Parameters without the tables, layers, width, heads: the GPT-3 family's (arXiv 2005.14165, table 2.1) and what came
after it (Megatron-LM, arXiv 2104.04473, table 1; Llama 3)."""


def with_experts(architecture: Architecture) -> Architecture:
    """With the experts that the model of this name has. Raises NotCovered where nobody said."""
    if architecture.is_mixture:
        return architecture
    name = architecture.name.lower()
    found = next((facts for pattern, facts in _MIXTURES if re.search(pattern, name)), None)
    if found is None:
        raise NotCovered(f"how many experts {architecture.name} has, and to how many a token goes, is not stated")
    facts = {name: value for name, value in found.items() if name != "layers"}
    if not found.get("dense_layers"):
        return replace(architecture, **facts)
    # A model cut to fewer layers for a benchmark keeps about the proportion, and one dense layer at least.
    dense_layers = max(1, round(found["dense_layers"] * min(1.0, architecture.layers / found["layers"])))
    return replace(architecture, **facts | {"dense_d_ff": architecture.d_ff, "dense_layers": dense_layers})


def is_latent(name: str) -> bool:
    """Whether the model of this name has multi-head latent attention."""
    return re.search(_NARROW_ATTENTION, name.lower()) is not None


def of_size(name: str, parameters: float, vocab: int = 50_304, *, is_gated: bool = False) -> Architecture:
    """The shape that models of about this size have. Nobody said that this one has it: its interval must be wide."""
    if not 1e7 <= parameters <= 2e13:
        raise NotCovered(f"no transformer of {parameters:.3g} parameters is known to have a usual shape")
    size, layers, width, heads = min(_FAMILY, key=lambda each: abs(math.log(each[0] / parameters)))
    layers = max(1, round(layers * (parameters - vocab * width) / size)) if parameters > vocab * width else layers
    d_ff = 4 * width if not is_gated else round(8 * width / 3 / 256) * 256
    return Architecture(
        name, layers, width, heads, heads, d_ff, vocab, is_gated=is_gated, is_tied=True, stated_parameters=parameters
    )
