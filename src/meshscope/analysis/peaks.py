"""What devices can multiply at most: their makers' datasheets, dense (without sparsity), in FLOP/s.

``measured`` is the most that anybody has published as measured with plain matrix products of the best shape found, in
bf16: https://github.com/stas00/ml-engineering/blob/master/compute/accelerator/README.md (MAMF table). No training step
runs above it. Where datasheets print only the figure with sparsity, half of it is meant.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

TERA = 1e12
PRECISIONS = ("bf16", "fp16", "tf32", "fp32")


@dataclass(frozen=True)
class Device:
    """One product. ``dies`` is how many devices a framework sees in it: their peak is the product's over ``dies``.

    ``peak_flops_per_s`` maps a precision to the datasheet's figure; a precision that it lacks is absent.
    ``measured_flops_per_s`` is NaN-free: 0 where nobody published one.
    """

    name: str
    pattern: str
    peak_flops_per_s: dict[str, float]
    source: str
    measured_flops_per_s: float = 0.0
    dies: int = 1


def _device(name: str, pattern: str, tera: tuple[float, ...], source: str, **more: float) -> Device:
    """``tera`` lists bf16, fp16, tf32 and fp32; 0 for what the device lacks."""
    peaks = {precision: value * TERA for precision, value in zip(PRECISIONS, tera, strict=True) if value}
    measured = more.get("measured", 0.0) * TERA
    return Device(name, pattern, peaks, source, measured, int(more.get("dies", 1)))


_HOPPER = "NVIDIA H100 datasheet, nvidia.com/data-center/h100"
_H200 = "NVIDIA H200 datasheet, nvidia.com/data-center/h200"
_BLACKWELL = "NVIDIA Blackwell datasheet (HGX B200, GB200 NVL72)"
_A100 = "NVIDIA A100 datasheet, nvidia.com/data-center/a100"
_V100 = "NVIDIA V100 datasheet"
_GA102 = "NVIDIA Ampere GA102 whitepaper (FP32 accumulate)"
_AD102 = "NVIDIA Ada GPU architecture whitepaper (FP32 accumulate)"
_MI200 = "AMD Instinct MI200 series datasheet"
_MI300 = "AMD Instinct MI300X and MI325X datasheets"
_TPU = "Google Cloud TPU system architecture, docs.cloud.google.com/tpu/docs"

# The first pattern that a name holds wins: variants stand before the product they are one of.
DEVICES = (
    _device("GB200", r"gb200", (2500, 2500, 1250, 80), _BLACKWELL, measured=1822),
    _device("B200", r"\bb200", (2250, 2250, 1125, 75), _BLACKWELL, measured=1745),
    _device("GH200", r"gh200", (989.4, 989.4, 494.7, 66.9), "NVIDIA GH200 datasheet", measured=828.6),
    _device("H200 NVL", r"h200.*nvl", (835.5, 835.5, 417.5, 60), _H200),
    _device("H200", r"\bh200", (989.4, 989.4, 494.7, 66.9), _H200),
    _device("H100 NVL", r"h100.*nvl", (835.5, 835.5, 417.5, 60), _HOPPER),
    _device("H100 PCIe", r"h100.*pcie", (756.5, 756.5, 378, 51.2), _HOPPER),
    _device("H100 SXM", r"\bh100", (989.4, 989.4, 494.7, 66.9), _HOPPER, measured=794.5),
    _device("A100 PCIe", r"a100.*pcie", (312, 312, 156, 19.5), _A100, measured=252.9),
    _device("A100 SXM", r"\ba100", (312, 312, 156, 19.5), _A100, measured=271.2),
    _device("A10", r"\ba10\b", (125, 125, 62.5, 31.2), "NVIDIA A10 datasheet"),
    _device("L40S", r"\bl40s\b", (362, 362, 183, 91.6), "NVIDIA L40S datasheet"),
    _device("L4", r"\bl4\b", (121, 121, 60, 30.3), "NVIDIA L4 datasheet"),
    _device("T4", r"\bt4\b", (0, 65, 0, 8.1), "NVIDIA T4 datasheet"),
    _device("V100 PCIe", r"\bv100(?!s).*pcie", (0, 112, 0, 14), _V100),
    _device("V100 SXM2", r"\bv100(?!s)", (0, 125, 0, 15.7), _V100),
    _device("RTX 3090", r"\b3090(?! ?ti)", (71, 71, 35.6, 35.6), _GA102),
    _device("RTX 4090", r"\b4090(?! ?d\b)", (165.2, 165.2, 82.6, 82.6), _AD102),
    _device("MI325X", r"\bmi325x", (1307.4, 1307.4, 653.7, 163.4), _MI300, measured=784.9),
    _device("MI300X", r"\bmi300x", (1307.4, 1307.4, 653.7, 163.4), _MI300, measured=668.4),
    _device("MI250X", r"\bmi250x", (383, 383, 0, 95.7), _MI200, dies=2),
    _device("MI250", r"\bmi250", (362.1, 362.1, 0, 90.5), _MI200, dies=2),
    _device("MI210", r"\bmi210", (181, 181, 0, 45.3), _MI200),
    _device("TPU v6e", r"\bv6 ?(e|lite)\b", (918, 0, 0, 0), _TPU),
    _device("TPU v5e", r"\bv5 ?(e|lite)\b", (197, 0, 0, 0), _TPU),
    _device("TPU v5p", r"\bv5p?\b", (459, 0, 0, 0), _TPU),
    _device("TPU v4", r"\bv4\b", (275, 0, 0, 0), _TPU),
    _device("TPU v3", r"\bv3\b", (123, 0, 0, 0), _TPU, dies=2),
    _device("TPU v2", r"\bv2\b", (45, 0, 0, 0), _TPU, dies=2),
)


def named(name: str) -> Device | None:
    """The product of exactly this ``name`` in the list."""
    return next((known for known in DEVICES if known.name == name), None)


def device(name: str) -> Device | None:
    """The product that a name means, such as ``NVIDIA A100-SXM4-80GB`` or ``TPU v5 lite``; None for an unknown one."""
    plain = re.sub(r"(?<=tpu)(?=v\d)|(?<=rtx)(?=\d)|[-_]", " ", name.lower())
    return next((known for known in DEVICES if re.search(known.pattern, plain)), None)
