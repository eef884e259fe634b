"""Sensors: utilization, memory and power of each device, the host's CPU, and what every rank holds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from textual.strip import Strip

from meshscope.analysis.devices import DeviceField, DeviceGroup, device_groups, devices
from meshscope.run import Run
from meshscope.ui.about import devices as about
from meshscope.ui.marks.cells import Line, Piece, clip, left, longest, middle_out, right, strips, wrapped
from meshscope.ui.marks.cited import Cited
from meshscope.ui.marks.sparkline import sparkline
from meshscope.ui.panel import UNSTATED, Frame, Fresh, Panel, note
from meshscope.ui.scene import Scene
from meshscope.units import UNKNOWN, counted, percent, printable, reach, size, size_unit

# The fields in the order of what people look for first, and what they are called where room is short; any other
# follows by its own name. A capacity is no reading of its own: it is the top of the field it belongs to.
_NAMES = {
    "utilization_frac": "util",
    "memory_used_bytes": "memory",
    "power_w": "power",
    "cpu_cores": "cpu",
    "rss_bytes": "rss",
    "temperature_c": "temp",
    "sm_clock_hz": "clock",
}
_CAPACITIES = {"memory_total_bytes": "memory_used_bytes", "power_limit_w": "power_w"}
_WRITTEN: dict[str, Callable[[float], str]] = {
    "_bytes_per_s": lambda number: f"{size(number)}/s",
    "_bytes": size,
    "_cores": lambda number: f"{number:.2f} cores",
    "_frac": percent,
    "_hz": lambda number: f"{number / 1e6:.0f} MHz",
    "_w": lambda number: f"{number:.0f} W",
    "_c": lambda number: f"{number:.0f} °C",
}


_BUSY, _USED, _RESIDENT = "utilization_frac", "memory_used_bytes", "rss_bytes"
_HOST = "host"
_TALLEST = 9
_TALL = 5
"""From here on there is room to say what the readings come to."""

_FIGURE, _TAIL, _REACH = 11, 16, 24
_SLICES = 240
_FURTHEST = (
    " a line of many: their mean, the median now; below it those furthest from that",
    " of many: mean, median now, furthest",
)


@dataclass(frozen=True)
class Sensors:
    """``capacity`` maps (device, field) to the most that the field can reach, where a device tells."""

    fields: tuple[DeviceField, ...] = ()
    capacity: dict[tuple[str, str], float] = field(default_factory=dict)
    failed: tuple[tuple[str, str, str], ...] = ()
    fresh: Fresh = UNSTATED
    groups: tuple[DeviceGroup, ...] = ()


def question(scene: Scene) -> Sensors:
    """Every sensor of the run that is looked at."""
    run = scene.run
    if run is None:
        return Sensors()
    found = devices(run)
    newest = max((int(reading.time_ns[-1]) for reading in found.fields if reading.count), default=None)
    # A log without a zone does not tell when it was made.
    at = None if newest is None or not run.experiment.t0_unix_ns else newest + run.experiment.t0_unix_ns
    capacity = {(r.device, _CAPACITIES[r.field]): r.last for r in found.fields if r.field in _CAPACITIES}
    called = _called(found.fields, run)
    named = [replace(r, device=called.get(r.device, r.device)) for r in found.fields if r.field not in _CAPACITIES]
    shown = tuple(sorted(named, key=_order))
    most = max((reading.count for reading in shown), default=0)
    fresh = Fresh(of=counted(most, "reading") if most else "", at_unix_ns=at)
    return Sensors(shown, capacity, found.failed, fresh, device_groups(shown, _SLICES))


def _called(fields: tuple[DeviceField, ...], run: Run) -> dict[str, str]:
    """The one process that runs every rank, as JAX's does, is not called after its first rank."""
    ranks = {reading.device for reading in fields if reading.device.startswith("rank ")}
    is_one = len(ranks) == 1 and run.experiment.framework == "jax"
    return dict.fromkeys(ranks, "process") if is_one else {}


def _order(reading: DeviceField) -> tuple[int, str, str]:
    names = list(_NAMES)
    place = names.index(reading.field) if reading.field in _NAMES else len(names)
    return place, reading.field, reading.device


def draw(answer: Sensors, frame: Frame) -> list[Strip]:
    if not answer.fields:
        return note(_empty(answer), frame)
    said: list[Line] = [[(" " + reading(answer, frame.width - 1), "text")]] if frame.height >= _TALL else []
    lines = _sensors(answer, replace(frame, height=frame.height - len(said)))
    return strips([*said, *lines], frame.width, frame.height, frame.look)


def reading(answer: Sensors, width: int) -> str:
    """How busy devices were in the mean, how full memory was at most, and what the ranks' processes hold."""
    words: list[str] = []
    for told in (_busy(answer), _fullest(answer), _held(answer)):
        if told and (not words or len("; ".join([*words, told])) <= width):
            words.append(told)
    said = "; ".join(words) or f"{counted(len(answer.fields), 'sensor')} of {_named_devices(answer)}"
    return clip(said[:1].upper() + said[1:], width)


