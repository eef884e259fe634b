"""XLA's xplane files (``plugins/profile/<run>/<host>.xplane.pb``): one file is one process, each device a rank.

A step is one program over all devices of the process. Its bounds are the host's (``StepTraceAnnotation``, which the
workload closes once the loss is read) and are the same for every device; what a device did within them is its own.
What the process compiled is the host's, and stands in the window of its first device.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np

from meshscope.kinds import Kind
from meshscope.readers.chrome import CUT_SHORT
from meshscope.readers.reader import Reader
from meshscope.readers.stream import Source
from meshscope.readers.time_bounds import TORN, is_torn
from meshscope.readers.windows import EARLIEST_UNIX_NS, NO_ABSOLUTE_TIME, WORK, extent, step_bounds, step_of
from meshscope.readers.xplane_compiles import compile_rows
from meshscope.readers.xplane_cpu import Marks, host_plane, host_rows, step_marks
from meshscope.readers.xplane_device import device_kind, device_planes, device_rows, device_steps, encloses
from meshscope.readers.xplane_programs import programs
from meshscope.readers.xplane_rows import NO_ROWS, Rows, Tables, joined
from meshscope.readers.xplane_space import NOT_A_PART, Space, space
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
    found = space(b"".join(source.blocks()))
    if source.cut_short:
        found.dropped.setdefault(CUT_SHORT, 1)
    if source.after:
        found.dropped[source.after] = 1
    return windows_of(found, path.name, t0_unix_ns)


def windows_of(found: Space, name: str, t0_unix_ns: int | None) -> tuple[Window, ...]:
    """A window for each device of the planes that did something. ``name`` is the file's."""
    windows = _device_windows(found) or _cpu_windows(found) or (_nothing(found),)
    first_ns = min((window.start_ns for window in windows if len(window.spans)), default=0)
    windows = tuple(w if len(w.spans) else replace(w, start_ns=first_ns, end_ns=first_ns) for w in windows)
    zero_ns, is_absolute = _zero(found, first_ns, t0_unix_ns)
    return tuple(replace(_doubted(w, is_absolute=is_absolute), source=name).shifted(-zero_ns) for w in windows)


def _device_windows(found: Space) -> tuple[Window, ...]:
    tables = Tables()
    host = host_plane(found)
    windows: list[Window] = []
    planes = device_planes(found)
    if twice := [number for number, count in Counter(number for number, _ in planes).items() if count > 1]:
        why = f"several planes are of device {twice[0]}: profiles of several hosts or runs lie in this file"
        return (_nothing(found, why),)
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
        if not windows:
            rows = joined([rows, compile_rows(host, tables)])
        kind = device_kind(plane)
        windows.append(_window(found, rows, tables, marks, number, kind, tuple(cannot_say), plane.dropped))
    return tuple(windows)


def _cpu_windows(found: Space) -> tuple[Window, ...]:
    host = host_plane(found)
    if host is None:
        return ()
    tables = Tables()
    cpu = host_rows(host, tables, programs(found))
    if cpu.devices:
        first = next(iter(cpu.devices))
        cpu.devices[first] = joined([cpu.devices[first], compile_rows(host, tables)])
    cannot_say = (_LOST_PART,) if host.dropped[NOT_A_PART] else ()
    return tuple(
        _window(found, rows, tables, cpu.marks, ordinal, "cpu", cannot_say, cpu.dropped + host.dropped)
        for ordinal, rows in cpu.devices.items()
    )


def _window(
    found: Space,
    rows: Rows,
    tables: Tables,
    marks: Marks,
    device: int,
    kind: str,
    cannot_say: tuple[tuple[str, str], ...],
    dropped: Counter[str],
) -> Window:
    if is_torn(rows.start_ns):
        rows, marks, kind, cannot_say = rows.take(np.empty(0, dtype=np.int64)), [], "none", (TORN,)
    steps, step_ns = step_bounds(marks)
    spans = tables.spans(rows, rank=device, device=device, step=step_of(rows.start_ns, steps, step_ns))
    start_ns, end_ns = extent(spans)
    return Window(
        rank=device,
        device=device,
        rank_from="device",
        framework="jax",
        device_kind=kind,
        start_ns=start_ns,
        end_ns=end_ns,
        steps=tuple(steps.tolist()),
        step_ns=step_ns,
        is_complete=found.is_complete and not dropped[NOT_A_PART],
        spans=spans,
        counts=Counts(found.read, int(np.isin(rows.kind, WORK).sum()), dict(+(found.dropped + dropped)), {}),
        source="",
        cannot_say=cannot_say,
    )


def _nothing(found: Space, why: str = "") -> Window:
    """The window of a file in which no device did anything, or no one can tell which."""
    why = why or f"no operation on any device plane, and none of JAX on CPU (events read: {found.read})"
    lost = sum((plane.dropped for plane in found.planes), Counter[str]())
    window = _window(found, NO_ROWS, Tables(), [], 0, "none", (("breakdown", why),), lost)
    return replace(window, rank_from="order")


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
