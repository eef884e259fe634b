"""Which devices an XLA collective is among: its replica groups, in every form in which programs write them.

What the numbers of a group mean depends on the instruction (``CollectiveOpGroupMode`` in XLA's ``xla_data.proto``):
replicas, partitions, or both as one number. The module's device assignment turns them into devices.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Listed = tuple[tuple[int, ...], ...]

_MOST_DEVICES = 1 << 20
_BY_PARTITION = frozenset({"all-to-all", "ragged-all-to-all", "collective-broadcast"})
"""Collectives without a ``use_global_device_ids``: with a channel, their groups number partitions."""


@dataclass(frozen=True)
class Groups:
    """``size`` devices in each of ``count`` groups, 0 where they differ or are not told.

    ``devices`` has the global ids of each group; empty where the module does not assign devices.
    """

    size: int = 0
    count: int = 0
    devices: Listed = ()


NO_GROUPS = Groups()


def groups_of(instruction: Any, opcode: str, assignment: npt.NDArray[np.int64] | None) -> Groups:
    """``opcode`` without ``-start``. ``assignment`` has the device of each (replica, partition); None where untold."""
    listed = _listed(instruction)
    if listed is None:
        return NO_GROUPS
    if assignment is None:
        return _sizes_only(listed, is_plain=instruction.use_global_device_ids or not _has_channel(instruction))
    blocks = _blocks(instruction, opcode, assignment)
    units = blocks.shape[1]
    if not listed:
        listed = (tuple(range(units)),)
    if any(not 0 <= unit < units for group in listed for unit in group):
        return NO_GROUPS
    # Every block repeats the groups: a cross-replica collective runs in each partition for itself.
    devices = tuple(
        tuple(sorted(block[list(group)].reshape(-1).tolist())) for block in blocks for group in listed if group
    )
    sizes = {len(group) for group in devices}
    return Groups(sizes.pop() if len(sizes) == 1 else 0, len(devices), devices)


def assigned(module: Any) -> npt.NDArray[np.int64] | None:
    """The device of each (replica, partition) of a module."""
    columns = [list(column.replica_device_ids) for column in module.device_assignment.computation_devices]
    if not columns or len({len(column) for column in columns}) != 1 or not columns[0]:
        return None
    return np.array(columns, dtype=np.int64).T


def _blocks(instruction: Any, opcode: str, assignment: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Devices as (block, unit, devices of a unit), where groups are of units and hold within each block."""
    if not _has_channel(instruction):
        return assignment.T[:, :, None]
    if instruction.use_global_device_ids:
        return assignment.reshape(1, -1, 1)
    if opcode in _BY_PARTITION:
        return assignment[:, :, None]
    return assignment[None, :, :]


def _has_channel(instruction: Any) -> bool:
    return bool(instruction.channel_id > 0 or instruction.all_reduce_id > 0)


def _sizes_only(listed: Listed, *, is_plain: bool) -> Groups:
    sizes = {len(group) for group in listed}
    return Groups(sizes.pop(), len(listed)) if is_plain and len(sizes) == 1 else NO_GROUPS


def _listed(instruction: Any) -> Listed | None:
    """The groups as written, empty for "all in one"; None where the form cannot be read."""
    told = instruction.collective_device_list
    if instruction.HasField("mesh_axes_replica_group_list"):
        return _by_axes(instruction.mesh_axes_replica_group_list)
    if told.HasField("iota_replica_group_list"):
        return _iota(told.iota_replica_group_list)
    explicit = told.replica_groups or instruction.replica_groups
    return tuple(tuple(group.replica_ids) for group in explicit if group.replica_ids)


def _iota(told: Any) -> Listed | None:
    """``[groups, devices]<=[dims]T(perm)``: an iota of ``dims``, transposed, in rows of one group each."""
    dims, order = list(told.iota_reshape_dims), list(told.iota_transpose_perm)
    total = told.num_replica_groups * told.num_devices_per_group
    is_rows = told.num_replica_groups > 0 and told.num_devices_per_group > 0
    if not is_rows or not _is_shape(dims, total) or (order and sorted(order) != list(range(len(dims)))):
        return None
    numbers = np.arange(total).reshape(dims).transpose(order or None)
    return _rows(numbers.reshape(told.num_replica_groups, told.num_devices_per_group))


def _by_axes(told: Any) -> Listed | None:
    """Groups along some axes of a mesh: one for each place on the other axes."""
    sizes = [axis.size for axis in told.mesh.axes]
    total = math.prod(sizes)
    numbers = np.array(told.mesh.device_ids or range(total if _is_shape(sizes, total) else 0), dtype=np.int64)
    if not _is_shape(sizes, len(numbers)):
        return None
    dims, along = list(sizes), []
    for axis in told.axes:
        if axis.HasField("sub_axis_info") or not 0 <= axis.mesh_axis_index < len(sizes):
            return None  # a part of an axis: no real program with one has been seen
        along.append(axis.mesh_axis_index)
    if len(set(along)) != len(along):
        return None
    others = [axis for axis in range(len(dims)) if axis not in along]
    grouped = numbers.reshape(dims).transpose([*others, *along])
    return _rows(grouped.reshape(-1, math.prod(sizes[axis] for axis in along)))


def _is_shape(dims: list[int], total: int) -> bool:
    return bool(dims) and all(size > 0 for size in dims) and math.prod(dims) == total <= _MOST_DEVICES


def _rows(numbers: npt.NDArray[np.int64]) -> Listed:
    return tuple(map(tuple, numbers.tolist()))
