"""What a compiled program tells of its collectives: bytes, element types and groups, worked by hand."""

from __future__ import annotations

from typing import Any

import pytest
from made_hlo import Hlo, along, array, grouped, iota, tuple_of

from meshscope.readers.hlo_groups import Groups
from meshscope.readers.hlo_program import Message, instructions_of
from meshscope.readers.hlo_shapes import UNKNOWN, dtype, size_bytes

PARTITIONS = [[0, 1, 2, 3, 4, 5, 6, 7]]
"""One replica of eight partitions."""


@pytest.mark.parametrize(
    ("shape", "size", "name"),
    [
        (array("f32", 8, 4), 128, "f32"),
        (array("bf16", 8, 4), 64, "bf16"),
        (array("f8e4m3fn", 8, 4), 32, "f8e4m3fn"),
        (array("pred", 3), 3, "pred"),
        (array("f32"), 4, "f32"),
        (array("f32", 0, 5), 0, "f32"),
        (tuple_of(array("f32", 2), array("f32", 3), array("token")), 20, "f32"),
        (tuple_of(array("f32", 2), tuple_of(array("s8", 3))), 11, ""),
        (array("s4", 5), 5, "s4"),
        (array("f32", -1), UNKNOWN, "f32"),
        (array("f32", 1 << 62), UNKNOWN, "f32"),
    ],
)
def test_bytes_of_a_shape(shape: Any, size: int, name: str) -> None:
    assert (size_bytes(shape), dtype(shape)) == (size, name)


def test_a_layout_that_packs_elements_takes_less_than_a_byte_for_each() -> None:
    packed = array("s4", 5)
    packed.layout.element_size_in_bits = 4
    assert size_bytes(packed) == 3


def test_a_size_that_is_only_bounded_or_a_type_that_is_not_known_is_no_size() -> None:
    bounded, strange = array("f32", 8), array("f32", 8)
    bounded.is_dynamic_dimension.append(True)
    strange.element_type = 99
    assert size_bytes(bounded) == size_bytes(strange) == size_bytes(tuple_of(array("s8"), strange)) == UNKNOWN
    assert dtype(strange) == ""


def told(program: Hlo, name: str) -> Message:
    found = instructions_of(program.content())[name].message
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("opcode", "result", "size"),
    [
        ("all-reduce", (64,), 256),
        ("all-gather", (512,), 2048),  # what it leaves
        ("reduce-scatter", (8,), 256),  # what it takes
        ("all-to-all", (64,), 256),
        ("collective-permute", (64,), 256),
        ("collective-broadcast", (64,), 256),
        ("ragged-all-to-all", (64,), UNKNOWN),
    ],
)
def test_sizes_are_those_of_nccl_tests(opcode: str, result: tuple[int, ...], size: int) -> None:
    program = Hlo(PARTITIONS)
    taken = program.add("p", "parameter", array("f32", 64))
    program.add("c", opcode, array("f32", *result), taken, channel_id=1)
    assert told(program, "c").size_bytes == size


def test_a_start_has_the_size_of_its_collective_and_a_done_has_none() -> None:
    program = Hlo(PARTITIONS)
    taken = program.add("p", "parameter", array("bf16", 64))
    gathered = array("bf16", 512)
    start = program.add("ag", "all-gather-start", tuple_of(taken.shape, gathered), taken, channel_id=1)
    program.add("ag.done", "all-gather-done", gathered, start)
    context = tuple_of(taken.shape, taken.shape, array("u32"), array("u32"))
    program.add("cp", "collective-permute-start", context, taken, channel_id=2)
    assert told(program, "ag").size_bytes == 1024
    assert told(program, "cp").size_bytes == 128
    assert instructions_of(program.content())["ag.done"].message is None


def test_combined_collectives_are_added_up() -> None:
    program = Hlo(PARTITIONS)
    taken = [program.add(f"p{size}", "parameter", array("f32", size)) for size in (10, 20)]
    mixed = program.add("b", "parameter", array("bf16", 30))
    program.add("both", "all-reduce", tuple_of(*(one.shape for one in taken)), *taken, channel_id=1)
    program.add("mixed", "all-reduce", tuple_of(taken[0].shape, mixed.shape), taken[0], mixed, channel_id=2)
    assert (told(program, "both").size_bytes, told(program, "both").dtype) == (120, "f32")
    assert (told(program, "mixed").size_bytes, told(program, "mixed").dtype) == (100, "")


def test_an_operand_that_is_not_in_the_program_leaves_the_size_open() -> None:
    program = Hlo(PARTITIONS)
    elsewhere = Hlo().add("q", "parameter", array("f32", 64))
    elsewhere.id = 12345
    program.add("c", "all-reduce", array("f32", 64), elsewhere, channel_id=1)
    assert told(program, "c").size_bytes == UNKNOWN


def test_a_wrapper_is_what_it_wraps() -> None:
    program = Hlo(PARTITIONS)
    inner = program.computation()
    taken = program.add("q", "parameter", array("f32", 64), within=inner)
    program.add("rs", "reduce-scatter", array("f32", 8), taken, within=inner, channel_id=1)
    outer = program.add("p", "parameter", array("f32", 64))
    start = program.add("rs-start", "async-start", tuple_of(outer.shape, array("f32", 8)), outer, calls=inner)
    update = program.add("rs-update", "async-update", start.shape, start, calls=inner)
    program.add("rs-done", "async-done", array("f32", 8), update, calls=inner)
    program.add("fused", "fusion", array("f32", 8), outer, calls=inner)
    found = instructions_of(program.content())
    assert {name: one.opcode for name, one in found.items() if name not in "pqrs"} == {
        "rs-start": "reduce-scatter-start", "rs-update": "reduce-scatter-update", "rs-done": "reduce-scatter-done",
        "fused": "fusion",
    }  # fmt: skip
    assert told(program, "rs-start").size_bytes == told(program, "fused").size_bytes == 256
    assert found["rs-done"].message is None


