"""Which operator of the forward pass each backward function belongs to, by the number that autograd gave both.

Numbers count up on every thread by itself. An operator carries the one that the next node of the graph will have, so
that of those with one number the last to begin has made the node; Kineto links its ``fwdbwd`` flows by the same rule.
A number that operators of several threads carry is ambiguous and left alone.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from meshscope.readers.growing import is_constant
from meshscope.readers.kineto_columns import Columns

Ints = npt.NDArray[np.int64]

_ENGINE = "autograd::engine::evaluate_function: "


def forwards(columns: Columns) -> tuple[Ints, Ints]:
    """Rows in which the engine evaluates a backward function, and the row of the operator that each belongs to.

    The columns are in order of their start.
    """
    none = np.empty(0, dtype=np.int64)
    if not len(columns.node) or is_constant(columns.node):
        return none, none
    engine, own = _named(columns)
    numbered = np.flatnonzero(columns.node >= 0)
    backward = numbered[engine[columns.name[numbered]]]
    made = numbered[~own[columns.name[numbered]]]
    made = made[np.argsort(columns.node[made], kind="stable")]  # of one number in order of their start
    node = columns.node[made]
    last = np.flatnonzero(np.append(node[1:] != node[:-1], True)) if len(made) else none
    first = np.append(0, last[:-1] + 1) if len(made) else none
    # Threads of one number are one where the smallest and the largest are.
    threads = columns.thread[made]
    is_one = np.minimum.reduceat(threads, first) == np.maximum.reduceat(threads, first) if len(made) else none > 0
    numbers, forward = node[last[is_one]], made[last[is_one]]
    if not len(numbers):
        return none, none
    at = np.minimum(np.searchsorted(numbers, columns.node[backward]), len(numbers) - 1)
    is_known = (numbers[at] == columns.node[backward]) & (forward[at] < backward)
    return backward[is_known], forward[at[is_known]]


def _named(columns: Columns) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Which names are of the engine's evaluations, and which of those or of the functions that it evaluates."""
    engine = np.array([name.startswith(_ENGINE) for name in columns.names], dtype=np.bool_)
    functions = {name.removeprefix(_ENGINE) for name in columns.names if name.startswith(_ENGINE)}
    return engine, engine | np.array([name in functions for name in columns.names], dtype=np.bool_)
