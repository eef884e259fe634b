"""Large traces for benchmarks: a trace of the corpus, or a made one, repeated until it is as large as asked for."""

from __future__ import annotations

import gzip
import json
import random
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import IO, Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "readers" / "support"))

from made_traces import XSpace

from meshscope.readers.xplane_messages import message

KINETO = "nccl-tl-resnet-actckpt-mi300/resnet_act_checkpoint.json.gz"
XPLANE = "xla-tpu-inference2/tpu_inference_2.xplane.pb"

_LIST = re.compile(rb'"traceEvents"\s*:\s*\[')
_TIME = re.compile(rb'("ts": ?)(\d+)')
_CORRELATION = re.compile(rb'("correlation": ?)(\d+)')

_ROW = """  {{
    "ph": "X", "cat": "{cat}", "name": "{name}", "pid": {pid}, "tid": {tid},
    "ts": {ts}.{ns:03d}, "dur": {dur}.{ns:03d},
    "args": {{
      {args}
    }}
  }}"""


def made_kineto(events: int = 8000) -> bytes:
    """A trace as Kineto lays it out: operators, launches, kernels and collectives of one rank."""
    random_ = random.Random(0)
    rows = []
    for number in range(events // 4):
        ts = 1_000_000 + number * 40
        launch = f'"External id": {number}, "cbid": 211, "correlation": {number}'
        kernel = (
            f'"External id": {number}, "queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": {number}'
        )
        dims = '"Sequence number": 1, "Fwd thread id": 0, "Input Dims": [[64, 1024], [1024]], "Ev Idx": 1'
        is_collective = number % 20 == 0
        if is_collective:
            kernel += ', "Collective name": "allreduce", "In msg nelems": 4096, "dtype": "Float"'
        name = "ncclDevKernel_AllReduce_Sum_f32" if is_collective else f"void gemm_{random_.randrange(200)}<float, 128>"
        rows += [
            _row("cpu_op", f"aten::op_{random_.randrange(99)}", 9, 9, ts, 30, dims, random_),
            _row("cuda_runtime", "cudaLaunchKernel", 9, 9, ts + 5, 4, launch, random_),
            _row("kernel", name, 0, 7, ts + 12, 90 if is_collective else 20, kernel, random_),
            _row("python_function", f"model.py({random_.randrange(500)}): forward", 9, 9, ts, 35, dims, random_),
        ]
    head = '{\n  "schemaVersion": 1, "baseTimeNanoseconds": 1790000000000000000,\n'
    head += '  "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 2},\n  "traceEvents": [\n'
    return (head + ",\n".join(rows) + '\n  ],\n  "traceName": "made"\n}\n').encode()


def _row(cat: str, name: str, pid: int, tid: int, ts: int, dur: int, args: str, random_: random.Random) -> str:
    return _ROW.format(cat=cat, name=name, pid=pid, tid=tid, ts=ts, dur=dur, args=args, ns=random_.randrange(1000))


def tiled_kineto(shared: Path, path: Path, size_bytes: int) -> str:
    """Writes a trace of about a size; what it was made from."""
    found = shared / "traces" / KINETO
    text = gzip.decompress(found.read_bytes()) if found.is_file() else made_kineto()
    opening = _LIST.search(text)
    assert opening
    view = text.decode("latin-1")
    end = json.JSONDecoder().raw_decode(view, opening.end() - 1)[1] - 1
    body = text[opening.end() : end].rstrip()
    times = sorted(int(number) for _, number in _TIME.findall(body))
    span = times[-len(times) // 1000] - times[len(times) // 1000] + 1000
    step = 1 + max((int(number) for _, number in _CORRELATION.findall(body)), default=0)
    with path.open("wb") as file:
        file.write(text[: opening.end()] + body)
        count = 1
        while file.tell() < size_bytes:
            file.write(b"," + _shifted(_shifted(body, _TIME, count * span), _CORRELATION, count * step))
            count += 1
        file.write(text[end:])
    return f"{found.name if found.is_file() else 'a made trace'}, {count} times"


def _shifted(body: bytes, pattern: re.Pattern[bytes], by: int) -> bytes:
    return pattern.sub(lambda found: found[1] + str(int(found[2]) + by).encode(), body)


def tiled_xplane(shared: Path, path: Path, size_bytes: int, source: str = XPLANE) -> str:
    """Writes an xplane file of about a size, with the events of each line repeated; what it was made from.

    The lines are written as they are made: a file of a gigabyte does not fit memory as messages.
    """
    found = shared / "traces" / source
    content = found.read_bytes() if found.is_file() else _made_xplane()
    times = max(1, round(size_bytes / len(content)))
    with path.open("wb") as file:
        for plane in message("Space").FromString(content).planes:
            _write_tiled(file, plane, times)
    return f"{found.name if found.is_file() else 'a made file'}, events {times} times"


def _write_tiled(file: IO[bytes], plane: Any, times: int) -> None:
    span = max((event.offset_ps + event.duration_ps for line in plane.lines for event in line.events), default=0)
    shell = message("Plane").FromString(plane.SerializeToString())
    del shell.lines[:]
    with tempfile.TemporaryFile(dir=Path(file.name).parent) as body:
        body.write(shell.SerializeToString())
        for line in plane.lines:
            with tempfile.TemporaryFile(dir=Path(file.name).parent) as repeated:
                once = message("Line")(events=line.events)
                repeated.write(line.SerializeToString())
                for _ in range(times - 1):
                    for event in once.events:
                        event.offset_ps += span
                    repeated.write(once.SerializeToString())
                _write_framed(body, b"\x1a", repeated)
        _write_framed(file, b"\x0a", body)


def _write_framed(file: IO[bytes], key: bytes, part: IO[bytes]) -> None:
    size, head = part.tell(), bytearray(key)
    while size > 127:
        head.append(size & 127 | 128)
        size >>= 7
    file.write(bytes([*head, size]))
    part.seek(0)
    shutil.copyfileobj(part, file, 1 << 20)


def _made_xplane() -> bytes:
    random_ = random.Random(0)
    space = XSpace()
    for device in range(4):
        at, events = 0, []
        for _ in range(5000):
            at += 10_000_000
            name = random_.choice(["fusion", "dot", "all-reduce", "copy"]) + f".{random_.randrange(50)}"
            events.append((name, at, random_.randrange(9_000_000), {"flops": random_.randrange(1 << 40), "bytes": 99}))
        space.plane(f"/device:TPU:{device}", [("XLA Ops", events)])
    return space.started(1_790_000_000_000_000_000).content()
