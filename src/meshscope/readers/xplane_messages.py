"""The messages of an xplane file, as far as they are read, built from a descriptor in code.

Own definitions keep JAX and TensorFlow out of the process. Field numbers are those of XLA's ``xplane.proto``, and of
``hlo.proto`` for the programs that lie in it; text is declared as bytes, because a kernel's name need not be UTF-8.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_FIELD = descriptor_pb2.FieldDescriptorProto
_INT64, _UINT64, _DOUBLE, _BYTES = _FIELD.TYPE_INT64, _FIELD.TYPE_UINT64, _FIELD.TYPE_DOUBLE, _FIELD.TYPE_BYTES

_MESSAGES: dict[str, dict[str, tuple[int, int | str]]] = {
    "Space": {"planes": (1, "Plane*")},
    "Plane": {
        "name": (2, _BYTES),
        "lines": (3, "Line*"),
        "event_metadata": (4, "EventEntry*"),
        "stat_metadata": (5, "StatEntry*"),
        "stats": (6, "Stat*"),
    },
    "Line": {"name": (2, _BYTES), "timestamp_ns": (3, _INT64), "events": (4, "Event*")},
    "Event": {
        "metadata_id": (1, _INT64),
        "offset_ps": (2, _INT64),
        "duration_ps": (3, _INT64),
        "stats": (4, "Stat*"),
        "num_occurrences": (5, _INT64),
    },
    "Stat": {
        "metadata_id": (1, _INT64),
        "double_value": (2, _DOUBLE),
        "uint64_value": (3, _UINT64),
        "int64_value": (4, _INT64),
        "str_value": (5, _BYTES),
        "bytes_value": (6, _BYTES),
        "ref_value": (7, _UINT64),
    },
    "EventEntry": {"key": (1, _INT64), "value": (2, "EventMetadata")},
    "EventMetadata": {"id": (1, _INT64), "name": (2, _BYTES), "stats": (5, "Stat*")},
    "StatEntry": {"key": (1, _INT64), "value": (2, "StatMetadata")},
    "StatMetadata": {"id": (1, _INT64), "name": (2, _BYTES)},
    "Program": {"module": (1, "Module")},
    "Module": {"name": (1, _BYTES), "computations": (3, "Computation*")},
    "Computation": {"instructions": (2, "Instruction*")},
    "Instruction": {"name": (1, _BYTES), "opcode": (2, _BYTES)},
}
_ONE_OF = ("double_value", "uint64_value", "int64_value", "str_value", "bytes_value", "ref_value")
_PACKAGE = "meshscope.xplane"


@cache
def message(name: str) -> type[Any]:
    """The class of a message of this file: ``message("Plane").FromString(content)``."""
    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"{_PACKAGE}.{name}"))


@cache
def _pool() -> descriptor_pool.DescriptorPool:
    file = descriptor_pb2.FileDescriptorProto(name="meshscope_xplane.proto", package=_PACKAGE, syntax="proto3")
    for name, fields in _MESSAGES.items():
        declared = file.message_type.add(name=name)
        if name == "Stat":
            declared.oneof_decl.add(name="value")
        for field, (number, kind) in fields.items():
            _declare(declared, field, number, kind)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool


def _declare(declared: descriptor_pb2.DescriptorProto, name: str, number: int, kind: int | str) -> None:
    field = declared.field.add(name=name, number=number, label=_FIELD.LABEL_OPTIONAL)
    if isinstance(kind, str):
        field.type, field.type_name = _FIELD.TYPE_MESSAGE, f".{_PACKAGE}.{kind.rstrip('*')}"
        field.label = _FIELD.LABEL_REPEATED if kind.endswith("*") else _FIELD.LABEL_OPTIONAL
    else:
        field.type = kind  # type: ignore[assignment]  # an int by another name
    if name in _ONE_OF:
        field.oneof_index = 0
