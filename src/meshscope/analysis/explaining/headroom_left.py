"""Explains how far devices were from running out of memory: capacity less what was held at the fullest moment."""

from __future__ import annotations

from functools import partial

from meshscope.analysis.explaining.figure import DIFFERENCE, QUOTIENT, SUM, Figure, made
from meshscope.analysis.explaining.number import Asked, Case, Group, Number
from meshscope.analysis.headroom import Headroom, headroom, headroom_doubt
from meshscope.run import Run
from meshscope.units import ranges

_SAID = {
    "free": ("free_bytes", "bytes", "What was left of the memory at the fullest moment."),
    "share": ("frac", "frac", "What was left of the memory at the fullest moment, as a share of all of it."),
    "capacity": ("capacity_bytes", "bytes", "The memory that the ranks share."),
    "held": ("held_bytes", "bytes", "What the ranks' allocators had taken, where something counts it."),
    "others": (
        "others_bytes",
        "bytes",
        "What the device's sensor saw beyond the allocator: contexts, other processes.",
    ),
}


def numbers(run: Run) -> tuple[Number, ...]:
    if not headroom(run):
        return ()
    return tuple(
        Number(
            name=f"headroom.{name}",
            unit=unit,
            definition=said,
            excludes="moments between two readings of a sensor",
            cases=partial(_cases, name=name),
            also=(f"headroom.{field}", *(("headroom",) if name == "free" else ())),
            no_step="it is of the fullest moment of the run",
        )
        for name, (field, unit, said) in _SAID.items()
    )


def _cases(asked: Asked, *, name: str) -> tuple[Case, ...]:
    found = [
        (at, one)
        for at, one in enumerate(headroom(asked.run))
        if asked.rank is None or asked.rank in one.ranks
    ]  # fmt: skip
    if not found:
        why = headroom_doubt(asked.run) or "no memory was measured"
        return (Case("all ranks", None, why=why, rank=asked.rank),)
    return tuple(_case(at, one, name) for at, one in found)


def _case(at: int, one: Headroom, name: str) -> Case:
    of = f"{'rank' if len(one.ranks) == 1 else 'ranks'} {ranges(one.ranks)}"
    figure = _figure(one, name)
    if figure is None:
        return Case(of, None, why="nobody counts it")
    return Case(of, figure, f"headroom[{at}].{_SAID[name][0]}", notes=(f"the memory is {one.of}",))


def _figure(one: Headroom, name: str) -> Figure | None:
    capacity = Figure(one.of, one.capacity_bytes, "bytes")
    if name == "capacity":
        return capacity
    if name in ("held", "others"):
        value = one.held_bytes if name == "held" else one.others_bytes
        return None if value is None else Figure(name, value, "bytes")
    free = made("left", DIFFERENCE, capacity, _used(one), unit="bytes")
    if name == "free":
        return free
    return made("share left", QUOTIENT, free, capacity, unit="frac") if capacity.value else None


def _used(one: Headroom) -> Figure:
    """What was held, told apart where both parts are known and are all of it."""
    used = one.capacity_bytes - one.free_bytes
    if one.held_bytes is None or one.others_bytes is None or one.held_bytes + one.others_bytes != used:
        return Figure("held at the fullest moment", used, "bytes")
    held, others = Figure("by the allocator", one.held_bytes, "bytes"), Figure("by others", one.others_bytes, "bytes")
    return made("held at the fullest moment", SUM, held, others, unit="bytes")


GROUP = Group("headroom", 24, numbers, heads=("headroom",))
