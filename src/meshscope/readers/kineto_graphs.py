"""Which kernels of a Kineto file ran as nodes of a CUDA graph: looked up in the file again, where an answer needs it.

A graph's nodes run side by side, though a profiler (or a tool after it) may show all of them on one stream.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from meshscope.readers.chrome import Document
from meshscope.readers.decimals import nanoseconds
from meshscope.readers.stream import Source
from meshscope.units import NS_PER_MS

LONG_NS = NS_PER_MS
_NO_JSON = msgspec.Raw(b"")

Times = frozenset[tuple[int, int]]


class _Args(msgspec.Struct, gc=False):
    node: Any = msgspec.field(name="graph node id", default=None)


class _Event(msgspec.Struct, gc=False):
    ts: msgspec.Raw = _NO_JSON
    dur: msgspec.Raw = _NO_JSON
    args: _Args | None = None


_decode: Callable[[bytes], list[_Event]] = msgspec.json.Decoder(list[_Event]).decode


def graph_nodes(path: Path) -> Times:
    """Start and duration in ns, as the file counts them, of the events of a graph that last longer than LONG_NS.

    Raises TraceError when the file cannot be read.
    """
    found: set[tuple[int, int]] = set()
    for batch in Document(Source(path).blocks(), _decode).batches():
        nodes = [event for event in batch if event.args is not None and event.args.node not in (None, 0, "0")]
        start_ns, dur_ns = nanoseconds([event.ts for event in nodes]), nanoseconds([event.dur for event in nodes])
        is_long = dur_ns > LONG_NS
        found.update(zip(start_ns[is_long].tolist(), dur_ns[is_long].tolist(), strict=True))
    return frozenset(found)
