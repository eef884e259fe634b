"""An entry as one line of JSON and back, with the numbers that JSON has no words for.

JSON knows neither NaN nor infinity. They stand as ``"nan"``, ``"inf"`` and ``"-inf"`` where an entry has a number with
a fraction. Older recordings have null there, which says no more than that the number was not finite: read as NaN where
an entry needs one, and as not known where it may lack it.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import msgspec

from meshscope.recording.entries import AnyEntry, Entry

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(AnyEntry)
_KINDS: dict[str, type[Entry]] = {str(kind.__struct_config__.tag): kind for kind in AnyEntry.__args__}
_SPELLED = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf, None: math.nan}


def encoded(entry: Entry) -> bytes:
    """One line, without its end."""
    line = _ENCODER.encode(entry)
    if b"null" not in line:  # what is not finite would be one; nearly no line has it
        return line
    values = msgspec.to_builtins(entry)
    for name in _fractions(type(entry)):
        if name in values:
            values[name] = _spelled(values[name])
    return _ENCODER.encode(values)


def decoded(line: bytes) -> Entry:
    """Raises ``msgspec.MsgspecError`` where the line is damaged or of an unknown type."""
    try:
        return _DECODER.decode(line)
    except msgspec.ValidationError:
        return _lenient(line)


def _lenient(line: bytes) -> Entry:
    values = msgspec.json.decode(line)
    tag = values.get("type") if isinstance(values, dict) else None
    kind = _KINDS.get(tag) if isinstance(tag, str) else None
    for name in _fractions(kind) if kind is not None else ():
        if name in values:
            values[name] = _number(values[name])
    found: Entry = msgspec.convert(values, AnyEntry)
    return found


@cache
def _fractions(kind: type[Entry]) -> tuple[str, ...]:
    """The fields that hold numbers with a fraction, or name them."""
    kinds = (float, float | None, dict[str, float])
    return tuple(field.name for field in msgspec.structs.fields(kind) if field.type in kinds)


def _spelled(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _spelled(part) for name, part in value.items()}
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _number(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _number(part) for name, part in value.items()}
    return _SPELLED.get(value, value) if value is None or isinstance(value, str) else value