def _busy(answer: Sensors) -> str:
    """Of accelerators where there are any, else of the host."""
    found = [one for one in answer.fields if one.field == _BUSY]
    found = [one for one in found if one.device != _HOST] or found
    if not found:
        return ""
    mean = sum(one.mean for one in found) / len(found)
    if len(found) == 1:
        return printable(f"{found[0].device} {percent(mean)} busy in the mean")
    least = min(found, key=lambda one: one.mean)
    return printable(
        f"{len(found)} devices {percent(mean)} busy in the mean, {least.device} least ({percent(least.mean)})"
    )


def _fullest(answer: Sensors) -> str:
    """The memory that came nearest to its end."""
    known = [(one, _capacity(one, answer)) for one in answer.fields if one.field == _USED]
    known = [(one, capacity) for one, capacity in known if capacity > 0]
    known = [(one, capacity) for one, capacity in known if one.device != _HOST] or known
    if not known:
        return ""
    fullest, capacity = max(known, key=lambda told: told[0].maximum / told[1])
    unit = size_unit((fullest.maximum, capacity))
    of = f"{unit.figure(fullest.maximum)} of {unit.written(capacity)} ({percent(fullest.maximum / capacity)})"
    which = f"fullest {fullest.device}" if len(known) > 1 else f"{fullest.device} memory at most"
    return printable(f"{which} {of}")


def _held(answer: Sensors) -> str:
    """What the processes of ranks hold together now."""
    found = [one for one in answer.fields if one.field == _RESIDENT]
    if not found:
        return ""
    whose = f"{len(found)} ranks hold" if len(found) > 1 else f"{found[0].device} holds"
    return printable(f"{whose} {size(sum(one.last for one in found))}")


def _named_devices(answer: Sensors) -> str:
    names = list(dict.fromkeys(one.device for one in answer.fields))
    return printable(names[0]) if len(names) == 1 else counted(len(names), "device")


