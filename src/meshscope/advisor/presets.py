"""Models by name: the bundled ones as the workloads train them, and shapes that papers have printed.

``7b`` means what most people mean by it (the Llama of that size); a size that nobody has published is computed as the
nearest that somebody has, which is said.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

from meshscope.advisor.architecture import Architecture
from meshscope.errors import InputError

_BUNDLED = "the bundled workload"
_GPT3 = "Brown et al. 2020, arXiv 2005.14165, table 2.1 (vocabulary padded to 50 304)"
_SC21 = "Narayanan et al. 2021, arXiv 2104.04473, table 1"
_LLAMA1 = "Touvron et al. 2023, arXiv 2302.13971, table 2"
_LLAMA2 = "Touvron et al. 2023, arXiv 2307.09288"
_LLAMA3 = "Llama team 2024, arXiv 2407.21783, table 3"
_LLAMA32 = "the model card of Llama 3.2"
_TINY_LLAMA = "Zhang et al. 2024, arXiv 2401.02385"
_MIXTRAL = "Jiang et al. 2024, arXiv 2401.04088"
_QWEN3 = "Yang et al. 2025, arXiv 2505.09388"
_DEEPSEEK = "DeepSeek-AI 2024, arXiv 2412.19437"
_BERT = "Devlin et al. 2018, arXiv 1810.04805"


@dataclass(frozen=True)
class Preset:
    """A model, the length of sequences it is usually trained on, who printed its shape, and what to say of it."""

    architecture: Architecture
    seq_len: int
    source: str
    note: str = ""

    @property
    def name(self) -> str:
        return self.architecture.name


def _gpt(name: str, layers: int, d_model: int, heads: int, seq_len: int, source: str, vocab: int = 50304) -> Preset:
    """Two matrices in an MLP four times as wide, a learned table of positions, the output layer tied to the tokens."""
    bundled = source == _BUNDLED
    shape = Architecture(
        name, layers, d_model, heads, heads, 4 * d_model, vocab,
        is_gated=False, is_tied=True, positions=seq_len, has_biases=not bundled,
    )  # fmt: skip
    return Preset(shape, seq_len, source)


def _llama(
    name: str, sizes: tuple[int, int, int, int, int], *, vocab: int, seq_len: int, source: str, is_tied: bool = False
) -> Preset:
    """``sizes``: layers, width, heads, heads of keys and values, and the width of the (gated) MLP."""
    return Preset(Architecture(name, *sizes, vocab, is_tied=is_tied), seq_len, source)


def _mixture(base: Preset, *, experts: int, top_k: int, head_dim: int = 0, **more: int | str) -> Preset:
    note = str(more.pop("note", ""))
    shape = replace(base.architecture, experts=experts, top_k=top_k, head_dim=head_dim, **more)  # type: ignore[arg-type]
    return replace(base, architecture=shape, note=note)


_ALL = (
    _gpt("tiny", 4, 256, 4, 64, _BUNDLED, vocab=2048),
    _gpt("125m", 12, 768, 12, 1024, _BUNDLED),
    _gpt("350m", 24, 1024, 16, 1024, _BUNDLED),
    _gpt("1.3b", 24, 2048, 16, 1024, _BUNDLED),
    _gpt("gpt-760m", 24, 1536, 16, 2048, _GPT3),
    _gpt("gpt-2.7b", 32, 2560, 32, 2048, _GPT3),
    _gpt("gpt-6.7b", 32, 4096, 32, 2048, _GPT3),
    _gpt("gpt-13b", 40, 5120, 40, 2048, _GPT3),
    _gpt("gpt-175b", 96, 12288, 96, 2048, _GPT3),
    _gpt("gpt-18b", 40, 6144, 48, 2048, _SC21, vocab=51200),
    _gpt("gpt-39b", 48, 8192, 64, 2048, _SC21, vocab=51200),
    _gpt("gpt-76b", 60, 10240, 80, 2048, _SC21, vocab=51200),
    _gpt("gpt-145b", 80, 12288, 96, 2048, _SC21, vocab=51200),
    _gpt("gpt-310b", 96, 16384, 128, 2048, _SC21, vocab=51200),
    _gpt("gpt-530b", 105, 20480, 128, 2048, _SC21, vocab=51200),
    _gpt("gpt-1t", 128, 25600, 160, 2048, _SC21, vocab=51200),
    _llama("tiny-llama-1.1b", (22, 2048, 32, 4, 5632), vocab=32000, seq_len=2048, source=_TINY_LLAMA),
    _llama("llama-3.2-1b", (16, 2048, 32, 8, 8192), vocab=128256, seq_len=8192, source=_LLAMA32, is_tied=True),
    _llama("llama-3.2-3b", (28, 3072, 24, 8, 8192), vocab=128256, seq_len=8192, source=_LLAMA32, is_tied=True),
    _llama("llama-2-7b", (32, 4096, 32, 32, 11008), vocab=32000, seq_len=4096, source=_LLAMA2),
    _llama("llama-3-8b", (32, 4096, 32, 8, 14336), vocab=128256, seq_len=8192, source=_LLAMA3),
    _llama("llama-2-13b", (40, 5120, 40, 40, 13824), vocab=32000, seq_len=4096, source=_LLAMA2),
    _llama("llama-30b", (60, 6656, 52, 52, 17920), vocab=32000, seq_len=2048, source=_LLAMA1),
    _llama("llama-2-34b", (48, 8192, 64, 8, 22016), vocab=32000, seq_len=4096, source=_LLAMA2),
    _llama("llama-65b", (80, 8192, 64, 64, 22016), vocab=32000, seq_len=2048, source=_LLAMA1),
    _llama("llama-2-70b", (80, 8192, 64, 8, 28672), vocab=32000, seq_len=4096, source=_LLAMA2),
    _llama("llama-3-70b", (80, 8192, 64, 8, 28672), vocab=128256, seq_len=8192, source=_LLAMA3),
    _llama("llama-3-405b", (126, 16384, 128, 8, 53248), vocab=128256, seq_len=8192, source=_LLAMA3),
    _mixture(
        _llama("mixtral-8x7b", (32, 4096, 32, 8, 14336), vocab=32000, seq_len=4096, source=_MIXTRAL),
        experts=8, top_k=2,
    ),
    _mixture(
        _llama("qwen3-30b-a3b", (48, 2048, 32, 4, 768), vocab=151936, seq_len=4096, source=_QWEN3),
        experts=128, top_k=8, head_dim=128,
    ),
    _mixture(
        _llama("qwen3-235b-a22b", (94, 4096, 64, 4, 1536), vocab=151936, seq_len=4096, source=_QWEN3),
        experts=128, top_k=8, head_dim=128,
    ),
    _mixture(
        _llama("deepseek-v3", (61, 7168, 128, 8, 2048), vocab=129280, seq_len=4096, source=_DEEPSEEK),
        experts=256, top_k=8, head_dim=96, shared_experts=1, dense_layers=3, dense_d_ff=18432,
        note="Its latent attention is computed as grouped attention with as many parameters (187 M per layer).",
    ),
    Preset(
        Architecture("bert-large", 24, 1024, 16, 16, 4096, 30528, is_gated=False, is_tied=True, is_causal=False,
                     positions=512, has_biases=True),
        512, _BERT,
    ),
)  # fmt: skip

PRESETS = {each.name: each for each in _ALL}

_OTHER_NAMES = {
    "760m": "gpt-760m", "2.7b": "gpt-2.7b", "6.7b": "gpt-6.7b", "175b": "gpt-175b", "gpt3": "gpt-175b",
    "gpt3-175b": "gpt-175b", "530b": "gpt-530b", "1t": "gpt-1t", "1000b": "gpt-1t",
    "1.1b": "tiny-llama-1.1b", "tinyllama": "tiny-llama-1.1b", "tinyllama-1.1b": "tiny-llama-1.1b",
    "1b": "llama-3.2-1b", "3b": "llama-3.2-3b", "7b": "llama-2-7b", "llama-7b": "llama-2-7b", "8b": "llama-3-8b",
    "llama-8b": "llama-3-8b", "13b": "llama-2-13b", "llama-13b": "llama-2-13b", "30b": "llama-30b", "33b": "llama-30b",
    "34b": "llama-2-34b", "65b": "llama-65b", "70b": "llama-3-70b", "llama-70b": "llama-3-70b",
    "405b": "llama-3-405b", "llama-405b": "llama-3-405b", "8x7b": "mixtral-8x7b", "mixtral": "mixtral-8x7b",
    "llama-3.1-8b": "llama-3-8b", "llama-3.1-70b": "llama-3-70b", "llama-3.1-405b": "llama-3-405b",
    "671b": "deepseek-v3", "gpt-125m": "125m", "gpt-350m": "350m", "gpt-1.3b": "1.3b",
}  # fmt: skip

_SIZE = re.compile(r"(?:(gpt|llama)[-_ ]?)?(\d+(?:\.\d+)?)([mbt])")
_SCALE = {"m": 1e6, "b": 1e9, "t": 1e12}
_FARTHEST = 1.5
"""By which factor the nearest published shape may miss a size: beyond it the answer would be about another model."""

_FIELDS = {
    "layers": "layers", "d_model": "d_model", "width": "d_model", "hidden": "d_model", "heads": "heads",
    "kv_heads": "kv_heads", "d_ff": "d_ff", "ffn": "d_ff", "vocab": "vocab", "gated": "is_gated", "tied": "is_tied",
    "causal": "is_causal", "positions": "positions", "biases": "has_biases", "experts": "experts", "top_k": "top_k",
    "shared_experts": "shared_experts", "dense_layers": "dense_layers", "dense_d_ff": "dense_d_ff",
    "head_dim": "head_dim", "seq": "seq",
}  # fmt: skip
_YES_NO = {"yes": 1, "no": 0, "true": 1, "false": 0}
_MOST = 10**9
_HEAD = 128
_VOCAB = 32000
_SEQ = 4096


def preset(text: str) -> Preset:
    """The model that a word means: a name, a size (``13b``), or ``layers=32,d_model=4096,…``.

    InputError: the word names no model here, or a shape that cannot be. A model of the user's own, which only its
    framework can count, is no preset (see `is_own`).
    """
    plain = text.strip().lower()
    if "=" in plain:
        return _spelled(plain)
    known = PRESETS.get(plain) or PRESETS.get(_OTHER_NAMES.get(plain, "")) or _squeezed().get(_squeeze(plain))
    if known is not None:
        return known
    size = _SIZE.fullmatch(plain)
    if size is None:
        raise InputError(f"There is no model {text!r}.", hint=f"There are {', '.join(PRESETS)}; or say its shape: "
                         "layers=32,d_model=4096,heads=32,d_ff=11008,vocab=32000.")  # fmt: skip
    return _nearest(plain, float(size[2]) * _SCALE[size[3]], family=size[1] or "")


def is_own(text: str) -> bool:
    """Whether the word is ``package.module:factory``."""
    return re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", text.strip()) is not None


def _squeeze(name: str) -> str:
    return re.sub(r"[-_ ]", "", name)


def _squeezed() -> dict[str, Preset]:
    others = {_squeeze(name): PRESETS[to] for name, to in _OTHER_NAMES.items()}
    return {_squeeze(name): each for name, each in PRESETS.items()} | others


def _nearest(text: str, parameters: float, *, family: str) -> Preset:
    """Of the shapes that are no mixtures, the one whose number of parameters is nearest."""
    if parameters <= 0:
        raise InputError(f"A model of {text} has no parameters.", hint="Write it like 7b.")
    shapes = [each for each in _ALL if not each.architecture.is_mixture and each.architecture.is_causal]
    shapes = [each for each in shapes if family in each.name] or shapes
    found = min(shapes, key=lambda each: abs(math.log(each.architecture.parameters / parameters)))
    has = found.architecture.parameters
    if max(has / parameters, parameters / has) > _FARTHEST:
        hint = "Say its shape: layers=32,d_model=4096,heads=32,d_ff=11008,vocab=32000."
        raise InputError(f"No published shape here has nearly {text} parameters.", hint=hint)
    note = f"Nobody's shape of {text} is known here: computed as {found.name}, which has {has / 1e9:.3g} billion."
    return replace(found, note=note)


def _spelled(text: str) -> Preset:
    given = dict(_pair(part) for part in text.split(",") if part.strip())
    missing = [name for name in ("layers", "d_model") if name not in given]
    if missing:
        raise InputError(f"The shape lacks {' and '.join(missing)}.", hint="Write it like layers=32,d_model=4096.")
    seq_len = given.pop("seq", _SEQ)
    chosen = _filled(given)
    values = {name: bool(value) if name.startswith(("is_", "has_")) else value for name, value in chosen.items()}
    shape = Architecture(name="own shape", **values)  # type: ignore[arg-type]  # each is what its field takes
    _check(shape)
    taken = [f"{name} {chosen[name]:,}" for name in ("heads", "d_ff", "vocab") if name not in given]
    note = f"Not said, so taken as usual: {', '.join(taken)}." if taken else ""
    return Preset(shape, seq_len, "your own words", note)


def _pair(part: str) -> tuple[str, int]:
    name, _, value = (piece.strip() for piece in part.partition("="))
    if name.replace("-", "_") not in _FIELDS:
        raise InputError(f"A shape has no {name!r}.", hint=f"It has {', '.join(_FIELDS)}.")
    number = _YES_NO.get(value, int(value) if re.fullmatch(r"\d{1,12}", value) else -1)
    if not 0 <= number <= _MOST:
        raise InputError(f"{part.strip()!r} makes no sense.", hint="Give a whole number, or yes and no.")
    return _FIELDS[name.replace("-", "_")], number


def _filled(given: dict[str, int]) -> dict[str, int]:
    """With what was not said as it usually is: heads of 128, an MLP of 8/3 (or 4 ungated) times the width."""
    d_model = given["d_model"]
    heads = given.get("heads", max(1, d_model // _HEAD))
    wide = 4 * d_model if given.get("is_gated") == 0 else -(-8 * d_model // 3 // 256) * 256
    usual = {"heads": heads, "kv_heads": heads, "d_ff": max(wide, 256), "vocab": _VOCAB}
    experts = {"top_k": 2} if given.get("experts", 0) > 1 else {}
    return usual | experts | given


def _check(shape: Architecture) -> None:
    wrong = [name for name in ("layers", "d_model", "heads", "kv_heads", "d_ff", "vocab") if getattr(shape, name) < 1]
    if wrong:
        raise InputError(f"{wrong[0]}=0 makes no model.", hint="Give one or more.")
    if shape.heads % shape.kv_heads:
        hint = "kv_heads divides heads."
        raise InputError(f"{shape.heads} heads do not share {shape.kv_heads} of keys and values.", hint=hint)
    if not shape.head_dim and shape.d_model % shape.heads:
        raise InputError(f"{shape.heads} heads do not divide a width of {shape.d_model}.", hint="Or give head_dim.")
    if shape.top_k > max(shape.experts, 0) or shape.dense_layers > shape.layers:
        raise InputError("A mixture's top_k is at most its experts, dense_layers at most its layers.", hint="Check it.")
