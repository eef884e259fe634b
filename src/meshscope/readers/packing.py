"""Windows as one file of columns, to be mapped into memory: how they lie in the cache and how workers hand them over.

The file is a head (JSON: everything but the columns, and where those lie) and the columns, each on a boundary of
64 bytes. A column that is one value throughout is only named in the head. Nothing in the file is run, so one that
somebody else has written can be wrong but cannot act; and nothing of it is believed before it has been checked:

- the head by its digest, its values by the types of :class:`meshscope.spans.Window`;
- every column by its type, its place in the file and its CRC-32, which runs at memory speed;
- every number that points into a table of names or at another row by that table's length.

Whatever fails raises :class:`Damaged`, which means: read the trace again.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import mmap
import struct
import types
import zlib
from functools import cache
from typing import IO, Any, Union, get_args, get_origin, get_type_hints

import msgspec
import numpy as np
import numpy.typing as npt

from meshscope.kinds import Kind
from meshscope.spans import COLUMNS, SpanTable, Window

Array = npt.NDArray[Any]

_MAGIC = b"MESHCOL\x01"
_FRONT = struct.Struct("<8sQ20s")
_DIGEST_BYTES = 20
_ALIGNMENT = 64
_HEAD_LIMIT_BYTES = 1 << 30
_FEW_ROWS = 4096
_INTO = {"lane": "lanes", "name": "names", "dtype": "dtypes", "group": "groups", "collective": "collectives",
         "rule": "rules", "path": "paths"}  # fmt: skip


class Damaged(Exception):  # noqa: N818  # a state of the file, not a fault of anybody's
    """The file is not what :func:`pack` wrote for this key. Never shown: the trace is read again."""


def pack(file: IO[bytes], windows: tuple[Window, ...], key: str) -> None:
    """Write windows at the beginning of a file. Raises OSError."""
    columns: list[Array] = []
    told = [_told(window, Window, columns) for window in windows]
    repeated = _repeated(columns)
    places, at = [], 0
    for column, is_repeated in zip(columns, repeated, strict=True):
        places.append(_repetition(column) if is_repeated else _place(column, at))
        at += 0 if is_repeated else _padded(column.nbytes)
    head = json.dumps({"key": key, "windows": told, "columns": places}, separators=(",", ":")).encode()
    front = _FRONT.pack(_MAGIC, len(head), _digest(head))
    _write_padded(file, front + head)
    for column, is_repeated in zip(columns, repeated, strict=True):
        if not is_repeated:
            _write_padded(file, _bytes(column))


def unpack(file: IO[bytes], key: str) -> tuple[Window, ...]:
    """The windows of a file, their columns mapped from it and read-only. Raises Damaged, and OSError."""
    try:
        whole = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except ValueError as error:  # an empty file cannot be mapped
        raise Damaged(str(error)) from error
    head, start = _head(whole)
    try:
        if head["key"] != key:
            raise Damaged("another key")
        columns = _columns(whole, start, head["columns"])
        windows = tuple(_made(told, Window, columns) for told in head["windows"])
    except (ValueError, TypeError, KeyError, IndexError, OverflowError, RecursionError) as error:
        # msgspec.ValidationError is a ValueError: the head says something that no Window can hold.
        raise Damaged(str(error)) from error
    for window in windows:
        _check(window)
    return windows


# The head


def _digest(head: bytes) -> bytes:
    return hashlib.blake2b(head, digest_size=_DIGEST_BYTES).digest()


def _head(whole: mmap.mmap) -> tuple[dict[str, Any], int]:
    """The head, and where the columns begin."""
    if len(whole) < _FRONT.size:
        raise Damaged("too short")
    magic, size, digest = _FRONT.unpack(whole[: _FRONT.size])
    if magic != _MAGIC or size > min(len(whole) - _FRONT.size, _HEAD_LIMIT_BYTES):
        raise Damaged("no head")
    text = whole[_FRONT.size : _FRONT.size + size]
    if _digest(text) != digest:
        raise Damaged("the head's digest differs")
    try:
        head = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Damaged(str(error)) from error
    if not isinstance(head, dict):
        raise Damaged("the head is no object")
    return head, _padded(_FRONT.size + size)


# Values, told by their types


@dataclasses.dataclass(frozen=True)
class _Shape:
    """What a type is to this file: ``dtype`` of a column, ``fields`` of a dataclass, or neither: a plain value."""

    dtype: np.dtype[Any] | None = None
    fields: tuple[tuple[str, Any], ...] = ()
    is_optional: bool = False
    type: Any = None


@cache
def _shape(kind: Any) -> _Shape:
    if get_origin(kind) in (Union, types.UnionType):
        inner = [part for part in get_args(kind) if part is not type(None)]
        if len(inner) == 1 and _has_columns(inner[0]):
            return dataclasses.replace(_shape(inner[0]), is_optional=True)
    if get_origin(kind) is np.ndarray:
        return _Shape(dtype=np.dtype(get_args(get_args(kind)[1])[0]))
    if _has_columns(kind):
        hints = get_type_hints(kind)
        return _Shape(fields=tuple((field.name, hints[field.name]) for field in dataclasses.fields(kind)), type=kind)
    return _Shape(type=kind)


@cache
def _has_columns(kind: Any) -> bool:
    """Whether a type is a column, or a dataclass that holds some."""
    if get_origin(kind) is np.ndarray:
        return True
    if get_origin(kind) in (Union, types.UnionType):
        return any(_has_columns(part) for part in get_args(kind))
    return dataclasses.is_dataclass(kind) and any(_has_columns(hint) for hint in get_type_hints(kind).values())


def _told(value: Any, kind: Any, columns: list[Array]) -> Any:
    """A value for the head: the number of a column, a dict of a dataclass's fields, or itself."""
    shape = _shape(kind)
    if value is None:
        return None
    if shape.dtype is not None:
        columns.append(value)
        return len(columns) - 1
    if shape.fields:
        return {name: _told(getattr(value, name), hint, columns) for name, hint in shape.fields}
    return msgspec.to_builtins(value)


