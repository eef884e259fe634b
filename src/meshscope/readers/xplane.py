"""XLA's xplane files (``plugins/profile/<run>/<host>.xplane.pb``): one file is one process, each device a rank.

A step is one program over all devices of the process. Its bounds are the host's (``StepTraceAnnotation``, which the
workload closes once the loss is read) and are the same for every device; what a device did within them is its own.
What the process compiled is the host's, and stands in the window of its first device.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from meshscope.kinds import Kind, is_any
from meshscope.readers.damage import CUT_SHORT
from meshscope.readers.reader import Reader
from meshscope.readers.stream import Source
from meshscope.readers.time_bounds import TORN, is_torn
from meshscope.readers.windows import EARLIEST_UNIX_NS, NO_ABSOLUTE_TIME, WORK, extent, step_bounds, step_of
from meshscope.readers.xplane_compiles import compile_rows
from meshscope.readers.xplane_content import content_of
from meshscope.readers.xplane_cpu import Marks, host_plane, host_rows, step_marks
from meshscope.readers.xplane_damage import NOT_A_PART
from meshscope.readers.xplane_device import device_kind, device_planes, device_rows, device_steps, encloses
from meshscope.readers.xplane_programs import programs
from meshscope.readers.xplane_rows import NO_ROWS, Rows, Tables, joined, spans_of
from meshscope.readers.xplane_space import Space, space
from meshscope.readers.xplane_unsaid import cpu_why, has_several_hosts
from meshscope.spans import Counts, Window
from meshscope.units import counted

_NO_WAIT = (
    "wait_ns",
    "a collective includes the waiting for peers; telling it apart needs the same one on all ranks",
)
_LOST_PART = ("hidden_ns", "a part of the device's plane is damaged, and what it held is missing")
_NO_SIZE = ("size_bytes", "the file holds no compiled program that tells the sizes of its collectives")
_PLANE_HEAD = re.compile(rb"\A\x0a[\x80-\xff]*[\x00-\x7f](?:\x08|\x12|\x1a|\x22|\x2a|\x32|\Z)", re.DOTALL)


def sniff(head: bytes) -> bool:
    """A length-delimited first field that begins like a plane (its id or its name)."""
    return _PLANE_HEAD.match(head) is not None


def read(path: Path, *, t0_unix_ns: int | None = None, device_kind: str = "") -> tuple[Window, ...]:
    """See :class:`meshscope.readers.reader.Read`. The planes say what kind of device they are of."""
    source = Source(path)
    with content_of(source) as content:
        found = space(content)
        if source.cut_short:
            found.dropped.setdefault(CUT_SHORT, 1)
        if source.after:
            found.dropped[source.after] = 1
        return windows_of(found, path.name, t0_unix_ns)


def windows_of(found: Space, name: str, t0_unix_ns: int | None) -> tuple[Window, ...]:
    """A window for each device of the planes that did something. ``name`` is the file's."""
    devices = _devices(found) or _cpus(found) or [_nothing(found)]
    first_ns = min((extent(device.rows)[0] for device in devices if len(device.rows)), default=0)
    zero_ns, is_absolute = _zero(found, first_ns, t0_unix_ns)
    windows = (_window(found, device, first_ns, zero_ns) for device in devices)
    return tuple(replace(_doubted(window, is_absolute=is_absolute), source=name) for window in windows)


@dataclass(frozen=True)
class _Device:
    """What one device did, times as the file counts them, before the file's zero is known."""

    rows: Rows
    tables: dict[str, tuple[str, ...]]
    marks: Marks
    number: int
    kind: str
    cannot_say: tuple[tuple[str, str], ...]
    dropped: Counter[str]
    rank_from: str = "device"


def _devices(found: Space) -> list[_Device]:
    tables = Tables()
    host = host_plane(found)
    devices: list[_Device] = []
    planes = device_planes(found)
    if twice := [number for number, count in Counter(number for number, _ in planes).items() if count > 1]:
        why = f"several planes are of device {twice[0]}: profiles of several hosts or runs lie in this file"
        return [_nothing(found, why)]
    inside = programs(found, (number for number, _ in planes))
    host_marks = step_marks(host) if host and planes else []
    for number, plane in planes:
        rows = device_rows(plane, number, tables, inside)
        marks = device_steps(plane) or host_marks
        cannot_say = [_NO_WAIT]
        if loops := encloses(rows, tuple(tables.names)):
            what = "operation counts" if loops == 1 else "operations count"
            why = f"{loops} while, conditional or call {what} as compute from beginning to end"
            cannot_say.append(("hidden_ns", why))
        if plane.dropped[NOT_A_PART]:
            cannot_say.append(_LOST_PART)
        if not devices and len(compiled := compile_rows(host, tables)):
            rows = joined([rows, compiled])
        device = _Device(rows, tables.said(), marks, number, device_kind(plane), tuple(cannot_say), plane.dropped)
        devices.append(_untorn(device))
    return devices


