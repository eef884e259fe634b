"""Sensors: utilization, memory and power of each device, the host's CPU, and what every rank holds."""

from __future__ import annotations

import math
from dataclasses import dataclass

from textual.strip import Strip

from meshscope.analysis.devices import DeviceField, devices
from meshscope.ui.marks.cells import Line, Piece, left, right, strips, wrapped
from meshscope.ui.marks.sparkline import sparkline
from meshscope.ui.panel import UNSTATED, Frame, Fresh, Panel, note
from meshscope.ui.scene import Scene
from meshscope.units import UNKNOWN, percent, printable, size

# The fields in the order of what people look for first; any other follows by name.
_FIRST = ("utilization_frac", "cpu_frac", "memory_used_bytes", "rss_bytes", "power_w", "temperature_c")
_UNITS = ("_bytes_per_s", "_bytes", "_frac", "_hz", "_w", "_c")


@dataclass(frozen=True)
class Sensors:
    fields: tuple[DeviceField, ...] = ()
    failed: tuple[tuple[str, str, str], ...] = ()
    fresh: Fresh = UNSTATED


def question(scene: Scene) -> Sensors:
    """Every sensor of the run that is looked at."""
    run = scene.run
    if run is None:
        return Sensors()
    found = devices(run)
    newest = max((int(field.time_ns[-1]) for field in found.fields if field.count), default=None)
    at = None if newest is None else newest + run.experiment.t0_unix_ns
    ordered = tuple(sorted(found.fields, key=_order))
    most = max((field.count for field in ordered), default=0)
    return Sensors(ordered, found.failed, Fresh(of=f"{most} readings" if most else "", at_unix_ns=at))


def _order(field: DeviceField) -> tuple[int, str, str]:
    place = _FIRST.index(field.field) if field.field in _FIRST else len(_FIRST)
    return place, field.field, field.device


def draw(answer: Sensors, frame: Frame) -> list[Strip]:
    if not answer.fields:
        return note(_empty(answer), frame)
    name = min(max(len(_label(field)) for field in answer.fields), max(frame.width // 3, 12))
    reasons = _reasons(answer, frame)[: max(frame.height - len(answer.fields), 1)]
    room = max(frame.height - len(reasons), 1)
    shown = answer.fields if len(answer.fields) <= room else answer.fields[: max(room - 1, 1)]
    tall = min(max(room // (len(shown) or 1), 1), 3)
    lines: list[Line] = [line for field in shown for line in _field(field, name, tall, frame)]
    if len(shown) < len(answer.fields):
        lines.append([(f" … {len(answer.fields) - len(shown)} more", "quiet")])
    return strips([*lines, *reasons], frame.width, frame.height, frame.look)


def _field(field: DeviceField, name: int, tall: int, frame: Frame) -> list[Line]:
    """One reading in ``tall`` lines (a blank one among them where there is room), its figures on the last."""
    figure = right(value(field.last, field.field), 9)
    tail = right(f"max {value(field.maximum, field.field)}", 14) if frame.width >= 60 else ""
    room = max(frame.width - name - 2 - len(figure) - len(tail), 4)
    bars = sparkline(field.value, room, frame.look, low=0.0, high=_ceiling(field), height=max(tall - 1, 1))
    lines: list[Line] = [[]] if tall > 2 else []
    for index, bar in enumerate(bars):
        is_last = index == len(bars) - 1
        label = left(_label(field), name) if is_last else " " * name
        figures: list[Piece] = [(figure, "text"), (tail, "quiet")] if is_last else []
        lines.append([(" " + label + " ", "quiet"), *bar, *figures])
    return lines if tall != 2 else [*lines, []]


def _label(field: DeviceField) -> str:
    return printable(f"{field.device} {field_name(field.field)}")


def field_name(field: str) -> str:
    """``memory_used_bytes`` as a person says it: ``memory used``."""
    unit = next((unit for unit in _UNITS if field.endswith(unit)), "")
    return printable(field.removesuffix(unit).replace("_", " "))


def value(number: float, field: str) -> str:
    """A reading in the unit of its field's name."""
    if math.isnan(number):
        return UNKNOWN
    if field.endswith("_bytes_per_s"):
        return f"{size(number)}/s"
    if field.endswith("_bytes"):
        return size(number)
    if field.endswith("_frac"):
        return percent(number)
    if field.endswith("_hz"):
        return f"{number / 1e6:.0f} MHz"
    unit = " W" if field.endswith("_w") else " °C" if field.endswith("_c") else ""
    return f"{number:.0f}{unit}"


def _ceiling(field: DeviceField) -> float:
    """The top of a sparkline: a share goes to 1, anything else to the most that was read."""
    if field.field.endswith("_frac"):
        return max(1.0, field.maximum)
    return field.maximum if field.maximum > 0 else 1.0


def _reasons(answer: Sensors, frame: Frame) -> list[Line]:
    """What could not be read, and why; the same reason is told once."""
    by_why: dict[str, list[str]] = {}
    for device, field, why in answer.failed:
        by_why.setdefault(why, []).append(f"{device} {field_name(field)}")
    lines: list[Line] = []
    for why, names in by_why.items():
        text = f"{', '.join(names[:3])}{', …' if len(names) > 3 else ''}: {why}"
        lines += [[(" " + line, "faint")] for line in wrapped(printable(text), frame.width - 1, 2)]
    return lines[: max(frame.height // 3, 1)]


def _empty(answer: Sensors) -> str:
    if answer.failed:
        device, field, why = answer.failed[0]
        return f"No sensor could be read. {device} {field_name(field)}: {why}"
    return "Fills with the first readings: utilization, memory and power of each device, the host's CPU."


PANEL = Panel(
    name="devices",
    title="devices",
    number=6,
    promise="Utilization, memory and power of each device, the host's CPU, and the memory of every rank's process.",
    question=question,
    draw=draw,
    fresh=lambda answer: answer.fresh,
    depends=lambda scene: (len(scene.run.samples.time_ns), len(scene.run.sensor_failures)) if scene.run else (),
)