def _made(told: Any, kind: Any, columns: list[Array]) -> Any:
    """The value again; raises ValueError, TypeError, KeyError or IndexError where it is none of ``kind``."""
    shape = _shape(kind)
    if told is None and shape.is_optional:
        return None
    if shape.dtype is not None:
        if not isinstance(told, int) or told < 0 or columns[told].dtype != shape.dtype:
            raise ValueError("a column of another type")
        return columns[told]
    if shape.fields:
        return shape.type(**{name: _made(told[name], hint, columns) for name, hint in shape.fields})
    return msgspec.convert(told, shape.type)


# Columns


class _Place(msgspec.Struct, array_like=True):
    """Where a column lies, from the first column on; ``value`` instead where all of it is one value."""

    dtype: str
    shape: list[int]
    at: int
    crc: int
    value: int | float | None


def _place(column: Array, at: int) -> Any:
    crc = zlib.crc32(_bytes(column))
    return msgspec.to_builtins(_Place(column.dtype.str, list(column.shape), at, crc, None))


def _repetition(column: Array) -> Any:
    return msgspec.to_builtins(_Place(column.dtype.str, list(column.shape), 0, 0, column[0].item()))


def _repeated(columns: list[Array]) -> list[bool]:
    """Which columns are one value throughout and no longer than those that are not."""
    constant = [_is_constant(column) for column in columns]
    longest = max((len(c) for c, is_constant in zip(columns, constant, strict=True) if not is_constant), default=0)
    return [
        is_constant and len(column) <= max(longest, _FEW_ROWS)
        for column, is_constant in zip(columns, constant, strict=True)
    ]


def _is_constant(column: Array) -> bool:
    if column.ndim != 1 or len(column) < 2 or column.dtype.kind not in "iu":
        return False
    return not any(column.strides) or bool((column == column[0]).all())


def _columns(whole: mmap.mmap, start: int, places: Any) -> list[Array]:
    found = [msgspec.convert(place, _Place) for place in places]
    # A value that is repeated may not pretend to more rows than the file has: asking about them would never end.
    longest = max((place.shape[0] for place in found if place.value is None and place.shape), default=0)
    return [_column(whole, start, place, longest) for place in found]


def _column(whole: mmap.mmap, start: int, place: _Place, longest: int) -> Array:
    dtype = np.dtype(place.dtype)
    if dtype.kind not in "iufb" or any(length < 0 for length in place.shape) or place.at < 0:
        raise ValueError("no column")
    count = math.prod(place.shape)
    if place.value is not None:
        if len(place.shape) != 1 or count > max(longest, _FEW_ROWS):
            raise ValueError("a repeated value for more rows than there are")
        return np.broadcast_to(np.array(place.value, dtype=dtype), tuple(place.shape))
    if count * dtype.itemsize > len(whole) - start - place.at:
        raise ValueError("a column that is cut short")
    if not count:
        return np.empty(place.shape, dtype=dtype)
    flat = np.frombuffer(whole, dtype=dtype, count=count, offset=start + place.at)
    if zlib.crc32(_bytes(flat)) != place.crc:
        raise ValueError("a column's checksum differs")
    return flat.reshape(place.shape)


def _bytes(column: Array) -> memoryview:
    return memoryview(np.ascontiguousarray(column).reshape(-1).view(np.uint8).data)


def _padded(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _write_padded(file: IO[bytes], content: bytes | memoryview) -> None:
    file.write(content)
    file.write(b"\0" * (_padded(len(content)) - len(content)))


# What a window must hold for the questions to be safe to ask


def _check(window: Window) -> None:
    if window.step_ns.shape != (len(window.steps), 2):
        raise Damaged("steps without their bounds")
    if window.allocations is not None and len({len(c) for c in vars(window.allocations).values()}) != 1:
        raise Damaged("allocations of unequal length")
    _check_spans(window.spans)


def _check_spans(spans: SpanTable) -> None:
    count = len(spans.start_ns)
    if any(getattr(spans, name).shape != (count,) for name in COLUMNS):
        raise Damaged("columns of unequal length")
    if not count:
        return
    for column, table in _INTO.items():
        _check_range(getattr(spans, column), len(getattr(spans, table)))
    _check_range(spans.link, count)
    if int(spans.kind.max()) > max(Kind):
        raise Damaged("a kind that there is not")


def _check_range(column: Array, end: int) -> None:
    if int(column.min()) < -1 or int(column.max()) >= end:
        raise Damaged("a number that points nowhere")
