"""Compilations in the host's plane of an xplane file, as spans of the host.

JAX marks lowering and compiling itself. Where nothing is marked so, as by a program without JAX, the client's own
compilation is taken; both at once would be one compilation counted twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from meshscope.kinds import Kind
from meshscope.readers.xplane_lines import Piece
from meshscope.readers.xplane_rows import NO_ROWS, Rows, Tables, joined, unknown
from meshscope.readers.xplane_space import Plane

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
    lines = [line for line in plane.lines if not line.raw.ids.isdisjoint(wanted)] if wanted else []
    pieces = ((line.name, piece) for line in lines for piece in line.pieces())
    return [rows for name, piece in pieces if len(rows := _of_piece(plane, name, piece, wanted, tables))]


def _of_piece(plane: Plane, line: str, piece: Piece, wanted: list[int], tables: Tables) -> Rows:
    at = np.flatnonzero(np.isin(piece.metadata, wanted))
    if not len(at):
        return NO_ROWS
    none = np.full(len(at), -1, dtype=np.int32)
    return Rows(
        start_ns=piece.start_ns[at],
        end_ns=piece.end_ns[at],
        name=tables.names.codes(plane.event_names[number] for number in piece.metadata[at].tolist()),
        lane=np.full(len(at), tables.lanes[line], dtype=np.int32),
        kind=np.full(len(at), Kind.HOST, dtype=np.uint8),
        rule=none,
        collective=none,
        **unknown(len(at)),
    )
