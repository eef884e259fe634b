"""Compilations in the host's plane of an xplane file, as spans of the host.

JAX marks lowering and compiling itself. Where nothing is marked so, as by a program without JAX, the client's own
compilation is taken; both at once would be one compilation counted twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from meshscope.kinds import Kind
from meshscope.readers.xplane_rows import NO_ROWS, Rows, Tables, joined, unknown
from meshscope.readers.xplane_space import Line, Plane

_MARKED = re.compile(r"^(backend_compile(_and_load)?|lower_sharding_computation)$")
_CLIENT = re.compile(r"^PjRt\w*Client::Compile\w*$")


def compile_rows(plane: Plane | None, tables: Tables) -> Rows:
    """By start; none where nothing was compiled while the profiler ran."""
    if plane is None:
        return NO_ROWS
    for pattern in (_MARKED, _CLIENT):
        if found := _named(plane, tables, pattern.match):
            return joined(found)
    return NO_ROWS


def _named(plane: Plane, tables: Tables, matches: Callable[[str], object]) -> list[Rows]:
    wanted = [number for number, name in plane.event_names.items() if matches(name)]
    return [rows for line in plane.lines if len(rows := _of_line(plane, line, wanted, tables))] if wanted else []


def _of_line(plane: Plane, line: Line, wanted: list[int], tables: Tables) -> Rows:
    at = np.flatnonzero(np.isin(line.metadata, wanted))
    if not len(at):
        return NO_ROWS
    none = np.full(len(at), -1, dtype=np.int32)
    return Rows(
        start_ns=line.start_ns[at],
        end_ns=line.end_ns[at],
        name=tables.names.codes(plane.event_names[number] for number in line.metadata[at].tolist()),
        lane=np.full(len(at), tables.lanes[line.name], dtype=np.int32),
        kind=np.full(len(at), Kind.HOST, dtype=np.uint8),
        rule=none,
        collective=none,
        **unknown(len(at)),
    )
