"""What the host's ``nccl:…`` annotations tell of collective kernels that carry nothing themselves (before torch 2.3).

A kernel belongs to the annotation around its launch. The annotation has the shape of the call's input, and its name
tells an all-to-all from other exchanges: both are kernels that send and receive.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from meshscope import kinds
from meshscope.kinds import Kind
from meshscope.readers import kineto_gpu
from meshscope.readers.kineto_columns import Columns
from meshscope.readers.told import Told, renamed

Ints = npt.NDArray[np.int64]

_HOST = ("user_annotation",)
_WHOLE_INPUT = frozenset({"all_reduce", "reduce_scatter", "all_to_all", "broadcast", "reduce", "send"})
"""Collectives whose input is the whole buffer; an all-gather's is one rank's part of it."""

_EXCHANGES = frozenset({"all_to_all", "gather", "scatter", "send", "recv", "send_recv"})


def annotated(columns: Columns, told: Told) -> tuple[Told, Ints]:
    """``told`` with the collectives that only annotations name, and the sizes of all rows, shape (n,)."""
    kernels = np.flatnonzero((told.kind == Kind.COLLECTIVE) & (columns.collective < 0))
    if not len(kernels):
        return told, columns.size_bytes
    launch = kineto_gpu.launches_of(kernels, columns.correlation, told.kind)
    kernels, launch = kernels[launch >= 0], launch[launch >= 0]
    around = _around(columns, launch)
    kernels, around = kernels[around >= 0], around[around >= 0]
    # Several kernels of one call share its bytes in a way that is not told.
    _, place, count = np.unique(around, return_inverse=True, return_counts=True)
    alone = count[place.reshape(-1)] == 1 if len(around) else np.empty(0, dtype=bool)
    kernels, around = kernels[alone], around[alone]
    names = [kinds.collective(columns.names[number]) for number in columns.name[around].tolist()]
    size_bytes = columns.size_bytes
    own = [told.collectives[number] for number in told.collective[kernels].tolist()]
    agrees = [_agrees(kernel, name) for kernel, name in zip(own, names, strict=True)]
    is_whole = np.array([ok and name in _WHOLE_INPUT for ok, name in zip(agrees, names, strict=True)], dtype=bool)
    if is_whole.any():
        size_bytes = size_bytes.copy()
        size_bytes[kernels[is_whole]] = columns.size_bytes[around[is_whole]]
    better = [name if ok else kernel for ok, kernel, name in zip(agrees, own, names, strict=True)]
    return (renamed(told, kernels, better) if len(kernels) else told), size_bytes


def _agrees(kernel: str, name: str) -> bool:
    """Whether a kernel's collective can be the annotation's: a correlation that does not fit tells nothing."""
    if kernel == "send_recv":
        return name in _EXCHANGES
    return name != kinds.UNNAMED and kernel in (name, kinds.UNNAMED)


def _around(columns: Columns, launch: Ints) -> Ints:
    """The row of the annotation in which each launch begins, on its thread; −1 where there is none."""
    is_named = np.array([name.startswith("nccl:") for name in columns.names], dtype=bool)
    marks = np.flatnonzero(columns.is_of(_HOST) & is_named[columns.name]) if len(columns.name) else launch[:0]
    found = np.full(len(launch), -1, dtype=np.int64)
    for thread in np.unique(columns.thread[launch]).tolist():
        mine = marks[columns.thread[marks] == thread]
        here = np.flatnonzero(columns.thread[launch] == thread)
        if not len(mine):
            continue
        mine = mine[np.argsort(columns.start_ns[mine], kind="stable")]
        at = np.searchsorted(columns.start_ns[mine], columns.start_ns[launch[here]], side="right") - 1
        mark = mine[np.maximum(at, 0)]
        is_inside = (at >= 0) & (columns.start_ns[launch[here]] < columns.start_ns[mark] + columns.dur_ns[mark])
        found[here] = np.where(is_inside, mark, -1)
    return found