def _cpus(found: Space) -> list[_Device]:
    host = host_plane(found)
    if host is None or has_several_hosts(found):
        return []
    tables = Tables()
    cpu = host_rows(host, tables, programs(found))
    if cpu.devices and len(compiled := compile_rows(host, tables)):
        first = next(iter(cpu.devices))
        cpu.devices[first] = joined([cpu.devices[first], compiled])
    cannot_say = (_LOST_PART,) if host.dropped[NOT_A_PART] else ()
    dropped = cpu.dropped + host.dropped
    return [
        _untorn(_Device(rows, tables.said(), cpu.marks, ordinal, "cpu", cannot_say, dropped))
        for ordinal, rows in cpu.devices.items()
    ]


def _untorn(device: _Device) -> _Device:
    """Nothing of a device whose times lie in parts of which none is the larger."""
    if not is_torn(device.rows.start_ns):
        return device
    return replace(device, rows=NO_ROWS, marks=[], kind="none", cannot_say=(TORN,))


def _nothing(found: Space, why: str = "") -> _Device:
    """What stands for a file in which no device did anything, or no one can tell which."""
    why = (
        why or cpu_why(found) or f"no operation on any device plane, and none of JAX on CPU (events read: {found.read})"
    )
    lost = sum((plane.dropped for plane in found.planes), Counter[str]())
    return _Device(NO_ROWS, Tables().said(), [], 0, "none", (("breakdown", why),), lost, rank_from="order")


def _window(found: Space, device: _Device, first_ns: int, zero_ns: int) -> Window:
    """The window of a device, its times counted from ``zero_ns``. The device's rows are used up."""
    rows = device.rows
    if zero_ns and len(rows):
        for column in (rows.start_ns, rows.end_ns):
            np.subtract(column, zero_ns, out=column)
    marks = [(number, start_ns - zero_ns, end_ns - zero_ns) for number, start_ns, end_ns in device.marks]
    steps, step_ns = step_bounds(marks)
    spans = spans_of(rows, device.tables, device=device.number, step=step_of(rows.start_ns, steps, step_ns))
    start_ns, end_ns = extent(spans) if len(rows) else (first_ns - zero_ns, first_ns - zero_ns)
    return Window(
        rank=device.number,
        device=device.number,
        rank_from=device.rank_from,
        framework="jax",
        device_kind=device.kind,
        start_ns=start_ns,
        end_ns=end_ns,
        steps=tuple(steps.tolist()),
        step_ns=step_ns,
        is_complete=found.is_complete and not device.dropped[NOT_A_PART],
        spans=spans,
        counts=Counts(found.read, int(is_any(rows.kind, WORK).sum()), dict(+(found.dropped + device.dropped)), {}),
        source="",
        cannot_say=device.cannot_say,
    )


def _zero(found: Space, first_ns: int, t0_unix_ns: int | None) -> tuple[int, bool]:
    """What to take from the file's own times, and whether it knows when it was made.

    Lines count from the profiler's start, whose unix time is a stat of its own; some exporters count from 1970.
    """
    if first_ns >= EARLIEST_UNIX_NS:
        return t0_unix_ns or 0, True
    if found.start_unix_ns >= EARLIEST_UNIX_NS:
        return (t0_unix_ns or 0) - found.start_unix_ns, True
    return first_ns, False


def _doubted(window: Window, *, is_absolute: bool) -> Window:
    """Without a collective nothing is doubtful about one."""
    is_one = window.spans.kind == Kind.COLLECTIVE
    has_any = bool(is_one.any())
    doubts = [doubt for doubt in window.cannot_say if has_any or doubt != _NO_WAIT]
    unsized = int((window.spans.size_bytes[is_one] < 0).sum())
    if unsized:
        doubts.append(_NO_SIZE if unsized == is_one.sum() else _some_unsized(unsized, int(is_one.sum())))
    if not is_absolute:
        doubts.append(NO_ABSOLUTE_TIME)
    return replace(window, cannot_say=tuple(doubts), has_unix_time=is_absolute)


def _some_unsized(unsized: int, count: int) -> tuple[str, str]:
    return "size_bytes", f"of {unsized} of {counted(count, 'collective')} no program in the file tells the size"


READER = Reader(format="xplane", suffixes=(".xplane.pb",), sniff=sniff, read=read)
