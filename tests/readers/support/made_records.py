"""Small files without spans, made by hand: allocators' snapshots, memory timelines, flight recorders, device logs."""

from __future__ import annotations

import gzip
import json
import pickle
from pathlib import Path
from typing import Any

from made_traces import UNIX_NS, XSpace

from meshscope.readers.xplane_messages import message
from meshscope.readers.xplane_space import space

Entry = dict[str, Any]

UNIX_US = UNIX_NS // 1000
MIB = 1 << 20


def block(address: int, size: int, state: str = "active_allocated", *, requested: int | None = None) -> Entry:
    asked = size if requested is None else requested
    return {"address": address, "size": size, "requested_size": asked, "state": state, "frames": []}


def segment(*blocks: Entry, device: int = 0, **more: Any) -> Entry:
    held = [b for b in blocks if b["state"] == "active_allocated"]
    return {
        "device": device,
        "address": blocks[0]["address"] if blocks else 0,
        "total_size": sum(b["size"] for b in blocks),
        "allocated_size": sum(b["size"] for b in held),
        "active_size": sum(b["size"] for b in blocks if b["state"].startswith("active")),
        "requested_size": sum(b["requested_size"] for b in held),
        "stream": 0,
        "segment_type": "large",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "blocks": list(blocks),
        **more,
    }


def call(action: str, size: int, at_us: int, *, addr: int = 0, note: str = "", **more: Any) -> Entry:
    return {
        "action": action, "addr": addr, "size": size, "stream": 0, "time_us": UNIX_US + at_us,
        "compile_context": "N/A", "user_metadata": note, "frames": [], **more,
    }  # fmt: skip


def write_snapshot(path: Path, segments: list[Entry], *traces: list[Entry], **around: Any) -> Path:
    found = {"segments": segments, "device_traces": list(traces), "allocator_settings": {}, **around}
    path.write_bytes(pickle.dumps(found))
    return path


def write_timeline(path: Path, rows: list[list[int | None]]) -> Path:
    text = json.dumps(rows).encode()
    path.write_bytes(gzip.compress(text) if path.name.endswith(".gz") else text)
    return path


def entry(sequence: int, operation: str = "all_reduce", *, state: str = "completed", **more: Any) -> Entry:
    """What NCCL's recorder keeps of one call, version 2.4."""
    return {
        "record_id": sequence, "pg_id": 0, "process_group": ("0", "default_pg"), "collective_seq_id": sequence,
        "p2p_seq_id": 0, "op_id": sequence, "profiling_name": f"nccl:{operation}", "is_p2p": False,
        "time_created_ns": UNIX_NS + sequence * 1_000_000, "input_sizes": [[3, 4]], "input_dtypes": ["Float"],
        "output_sizes": [[3, 4]], "output_dtypes": ["Float"], "state": state,
        "time_discovered_started_ns": None, "time_discovered_completed_ns": None,
        "retired": state == "completed", "timeout_ms": 600_000,
        "frames": [
            {"name": "all_reduce", "filename": "/venv/torch/distributed/distributed_c10d.py", "line": 2806},
            {"name": "train_step", "filename": "/home/user/train.py", "line": 42},
        ], **more,
    }  # fmt: skip


def write_flight(path: Path, entries: list[Entry], *, ranks: str = "[0, 1, 2]", **around: Any) -> Path:
    found = {
        "version": "2.4",
        "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": ranks}},
        "pg_status": {"0": {"last_enqueued_collective": len(entries)}},
        "entries": entries,
        **around,
    }
    path.write_bytes(pickle.dumps(found, protocol=2))
    return path


def as_jax_json(content: bytes, *, is_perfetto: bool = False) -> bytes:
    """An xplane file as XLA writes it a second time: µs as doubles, stats as text, no event shorter than 1 ps."""
    events: list[Entry] = []
    spelled_out = message("Space").FromString(content).planes
    for pid, (plane, whole) in enumerate(zip(space(content).planes, spelled_out, strict=True), 1):
        if not any(len(line) for line in plane.lines):
            continue
        events.append({"ph": "M", "pid": pid, "name": "process_name", "args": {"name": plane.name}})
        for tid, (line, told) in enumerate(zip(plane.lines, whole.lines, strict=True), 1):
            events.append({"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": line.name}})
            for event in told.events:
                start_us = (told.timestamp_ns * 1000 + event.offset_ps) / 1e6
                one = {"ph": "X", "pid": pid, "tid": tid, "ts": start_us, "dur": max(event.duration_ps, 1) / 1e6}
                stats = {key: str(value) for key, value in plane.stats(event).items() if value is not None}
                events.append(one | {"name": plane.event_names[event.metadata_id], "args": stats})
    head: Entry = {"displayTimeUnit": "ns"} | ({} if is_perfetto else {"metadata": {"highres-ticks": True}})
    return gzip.compress(json.dumps(head | {"traceEvents": [*events, {}]}).encode())


def write_jax_json(path: Path, made: XSpace, *, is_perfetto: bool = False) -> Path:
    path.write_bytes(as_jax_json(made.content(), is_perfetto=is_perfetto))
    return path
