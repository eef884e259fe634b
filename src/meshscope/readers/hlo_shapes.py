"""How many bytes a value of a compiled program has: XLA's ``ShapeProto``, its element types included."""

from __future__ import annotations

import math
from typing import Any

UNKNOWN = -1

_TUPLE, _OPAQUE, _TOKEN = 13, 14, 17
_NOTHING = frozenset({_OPAQUE, _TOKEN})
"""What carries no elements: it orders operations, or is the runtime's own."""

_TYPES: dict[int, tuple[str, int]] = {
    1: ("pred", 1), 2: ("s8", 1), 3: ("s16", 2), 4: ("s32", 4), 5: ("s64", 8), 6: ("u8", 1), 7: ("u16", 2),
    8: ("u32", 4), 9: ("u64", 8), 10: ("f16", 2), 11: ("f32", 4), 12: ("f64", 8), 15: ("c64", 8), 16: ("bf16", 2),
    18: ("c128", 16), 19: ("f8e5m2", 1), 20: ("f8e4m3fn", 1), 21: ("s4", 1), 22: ("u4", 1), 23: ("f8e4m3b11fnuz", 1),
    24: ("f8e5m2fnuz", 1), 25: ("f8e4m3fnuz", 1), 26: ("s2", 1), 27: ("u2", 1), 28: ("f8e4m3", 1), 29: ("f8e3m4", 1),
    30: ("s1", 1), 31: ("u1", 1), 32: ("f4e2m1fn", 1), 33: ("f8e8m0fnu", 1),
}  # fmt: skip
"""Name and bytes by number of XLA's ``PrimitiveType``. Less than a byte takes one unless the layout packs it."""

_MOST_BYTES = 1 << 62


def size_bytes(shape: Any) -> int:
    """Of an array, or of all parts of a tuple; :data:`UNKNOWN` with a type or a size that is not told.

    A dimension that is only bounded has a size of its own in every run: it is unknown here. The padding of a tiled
    layout is not counted, since it is not what the program communicates.
    """
    if shape.element_type == _TUPLE:
        parts = [size_bytes(part) for part in shape.tuple_shapes]
        return UNKNOWN if UNKNOWN in parts else _bounded(sum(parts))
    if shape.element_type in _NOTHING:
        return 0
    if shape.element_type not in _TYPES or any(shape.is_dynamic_dimension) or any(n < 0 for n in shape.dimensions):
        return UNKNOWN
    count = math.prod(shape.dimensions)
    packed_bits = shape.layout.element_size_in_bits
    if packed_bits > 0:
        return _bounded(-(-count * packed_bits // 8))
    return _bounded(count * _TYPES[shape.element_type][1])


def dtype(*shapes: Any) -> str:
    """XLA's name for the type of some arrays and of those in tuples; "" where they differ or it is unknown."""
    found = {name for shape in shapes for name in _dtypes(shape)}
    return found.pop() if len(found) == 1 else ""


def _dtypes(shape: Any) -> list[str]:
    if shape.element_type == _TUPLE:
        return [name for part in shape.tuple_shapes for name in _dtypes(part)]
    return [] if shape.element_type in _NOTHING else [_TYPES.get(shape.element_type, ("", 0))[0]]


def _bounded(size: int) -> int:
    return size if size < _MOST_BYTES else UNKNOWN
