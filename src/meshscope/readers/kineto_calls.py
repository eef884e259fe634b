"""Process group and number of the calls of gloo, which stand in the head of a file that meshscope itself recorded.

Kineto's own spans of gloo name neither. torch's flight recorder, whose entries these are, takes a call down while it is
being made: an entry is of the call on whose span its time lies.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from meshscope.readers.kineto_columns import Columns
from meshscope.readers.kineto_inputs import PASSING
from meshscope.spans import ProcessGroup

Ints = npt.NDArray[np.int64]

KEY = "meshscopeCalls"
_OF_A_TENSOR_PER_RANK = frozenset(
    f"c10d::{name}_" for name in ("allgather", "allgather_coalesced", "gather", "scatter", "reduce_scatter")
)
_SLACK_NS = 20_000
"""The recorder and the profiler read different clocks, which are set by each other."""


def grouped(columns: Columns, call: Ints, base_ns: int) -> Columns:
    """The columns with ``group`` and ``sequence`` of each row that carries out a call (``call``, −1 for none).

    Where entries and calls do not fit together one to one, nothing is said: a wrong group is worse than none. Sends and
    receives are left out: the recorder takes down none of gloo's.
    """
    entries = [entry for entry in _listed(columns.metadata.get(KEY)) if _is_entry(entry)]
    is_passing = np.array([name in PASSING for name in (*columns.names, "")], dtype=bool)
    rows = np.flatnonzero(call >= 0)
    rows = rows[~is_passing[columns.name[call[rows]]]]
    if not entries or not len(rows):
        return columns
    entries.sort(key=lambda entry: entry[0])
    if not 0 <= base_ns < 2**62:
        return columns
    time_ns = np.array([entry[0] for entry in entries], dtype=np.int64) - base_ns
    start_ns = columns.start_ns[call[rows]]
    end_ns = start_ns + columns.dur_ns[call[rows]]
    at = np.searchsorted(time_ns, start_ns - _SLACK_NS)
    found = np.minimum(at, len(time_ns) - 1)
    is_inside = (time_ns[found] >= start_ns - _SLACK_NS) & (time_ns[found] <= end_ns + _SLACK_NS)
    if not is_inside.all() or len(np.unique(found)) < len(found):
        return columns
    names = list(dict.fromkeys((*columns.groups, *(entry[2] for entry in entries))))
    group, sequence = columns.group.copy(), columns.sequence.copy()
    group[rows] = [names.index(entries[number][2]) for number in found.tolist()]
    sequence[rows] = [entries[number][3] for number in found.tolist()]
    return replace(columns, group=group, sequence=sequence, groups=tuple(names))


def whole(columns: Columns, call: Ints, size_bytes: Ints, groups: tuple[ProcessGroup, ...]) -> Ints:
    """The sizes with those of calls that take a tensor per rank, of which Kineto shows one: times the group's ranks.

    They stay unknown where it is not known how many ranks there are.
    """
    is_partly_shown = np.array([name in _OF_A_TENSOR_PER_RANK for name in columns.names], dtype=bool)
    rows = np.flatnonzero(call >= 0)
    rows = rows[is_partly_shown[columns.name[call[rows]]]]
    if not len(rows):
        return size_bytes
    known = {group.name: group.size for group in groups if group.size > 0}
    every = set(known.values()) - {1}
    other = every.pop() if len(every) == 1 else 0
    ranks = np.array([*(known.get(name, other) for name in columns.groups), other], dtype=np.int64)[columns.group[rows]]
    sizes = size_bytes.copy()
    is_told = (sizes[rows] >= 0) & (ranks > 0)
    sizes[rows] = np.where(is_told, sizes[rows] * ranks, -1)
    return sizes


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _is_entry(entry: object) -> bool:
    if not (isinstance(entry, list) and len(entry) == 4):
        return False
    time_ns, operation, group, sequence = entry
    is_number = all(isinstance(one, int) and 0 <= one < 2**62 for one in (time_ns, sequence))
    return is_number and isinstance(operation, str) and isinstance(group, str)