def test_of_several_collectives_in_one_fusion_no_size_is_told() -> None:
    program = Hlo(PARTITIONS)
    inner = program.computation()
    taken = program.add("q", "parameter", array("f32", 64), within=inner)
    for name in ("a", "b"):
        program.add(name, "all-reduce", array("f32", 64), taken, within=inner, channel_id=1)
    program.add("fused", "fusion", array("f32", 64), calls=inner)
    assert told(program, "fused") == Message()


def groups(devices: list[list[int]] | None, opcode: str = "all-reduce", **fields: Any) -> Groups:
    program = Hlo(devices)
    taken = program.add("p", "parameter", array("f32", 64))
    program.add("c", opcode, array("f32", 64), taken, **fields)
    return told(program, "c").groups


FLAT = {"channel_id": 1, "use_global_device_ids": True}


def test_groups_in_every_form() -> None:
    pairs = Groups(2, 4, ((0, 4), (1, 5), (2, 6), (3, 7)))
    listed = grouped((0, 4), (1, 5), (2, 6), (3, 7))
    assert groups(PARTITIONS, collective_device_list=listed, **FLAT) == pairs
    assert groups(PARTITIONS, replica_groups=listed.replica_groups, **FLAT) == pairs
    assert groups(PARTITIONS, collective_device_list=iota(4, 2, (2, 4), (1, 0)), **FLAT) == pairs
    assert groups(PARTITIONS, mesh_axes_replica_group_list=along({"a": 2, "b": 4}, "a"), **FLAT) == pairs
    fours = Groups(4, 2, ((0, 1, 2, 3), (4, 5, 6, 7)))
    assert groups(PARTITIONS, collective_device_list=iota(2, 4, (8,)), **FLAT) == fours
    assert groups(PARTITIONS, mesh_axes_replica_group_list=along({"a": 2, "b": 4}, "b"), **FLAT) == fours
    both = along({"a": 2, "b": 2, "c": 2}, "c", "a")
    assert groups(PARTITIONS, mesh_axes_replica_group_list=both, **FLAT).devices == ((0, 1, 4, 5), (2, 3, 6, 7))
    ordered = along({"a": 2, "b": 2}, "b", device_ids=(0, 2, 1, 3))
    assert groups([[0, 1, 2, 3]], mesh_axes_replica_group_list=ordered, **FLAT).devices == ((0, 2), (1, 3))


def test_no_groups_are_all_devices() -> None:
    assert groups(PARTITIONS, "all-to-all", channel_id=1) == Groups(8, 1, (tuple(range(8)),))
    assert groups(None, channel_id=1) == Groups()


def test_what_the_numbers_of_a_group_mean_depends_on_the_instruction() -> None:
    grid = [[10, 11], [12, 13], [14, 15]]  # three replicas of two partitions
    of_replicas = grouped((0, 2), (1,))
    assert groups(grid, collective_device_list=of_replicas).devices == ((10, 14), (12,), (11, 15), (13,))
    everywhere = groups(grid, collective_device_list=of_replicas, channel_id=1)
    assert everywhere == Groups(0, 2, ((10, 11, 14, 15), (12, 13)))
    by_partition = groups(grid, "all-to-all", collective_device_list=grouped((0, 1)), channel_id=1)
    assert by_partition == Groups(2, 3, ((10, 11), (12, 13), (14, 15)))
    flat = groups(grid, collective_device_list=grouped((0, 1, 2), (3, 4, 5)), **FLAT)
    assert flat.devices == ((10, 11, 12), (13, 14, 15))


def test_without_an_assignment_only_the_size_of_groups_is_known() -> None:
    assert groups(None, collective_device_list=grouped((0, 4), (1, 5)), **FLAT) == Groups(2, 2)
    assert groups(None, collective_device_list=grouped((0, 4), (1,)), **FLAT) == Groups()
    assert groups(None, collective_device_list=grouped((0, 4)), channel_id=1) == Groups()


@pytest.mark.parametrize(
    "fields",
    [
        {"collective_device_list": grouped((0, 8))},
        {"collective_device_list": grouped((0, -1))},
        {"collective_device_list": iota(4, 2, (2, 3))},
        {"collective_device_list": iota(-4, -2, (8,))},
        {"collective_device_list": iota(1 << 40, 1 << 20, (1 << 60,))},
        {"collective_device_list": iota(4, 2, (2, 4), (1, 1))},
        {"mesh_axes_replica_group_list": along({"a": 1 << 40, "b": 1 << 20}, "a")},
        {"mesh_axes_replica_group_list": along({"a": 2, "b": 4}, "a", "a")},
        {"mesh_axes_replica_group_list": along({"a": 2, "b": 4}, "a", device_ids=(0, 1))},
        {"mesh_axes_replica_group_list": along({}, device_ids=(3,))},
    ],
)
def test_groups_that_cannot_be_are_not_told(fields: dict[str, Any]) -> None:
    assert groups(PARTITIONS, **fields, **FLAT) == Groups()


def test_a_part_of_an_axis_is_not_guessed_at() -> None:
    part = along({"a": 8}, "a")
    part.axes[0].sub_axis_info.size = 2
    assert groups(PARTITIONS, mesh_axes_replica_group_list=part, **FLAT) == Groups()


def test_a_damaged_program_has_no_instructions() -> None:
    assert instructions_of(b"\xff\xff") == {}
