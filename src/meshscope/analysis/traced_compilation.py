"""Compilation that traces recorded, for runs without a journal: how often and how long, step by step.

TorchDynamo marks what it does in a profile with ``… (dynamo_timed)``, and JAX its lowering and compiling, for all
devices of a process. The shapes that made them compile are in no trace.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from meshscope.analysis.host_activity import host_named
from meshscope.analysis.parts import per_window
from meshscope.intervals import union
from meshscope.run import Run
from meshscope.spans import Column, Window

NO_SHAPES = "a trace does not say which shapes made it compile; a run that meshscope starts records them"

# Once for each function that is compiled, whatever is attempted again inside.
_PROGRAM = re.compile(
    r"^(_compile\.compile_inner \(dynamo_timed\)|backend_compile(_and_load)?|PjRt\w*Client::Compile\w*)$"
)
_ANY = re.compile(r" \(dynamo_timed\)$|^lower_sharding_computation$|" + _PROGRAM.pattern)


@dataclass(frozen=True)
class TracedCompilation:
    """What one rank compiled in one step (−1: outside any complete step): ``count`` functions in ``duration_ns``.

    The time is the union of all that is marked, backward passes compiled later among it.
    """

    rank: int
    step: int
    count: int
    duration_ns: int


def traced_compilation(run: Run) -> tuple[TracedCompilation, ...]:
    """By (rank, step); () where no trace shows any."""
    found = [one for window in run.windows for one in _of_window(window)]
    return tuple(sorted(found, key=lambda one: (one.rank, one.step)))


@per_window
def _of_window(window: Window) -> tuple[TracedCompilation, ...]:
    spans = window.spans
    # A screen asks this of every window, most of which compile nothing: there are far fewer names than spans.
    if not any(map(_ANY.search, spans.names)):
        return ()
    marked = np.flatnonzero(host_named(spans, _ANY.search))
    step = _step_at(window, spans.start_ns[marked])
    is_program = host_named(spans, _PROGRAM.search)[marked]
    found = []
    for number in np.unique(step).tolist():
        rows = marked[step == number]
        covered = union(spans.start_ns[rows], spans.end_ns[rows])
        count = int(is_program[step == number].sum())
        found.append(TracedCompilation(window.rank, number, count, covered.total_ns))
    return tuple(found)


def _step_at(window: Window, time_ns: Column) -> Column:
    """The complete step that each time is in, −1 for none."""
    numbers = np.array([*window.steps, -1], dtype=np.int64)
    if not window.steps:
        return np.full(len(time_ns), -1, dtype=np.int64)
    at = np.searchsorted(window.step_ns[:, 0], time_ns, side="right") - 1
    is_inside = (at >= 0) & (time_ns < window.step_ns[np.maximum(at, 0), 1])
    found: Column = numbers[np.where(is_inside, at, -1)]
    return found
