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
            no_rank="a sensor is of a device, which the answer names",
            known_steps=_reported,
            by=("step",),
        )
        for field in fields
        for name, (_, said) in _STATISTICS.items()
    )


def _unit(field: str) -> str:
    unit = next((unit for unit in _UNITS if field.endswith(f"_{unit}")), "")
    return unit.replace("_per_", "/")


def _reported(run: Run) -> set[int]:
    return set(run.steps.step.tolist())


def _cases(asked: Asked, *, field: str, name: str) -> tuple[Case, ...]:
    found = devices(asked.run)
    told = tuple(_case(asked, at, one, name) for at, one in enumerate(found.fields) if one.field == field)
    failed = tuple(Case(device, None, why=why) for device, of, why in found.failed if of == field)
    return told + failed


def _case(asked: Asked, at: int, found: DeviceField, name: str) -> Case:
    values = list(zip(found.time_ns.tolist(), found.value.tolist(), strict=True))
    when = ""
    if asked.step is not None:
        start_ns, end_ns = _bounds(asked.run, asked.step)
        values = [(time_ns, value) for time_ns, value in values if start_ns <= time_ns < end_ns]
        when = f", within step {asked.step}"
        if not values:
            return Case(found.device, None, why=f"it was not read while a rank was in step {asked.step}")
    readings = [Figure(f"at {time_ns / NS_PER_S:.3f} s", value, _unit(found.field)) for time_ns, value in values]
    over = duration(values[-1][0] - values[0][0])
    return Case(
        of=found.device,
        figure=made(f"{name} of {found.field}", _STATISTICS[name][0], *readings, unit=_unit(found.field)),
        json=f"devices[{at}].{name}" if asked.step is None else "",
        notes=(f"{counted(len(values), 'reading')} over {over}{when}",),
    )


def _bounds(run: Run, step: int) -> tuple[int, int]:
    """From the first rank's beginning of a step to the last one's end."""
    mine = run.steps.where(run.steps.step == step)
    return int(mine.start_ns.min()), int(mine.end_ns.max())


GROUP = Group("devices", 11, numbers)
