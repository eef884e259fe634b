"""Explains the readings of devices: how many there were, and what their mean and their most are made of."""

from __future__ import annotations

from functools import partial

from meshscope.analysis.devices import DeviceField, devices
from meshscope.analysis.explaining.figure import LARGEST, LAST, MEAN, Figure, made
from meshscope.analysis.explaining.number import Asked, Case, Group, Number
from meshscope.run import Run
from meshscope.units import NS_PER_S, counted, duration

_STATISTICS = {
    "mean": (MEAN, "The mean of the readings of FIELD"),
    "max": (LARGEST, "The largest of the readings of FIELD"),
    "last": (LAST, "The newest reading of FIELD"),
}
_UNITS = ("bytes_per_s", "bytes", "frac", "cores", "hz", "w", "c")
_EXCLUDES = "what happens between two readings, and readings that failed"


def numbers(run: Run) -> tuple[Number, ...]:
    fields = dict.fromkeys(found.field for found in devices(run).fields)
    return tuple(
        Number(
            name=f"devices.{field}.{name}",
            unit=_unit(field),
            definition=f"{said.replace('FIELD', field)}, for each device that has it.",
            excludes=_EXCLUDES,
            cases=partial(_cases, field=field, name=name),
            also=(f"devices.{field}",) if name == "last" else (),
            by=(),
        )
        for field in fields
        for name, (_, said) in _STATISTICS.items()
    )


def _unit(field: str) -> str:
    unit = next((unit for unit in _UNITS if field.endswith(f"_{unit}")), "")
    return unit.replace("_per_", "/")


def _cases(asked: Asked, *, field: str, name: str) -> tuple[Case, ...]:
    found = devices(asked.run)
    told = tuple(_case(at, one, name) for at, one in enumerate(found.fields) if one.field == field)
    failed = tuple(Case(device, None, why=why) for device, of, why in found.failed if of == field)
    return told + failed


def _case(at: int, found: DeviceField, name: str) -> Case:
    values = zip(found.time_ns.tolist(), found.value.tolist(), strict=True)
    readings = [Figure(f"at {time_ns / NS_PER_S:.3f} s", value, _unit(found.field)) for time_ns, value in values]
    over = duration(int(found.time_ns[-1]) - int(found.time_ns[0]))
    return Case(
        of=found.device,
        figure=made(f"{name} of {found.field}", _STATISTICS[name][0], *readings, unit=_unit(found.field)),
        json=f"devices[{at}].{name}",
        notes=(f"{counted(found.count, 'reading')} over {over}",),
    )


GROUP = Group("devices", 11, numbers)
