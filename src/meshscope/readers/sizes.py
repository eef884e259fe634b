"""How many bytes a collective moves, from the shapes and types that a trace records for its call."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

_ITEMSIZE = {
    "float": 4, "float32": 4, "double": 8, "float64": 8, "half": 2, "float16": 2, "bfloat16": 2,
    "long": 8, "long int": 8, "int64": 8, "int": 4, "int32": 4, "short": 2, "short int": 2, "int16": 2,
    "char": 1, "signed char": 1, "int8": 1, "byte": 1, "unsigned char": 1, "uint8": 1, "bool": 1,
    "float8_e4m3fn": 1, "float8_e5m2": 1, "complex<float>": 8, "complexfloat": 8, "complex<double>": 16,
}  # fmt: skip


def itemsize(dtype: str) -> int:
    """Bytes of one element, by torch's or C++'s name for its type; 0 when the name is unknown."""
    return _ITEMSIZE.get(dtype.removeprefix("c10::").lower(), 0)


class Message(NamedTuple):
    """What one call communicates: −1 and "" where the trace does not tell."""

    elements: int
    size_bytes: int
    dtype: str


@lru_cache(maxsize=4096)
def message(dims: bytes, types: bytes) -> Message:
    """The largest argument of a call, from its ``Input Dims`` and ``Input type`` (JSON lists).

    The tensors of one list are added up; a list names no element type, so its bytes stay unknown.
    """
    try:
        shapes, names = msgspec.json.decode(dims or b"[]"), msgspec.json.decode(types or b"[]")
    except (msgspec.DecodeError, RecursionError):
        return Message(-1, -1, "")
    if not isinstance(shapes, list) or not isinstance(names, list):
        return Message(-1, -1, "")
    found = [(elements(shape), str(name)) for shape, name in zip(shapes, names, strict=False)]
    count, dtype = max(found, default=(0, ""))
    width = itemsize(dtype)
    return Message(count or -1, count * width or -1, dtype if width else "")


def elements(shape: Any) -> int:
    """Elements of a tensor's shape, or of all shapes of a list of tensors; 0 for anything else."""
    if not isinstance(shape, list) or not shape:
        return 0
    if all(isinstance(size, int) for size in shape):
        return math.prod(shape) if min(shape) >= 0 and max(shape) < 2**63 else 0
    return sum(elements(part) for part in shape)
