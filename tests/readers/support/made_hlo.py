"""Compiled programs in XLA's own messages, made instruction by instruction."""

from __future__ import annotations

from typing import Any

from meshscope.readers.xplane_messages import message

TYPES = {"pred": 1, "s8": 2, "s32": 4, "u32": 8, "f32": 11, "bf16": 16, "token": 17, "f8e4m3fn": 20, "s4": 21}
TUPLE = 13

Part = tuple[str, tuple[int, ...]]


def array(dtype: str, *dims: int) -> Any:
    return message("Shape")(element_type=TYPES[dtype], dimensions=dims)


def tuple_of(*parts: Any) -> Any:
    return message("Shape")(element_type=TUPLE, tuple_shapes=parts)


class Hlo:
    """A module with one computation, ``main``; ``devices`` are rows of replicas and columns of partitions."""

    def __init__(self, devices: list[list[int]] | None = None) -> None:
        self.program = message("Program")()
        self.main = self.computation()
        for column in zip(*(devices or []), strict=True):
            self.program.module.device_assignment.computation_devices.add(replica_device_ids=column)

    def computation(self) -> Any:
        return self.program.module.computations.add(id=len(self.program.module.computations) + 1)

    def add(self, name: str, opcode: str, shape: Any, *operands: Any, within: Any = None, **fields: Any) -> Any:
        """``path`` is its ``op_name``, ``calls`` a computation."""
        path, calls = fields.pop("path", ""), fields.pop("calls", None)
        numbers = sum(len(one.instructions) for one in self.program.module.computations)
        made = (within or self.main).instructions.add(
            name=name.encode(),
            opcode=opcode.encode(),
            shape=shape,
            id=(7 << 32) + numbers,
            operand_ids=[one.id for one in operands],
            called_computation_ids=[] if calls is None else [calls.id],
            **fields,
        )
        made.metadata.op_name = path.encode()
        return made

    def content(self) -> bytes:
        found: bytes = self.program.SerializeToString()
        return found


def grouped(*groups: tuple[int, ...]) -> Any:
    """An explicit list of replica groups."""
    return message("DeviceList")(replica_groups=[message("ReplicaGroup")(replica_ids=group) for group in groups])


def iota(groups: int, devices: int, dims: tuple[int, ...], order: tuple[int, ...] = ()) -> Any:
    """``[groups,devices]<=[dims]T(order)``."""
    told = message("IotaGroups")(
        num_replica_groups=groups,
        num_devices_per_group=devices,
        iota_reshape_dims=dims,
        iota_transpose_perm=order,
    )
    return message("DeviceList")(iota_replica_group_list=told)


def along(mesh: dict[str, int], *axes: str, device_ids: tuple[int, ...] = ()) -> Any:
    """Groups along some axes of a mesh."""
    made = message("MeshAxesGroups")()
    made.mesh.device_ids.extend(device_ids)
    for name, size in mesh.items():
        made.mesh.axes.add(name=name.encode(), size=size)
    for axis in axes:
        made.axes.add(mesh_axis_index=list(mesh).index(axis))
    return made