def _sensors(answer: Sensors, frame: Frame) -> list[Line]:
    """A line for each reading, and what could not be read; where they are too many, fields of many devices together."""
    reasons = _reasons(answer, frame)[: max(frame.height - len(answer.fields), 1)]
    room = max(frame.height - len(reasons), 1)
    if len(answer.fields) > room and any(len(group.members) > 1 for group in answer.groups):
        return [*_grouped(answer, room, frame), *reasons]
    shown = answer.fields if len(answer.fields) <= room else answer.fields[: max(room - 1, 1)]
    tall = min(max(room // (len(shown) or 1), 1), _TALLEST)
    name = _gutter([_label(reading) for reading in shown], frame)
    lines: list[Line] = [
        line for reading in shown for line in _field(reading, _capacity(reading, answer), name, tall, frame)
    ]
    if len(shown) < len(answer.fields):
        lines.append([(f" … {len(answer.fields) - len(shown)} more", "quiet")])
    return [*lines, *reasons]


def _gutter(names: Sequence[str], frame: Frame) -> int:
    return min(max(len(name) for name in names), max(frame.width // 3, 12))


def _grouped(answer: Sensors, room: int, frame: Frame) -> list[Line]:
    """A line for each field of many devices, and below it those whose newest reading is furthest from the others'."""
    groups = answer.groups if len(answer.groups) <= room else answer.groups[: max(room - 1, 1)]
    each = [(group, group.members[:most]) for group, most in zip(groups, _shares(groups, room - 1), strict=True)]
    name = _gutter([_title(group) for group in groups] + [f" {_label(one)}" for _, most in each for one in most], frame)
    lines: list[Line] = []
    for group, furthest in each:
        lines.append(_group(group, answer, name, frame))
        for reading in furthest:
            lines += _field(reading, _capacity(reading, answer), name, 1, frame, indent=" ", beside=_REACH)
    if len(groups) < len(answer.groups):
        return [*lines, [(f" … {len(answer.groups) - len(groups)} more fields", "quiet")]]
    if any(furthest for _, furthest in each) and len(lines) < room:
        lines.append([(longest(_FURTHEST, frame.width), "faint")])
    return lines


def _shares(groups: Sequence[DeviceGroup], room: int) -> list[int]:
    """How many devices of each group are shown by themselves: the lines that are left, in turn; none that is alike."""
    wanted = [_apart(group) for group in groups]
    given = [0] * len(groups)
    left = room - len(groups)
    while left > 0 and any(given[at] < wanted[at] for at in range(len(groups))):
        for at in range(len(groups)):
            if given[at] < wanted[at] and left > 0:
                given[at] += 1
                left -= 1
    return given


def _apart(group: DeviceGroup) -> int:
    """How many are at least half as far from the median as the furthest, and by enough to be seen in the figure."""
    if len(group.members) == 1:
        return 0
    furthest = abs(group.members[0].last - group.median)
    middle = value(group.median, group.field)
    return sum(
        2 * abs(one.last - group.median) >= furthest and value(one.last, group.field) != middle for one in group.members
    )


def _title(group: DeviceGroup) -> str:
    if len(group.members) == 1:
        return _label(group.members[0])
    return printable(f"{len(group.members)} {group.kind}s {_NAMES.get(group.field) or field_name(group.field)}")


def _group(group: DeviceGroup, answer: Sensors, name: int, frame: Frame) -> Line:
    """The mean over devices as it went, and where the newest readings lie."""
    if len(group.members) == 1:
        (reading,) = group.members
        return _field(reading, _capacity(reading, answer), name, 1, frame, beside=_REACH)[0]
    figure = right(value(group.median, group.field), _FIGURE)
    least_to_most = reach(value(group.minimum, group.field), value(group.maximum, group.field))
    tail = right(least_to_most, _REACH) if frame.width >= 60 else ""
    room = max(frame.width - name - 2 - len(figure) - len(tail), 4)
    high = max(_top(reading) for reading in group.members)
    (bar,) = sparkline(group.value, room, frame.look, low=0.0, high=high)
    return [(" " + left(_title(group), name) + " ", "text"), *bar, (figure, "text"), (tail, "quiet")]


def _field(
    reading: DeviceField, capacity: float, name: int, tall: int, frame: Frame, *, indent: str = "", beside: int = _TAIL
) -> list[Line]:
    """One reading in ``tall`` lines, the last of them blank where there is more than one."""
    figure = right(value(reading.last, reading.field), _FIGURE)
    most = f"of {value(capacity, reading.field)}" if not math.isnan(capacity) else ""
    tail = right(most or f"max {value(reading.maximum, reading.field)}", beside) if frame.width >= 60 else ""
    room = max(frame.width - name - 2 - len(figure) - len(tail), 4)
    high = _top(reading) if math.isnan(capacity) else capacity
    bars = sparkline(reading.value, room, frame.look, low=0.0, high=high, height=max(tall - 1, 1))
    lines: list[Line] = []
    for index, bar in enumerate(bars):
        is_last = index == len(bars) - 1
        label = left(indent + _fitted(_label(reading), name - len(indent)), name) if is_last else " " * name
        figures: list[Piece] = (
            [
                (figure, Cited("text", f"devices.{reading.field}.last")),
                (tail, "quiet" if most else Cited("quiet", f"devices.{reading.field}.max")),
            ]
            if is_last
            else []
        )
        lines.append([(" " + label + " ", "quiet"), *bar, *figures])
    return [*lines, []] if tall > 1 else lines


def _capacity(reading: DeviceField, answer: Sensors) -> float:
    return answer.capacity.get((reading.device, reading.field), math.nan)


def _label(reading: DeviceField) -> str:
    return printable(f"{reading.device} {_NAMES.get(reading.field) or field_name(reading.field)}")


def _fitted(label: str, width: int) -> str:
    """Fields of one device differ at the end of their names: where one is too long, its middle gives way."""
    return longest((label, label.replace(" memory ", " mem "), middle_out(label, width)), width)


def field_name(name: str) -> str:
    """``memory_used_bytes`` as a person says it: ``memory used``."""
    unit = next((unit for unit in _WRITTEN if name.endswith(unit)), "")
    return printable(name.removesuffix(unit).replace("_", " "))


def value(number: float, name: str) -> str:
    """A reading in the unit of its field's name."""
    if math.isnan(number):
        return UNKNOWN
    written = next((write for unit, write in _WRITTEN.items() if name.endswith(unit)), None)
    return written(number) if written else f"{number:.0f}"


def _top(reading: DeviceField) -> float:
    """The top of a sparkline: a share goes to 1, anything else to the most that was read."""
    if reading.field.endswith("_frac"):
        return max(1.0, reading.maximum)
    return reading.maximum if reading.maximum > 0 else 1.0


def _reasons(answer: Sensors, frame: Frame) -> list[Line]:
    """What could not be read, and why; the same reason is told once."""
    by_why: dict[str, list[str]] = {}
    for device, name, why in answer.failed:
        by_why.setdefault(why, []).append(f"{device} {field_name(name)}")
    lines: list[Line] = []
    for why, names in by_why.items():
        text = f"{', '.join(names[:3])}{', …' if len(names) > 3 else ''}: {why}"
        lines += [[(" " + line, "faint")] for line in wrapped(printable(text), frame.width - 1, 2)]
    return lines[: max(frame.height // 3, 1)]


def _empty(answer: Sensors) -> str:
    if answer.failed:
        device, name, why = answer.failed[0]
        return f"No sensor could be read. {device} {field_name(name)}: {why}"
    return "Fills with the first readings: utilization, memory and power of each device, the host's CPU."


PANEL = Panel(
    name="devices",
    title="devices",
    number=6,
    promise="Utilization, memory and power of each device, the host's CPU, and the memory of every rank's process.",
    question=question,
    draw=draw,
    fresh=lambda answer: answer.fresh,
    of=("recording", "traces"),
    suits=lambda scene: scene.is_recorded or (scene.run is not None and bool(len(scene.run.samples.time_ns))),
    depends=lambda scene: (len(scene.run.samples.time_ns), len(scene.run.sensor_failures)) if scene.run else (),
    help=about.HELP,
    data=lambda answer: about.sensors(answer.fields, answer.capacity),
)
