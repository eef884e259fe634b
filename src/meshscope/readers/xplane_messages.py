"""The messages of an xplane file, as far as they are read, built from a descriptor in code.

Own definitions keep JAX and TensorFlow out of the process. Field numbers are those of XLA's ``xplane.proto``, and of
``hlo.proto`` and ``xla_data.proto`` for the programs that lie in it; text is declared as bytes, because a kernel's name
need not be UTF-8.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_FIELD = descriptor_pb2.FieldDescriptorProto
_INT64, _UINT64, _DOUBLE, _BYTES = _FIELD.TYPE_INT64, _FIELD.TYPE_UINT64, _FIELD.TYPE_DOUBLE, _FIELD.TYPE_BYTES
_INT64S, _BOOLS = -_INT64, -_FIELD.TYPE_BOOL
"""Repeated numbers: the type's number below zero."""

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
    "Module": {"name": (1, _BYTES), "computations": (3, "Computation*"), "device_assignment": (15, "Assignment")},
    "Assignment": {"computation_devices": (3, "Assigned*")},
    "Assigned": {"replica_device_ids": (1, _INT64S)},
    "Computation": {
        "name": (1, _BYTES),
        "instructions": (2, "Instruction*"),
        "id": (5, _INT64),
        "root_id": (6, _INT64),
    },
    "Instruction": {
        "name": (1, _BYTES),
        "opcode": (2, _BYTES),
        "shape": (3, "Shape"),
        "metadata": (7, "OpMetadata"),
        "channel_id": (26, _INT64),
        "id": (35, _INT64),
        "operand_ids": (36, _INT64S),
        "called_computation_ids": (38, _INT64S),
        "backend_config": (43, _BYTES),
        "all_reduce_id": (45, _INT64),
        "replica_groups": (49, "ReplicaGroup*"),
        "use_global_device_ids": (71, _FIELD.TYPE_BOOL),
        "collective_device_list": (87, "DeviceList"),
        "mesh_axes_replica_group_list": (93, "MeshAxesGroups"),
    },
    "OpMetadata": {"op_name": (2, _BYTES)},
    "Shape": {
        "element_type": (2, _INT64),
        "dimensions": (3, _INT64S),
        "tuple_shapes": (4, "Shape*"),
        "layout": (5, "Layout"),
        "is_dynamic_dimension": (6, _BOOLS),
    },
    "Layout": {"element_size_in_bits": (7, _INT64)},
    "ReplicaGroup": {"replica_ids": (1, _INT64S)},
    "DeviceList": {"replica_groups": (1, "ReplicaGroup*"), "iota_replica_group_list": (2, "IotaGroups")},
    "IotaGroups": {
        "num_replica_groups": (1, _INT64),
        "num_devices_per_group": (2, _INT64),
        "iota_reshape_dims": (3, _INT64S),
        "iota_transpose_perm": (4, _INT64S),
    },
    "MeshAxesGroups": {"mesh": (1, "Mesh"), "axes": (2, "AxisRef*")},
    "Mesh": {"axes": (1, "MeshAxis*"), "device_ids": (2, _INT64S)},
    "MeshAxis": {"name": (1, _BYTES), "size": (2, _INT64)},
    "AxisRef": {"mesh_axis_index": (1, _INT64), "sub_axis_info": (2, "SubAxis")},
    "SubAxis": {"pre_size": (1, _INT64), "size": (2, _INT64)},
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
        if kind < 0:
            field.label, kind = _FIELD.LABEL_REPEATED, -kind
        field.type = kind  # type: ignore[assignment]  # an int by another name
    if name in _ONE_OF:
        field.oneof_index = 0
