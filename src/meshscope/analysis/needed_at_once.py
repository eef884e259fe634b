"""Collectives whose result the very next operator takes: those by which a tensor is laid out anew.

Tensor, sequence and context parallelism put them between one layer and the next. They are on the critical path by
design: no prefetch hides them, and two of them cannot be put together, since one's input comes of the other's output.
Torch calls them as functional collectives (``_c10d_functional::all_gather_into_tensor``), while DDP, FSDP, the
optimizers and hand-written code call c10d's own. Megatron calls c10d's too, from autograd functions named after what
they do to a region of the model (``_ReduceFromModelParallelRegion`` of Megatron-LM's
``core/tensor_parallel/mappings.py``).
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from meshscope.analysis.host_activity import named
from meshscope.analysis.parts import per_run, per_window
from meshscope.analysis.places import around, places
from meshscope.intervals import union
from meshscope.run import Run
from meshscope.spans import Kind, Window
from meshscope.units import ratio

_FUNCTIONAL = re.compile(
    r"^_c10d_functional(_autograd)?::(all_|reduce_scatter)"
    r"|^_(Copy|Scatter|Gather|AllGather|Reduce|ReduceScatter)(To|From)(Model|Sequence|Tensor)ParallelRegion(Backward)?$"
    r"|^_VocabParallelCrossEntropy(Backward)?$"
)
MOST = 0.5


@per_window
def needed_at_once(window: Window) -> npt.NDArray[np.int64]:
    """Rows of such collectives, in order."""
    spans = window.spans
    functional = named(spans, _FUNCTIONAL.match)
    if window.framework != "torch" or not functional.any():
        return np.empty(0, dtype=np.int64)
    here = places(window)
    is_one = (spans.kind[here.row] == Kind.COLLECTIVE) & (around(spans, functional, here) >= 0)
    return np.sort(here.row[is_one])


@per_run
def is_mostly_needed_at_once(run: Run) -> bool:
    """Whether they make up more than half of the time in which collectives run and nothing is computed."""
    windows = [window for window in run.windows if window.device_kind != "none"]
    found = [_exposed_ns(window) for window in windows]
    return ratio(sum(needed for needed, _ in found), sum(every for _, every in found)) > MOST


@per_window
def _exposed_ns(window: Window) -> tuple[int, int]:
    """Of the collectives that are needed at once, and of all."""
    spans, rows = window.spans, needed_at_once(window)
    compute = spans.busy(Kind.COMPUTE)
    needed = union(spans.start_ns[rows], spans.end_ns[rows]) - compute
    return needed.total_ns, (spans.busy(Kind.COLLECTIVE) - compute).total_ns
