"""Columns of a log without a heading: named as far as the cells tell, numbered where they do not.

Two columns of MiB whose sum stays the same are what is used and what is free, and the one that is fuller while the GPU
works is what is used. Of several percentages, one is the GPU's utilization when it is never exceeded by the others and
grows with the power drawn: a memory is read only while kernels or copies run. Watts that change are the power drawn (a
limit does not), and a bare number between 10 and 120 that changes is a temperature, the one that has no unit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from meshscope.readers import device_log_fields as fields
from meshscope.readers.device_log_fields import Column, Values
from meshscope.records import Doubt

_SUM_TOLERANCE_BYTES = 2 * 1024 * 1024
_MIXED_FRAC = 0.01
_FEWEST_BUSY = 3


def told(roles: Sequence[str], columns: Sequence[Sequence[str]]) -> tuple[list[Column | None], list[Doubt]]:
    """A Column for every column of numbers (None for text), and what could not be told of which."""
    units = [_unit(cells) if not role else "" for role, cells in zip(roles, columns, strict=True)]
    plain = {
        at: fields.column(f"column_{at + 1}{fields.suffix_of(units[at])}", cells, units[at])
        for at, cells in enumerate(columns)
        if not roles[at]
    }
    names = _names({at: column.value for at, column in plain.items()}, units)
    found = [_as(plain[at], names.get(at, "")) if at in plain else None for at in range(len(columns))]
    return found, _unsaid(plain, names, units)


def _unit(cells: Sequence[str]) -> str:
    return next((unit for cell in cells if (unit := fields.unit_of(cell))), "")


def _as(column: Column, name: str) -> Column:
    return Column(name, column.value, column.why) if name else column


def _names(values: dict[int, Values], units: list[str]) -> dict[int, str]:
    of = {unit: [at for at in values if units[at] == unit] for unit in ("%", "MiB", "W", "")}
    names = {}
    drawn = [at for at in of["W"] if _changes(values[at])]
    if len(drawn) == 1:
        names[drawn[0]] = "power_w"
    warm = [at for at in of[""] if _is_temperature(values[at])]
    if len(warm) == 1:
        names[warm[0]] = "temperature_c"
    busiest = _utilization(of["%"], values, values[drawn[0]] if len(drawn) == 1 else None)
    if busiest is not None:
        names[busiest] = "utilization_frac"
    load = values[busiest] if busiest is not None else values[drawn[0]] if len(drawn) == 1 else None
    return names | _memory(of["MiB"], values, load)


def _changes(value: Values) -> bool:
    known = value[np.isfinite(value)]
    return len(known) > 1 and float(np.ptp(known)) > 0


def _is_temperature(value: Values) -> bool:
    known = value[np.isfinite(value)]
    return _changes(value) and float(known.min()) >= 10 and float(known.max()) <= 120


def _utilization(shares: list[int], values: dict[int, Values], power: Values | None) -> int | None:
    """The share that no other exceeds (but for readings taken while it changes), and that goes with the power."""
    known = [at for at in shares if _changes(values[at]) and power is not None and _grow_together(values[at], power)]
    leaders = [at for at in known if all(_leads(values[at], values[other]) for other in shares if other != at)]
    return leaders[0] if len(leaders) == 1 else None


def _leads(value: Values, other: Values) -> bool:
    active = (value > 0) | (other > 0)
    return bool(active.any()) and float((other > value)[active].mean()) <= max(_MIXED_FRAC, 2 / active.sum())


def _grow_together(value: Values, load: Values) -> bool:
    """Whether one is larger where the other is: more than half of the load above its least, enough of both."""
    both = np.isfinite(value) & np.isfinite(load)
    value, load = value[both], load[both]
    if len(load) < 2 * _FEWEST_BUSY:
        return False
    busy = load > (load.min() + load.max()) / 2
    if busy.sum() < _FEWEST_BUSY or (~busy).sum() < _FEWEST_BUSY:
        return False
    return float(value[busy].mean()) > float(value[~busy].mean())


def _memory(sizes: list[int], values: dict[int, Values], load: Values | None) -> dict[int, str]:
    """Total where it never changes and is the sum or more; used and free where they add up to one number."""
    moving = [at for at in sizes if _changes(values[at])]
    names: dict[int, str] = {}
    if len(moving) == 2:
        first, second = moving
        total = values[first] + values[second]
        if float(np.nanmax(total) - np.nanmin(total)) <= _SUM_TOLERANCE_BYTES and load is not None:
            used = next((at for at in moving if _grow_together(values[at], load)), None)
            if used is not None:
                names = {used: "memory_used_bytes", first if used == second else second: "memory_free_bytes"}
    elif len(moving) == 1 and load is not None and _grow_together(values[moving[0]], load):
        names = {moving[0]: "memory_used_bytes"}
    fixed = [at for at in sizes if at not in moving]
    most = max((float(np.nanmax(values[at])) for at in moving), default=0.0)
    if len(fixed) == 1 and names and float(np.nanmax(values[fixed[0]])) >= most:
        names[fixed[0]] = "memory_total_bytes"
    return names


def _unsaid(plain: dict[int, Column], names: dict[int, str], units: list[str]) -> list[Doubt]:
    by_cells = ", ".join(f"{name} (column {at + 1})" for at, name in sorted(names.items()))
    said = [("names of columns", f"the log has no heading; told by their cells: {by_cells}")] if names else []
    for at, column in plain.items():
        if at not in names:
            unit = f" (in {units[at]})" if units[at] else ""
            said.append(
                (column.field, f"the log has no heading, and the cells do not tell what column {at + 1}{unit} is")
            )
    return said
