"""Small native traces, made by hand."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from meshscope.readers.xplane_messages import message

UNIX_NS = 1_790_000_000_000_000_000
"""A wall time for made traces."""

Event = dict[str, Any]


def span(name: str, start_us: float, dur_us: float, *, cat: str = "cpu_op", tid: Any = 1, **args: Any) -> Event:
    return {"ph": "X", "cat": cat, "name": name, "pid": 7, "tid": tid, "ts": start_us, "dur": dur_us, "args": args}


def kernel(name: str, start_us: float, dur_us: float, *, stream: int = 7, device: int = 0, **args: Any) -> Event:
    return span(name, start_us, dur_us, cat="kernel", tid=stream, stream=stream, device=device, **args)


def step(number: int, start_us: float, dur_us: float) -> Event:
    return span(f"ProfilerStep#{number}", start_us, dur_us, cat="user_annotation")


def thread_name(tid: Any, name: str) -> Event:
    return {"ph": "M", "name": "thread_name", "pid": 7, "tid": tid, "ts": 0, "args": {"name": name}}


def memory(time_us: float, total_bytes: int, *, device_type: int = 0) -> Event:
    args = {"Bytes": 1, "Total Allocated": total_bytes, "Device Type": device_type, "Device Id": -1}
    return {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 7, "tid": 1, "ts": time_us, "args": args}


def write_kineto(
    path: Path, events: list[Event], *, rank: int | None = 0, base_ns: int | None = UNIX_NS, **around: Any
) -> Path:
    """A Kineto file whose times count from UNIX_NS; ``rank`` None leaves distributedInfo out. Packed if named .gz."""
    head: dict[str, Any] = {"schemaVersion": 1, "record_shapes": 1, **around}
    if rank is not None:
        head["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": 2}
    if base_ns is not None:
        head["baseTimeNanoseconds"] = base_ns
    text = json.dumps(head | {"traceEvents": events}).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text) if path.name.endswith(".gz") else text)
    return path


Line = tuple[str, list[tuple[str, int, int, dict[str, Any]]]]
"""A line's name and its events: name, start ps, duration ps, stats."""


class XSpace:
    """An xplane file in the making."""

    def __init__(self) -> None:
        self._planes: list[Any] = []

    def plane(
        self, name: str, lines: list[Line], *, stats: dict[str, Any] | None = None, timestamp_ns: int = 0
    ) -> XSpace:
        plane = message("Plane")(name=name.encode())
        events: dict[str, int] = {}
        numbers: dict[str, int] = {}
        for line_name, drawn in lines:
            line = plane.lines.add(name=line_name.encode(), timestamp_ns=timestamp_ns)
            for event_name, start_ps, duration_ps, event_stats in drawn:
                number = events.setdefault(event_name, len(events) + 1)
                event = line.events.add(metadata_id=number, offset_ps=start_ps, duration_ps=duration_ps)
                self._stats(event, event_stats, numbers)
        self._stats(plane, stats or {}, numbers)
        for event_name, number in events.items():
            plane.event_metadata.add(key=number).value.name = event_name.encode()
        for stat_name, number in numbers.items():
            plane.stat_metadata.add(key=number).value.name = stat_name.encode()
        self._planes.append(plane)
        return self

    @staticmethod
    def _stats(owner: Any, stats: dict[str, Any], numbers: dict[str, int]) -> None:
        for name, value in stats.items():
            stat = owner.stats.add(metadata_id=numbers.setdefault(name, len(numbers) + 1))
            if isinstance(value, int):
                stat.int64_value = value
            else:
                stat.str_value = value.encode()

    def programs(self, programs: dict[int, dict[str, str]], *, damaged: tuple[int, ...] = ()) -> XSpace:
        """The plane that holds compiled programs: by program id, each instruction's opcode."""
        plane = message("Plane")(name=b"/host:metadata")
        plane.stat_metadata.add(key=1).value.name = b"Hlo Proto"
        plane.stat_metadata.add(key=2).value.name = b"program_id"
        for key, (number, instructions) in enumerate(programs.items(), 1):
            program = message("Program")()
            program.module.name = b"jit_step"
            computation = program.module.computations.add()
            for name, opcode in instructions.items():
                computation.instructions.add(name=name.encode(), opcode=opcode.encode())
            entry = plane.event_metadata.add(key=key)
            entry.value.name = f"jit_step({number})".encode()
            content = program.SerializeToString()
            entry.value.stats.add(metadata_id=1, bytes_value=b"\xff\xff" if number in damaged else content)
            entry.value.stats.add(metadata_id=2, uint64_value=number)
        self._planes.append(plane)
        return self

    def modules(self, modules: dict[int, Any]) -> XSpace:
        """The same plane of whole ``Program`` messages."""
        plane = message("Plane")(name=b"/host:metadata")
        plane.stat_metadata.add(key=1).value.name = b"Hlo Proto"
        for number, program in modules.items():
            entry = plane.event_metadata.add(key=number)
            entry.value.stats.add(metadata_id=1, bytes_value=program.SerializeToString())
        self._planes.append(plane)
        return self

    def started(self, unix_ns: int) -> XSpace:
        return self.plane("Task Environment", [], stats={"profile_start_time": unix_ns})

    def content(self) -> bytes:
        return written(self._planes)

    def write(self, path: Path) -> Path:
        path.write_bytes(self.content())
        return path


def written(planes: list[Any]) -> bytes:
    """An xplane file of some planes."""
    parts = [plane.SerializeToString() for plane in planes]
    return b"".join(b"\x0a" + _varint(len(part)) + part for part in parts)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])
