"""What a Kineto file cannot tell, in words: the question first, then why."""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt

from meshscope.kinds import Kind
from meshscope.readers.kineto_columns import RUNTIME, Columns

Doubt = tuple[str, str]
Ints = npt.NDArray[np.int64]

_NO_WAIT_GPU = "kernels spin while they wait for peers; telling that apart needs the same collective on all ranks"
_NO_SIZE_CPU = "some calls have no shapes: they need the profiler's record_shapes, and a call in the window"
_NO_SIZE_GPU = "some collective kernels carry no sizes (torch records them since 2.3)"
_NO_WAIT_CPU = "a gloo span includes the waiting for peers, and no wait is recorded as an operator"


def doubts(
    device_kind: str, kind: npt.NDArray[np.uint8], size_bytes: Ints, *, unmatched: int = 0, is_complete: bool = True
) -> tuple[Doubt, ...]:
    """For rows with device work, of the kinds in ``kind``. Without a collective nothing is doubtful about one.

    ``unmatched`` counts gloo spans without a call: made before the window, or lost with the end of a cut file.
    """
    is_collective = kind == Kind.COLLECTIVE
    if not is_collective.any():
        return ()
    said = []
    if not (kind == Kind.WAIT).any():
        said.append(("wait_ns", _NO_WAIT_CPU if device_kind == "cpu" else _NO_WAIT_GPU))
    if unmatched:
        said.append(("collectives", _unmatched_why(unmatched, is_complete=is_complete)))
    if (size_bytes[is_collective] < 0).any():
        said.append(("size_bytes", _NO_SIZE_CPU if device_kind == "cpu" else _NO_SIZE_GPU))
    return tuple(said)


def _unmatched_why(count: int, *, is_complete: bool) -> str:
    spans = "1 gloo span" if count == 1 else f"{count} gloo spans"
    if is_complete:
        where = f"{spans} {'was' if count == 1 else 'were'} called before the window"
    else:
        where = f"what is left of the file holds no call for {spans}"
    return f"{where}; a reduce-scatter among them shows as all_reduce"


def none_why(found: Columns) -> str:
    """Why a file without device events has none."""
    seen = Counter(found.categories[code] for code in found.category.tolist())
    if seen.get("cuda_profiler_range"):
        return f"only CUPTI range-profiler records ({seen['cuda_profiler_range']}), no kernel events"
    other = {name: count for name, count in seen.items() if name.startswith(("mtia", "hpu", "xpu_", "npu"))}
    if other:
        listed = ", ".join(f"{count} {name}" for name, count in sorted(other.items()))
        return f"no GPU events; device categories that are named, not counted: {listed}"
    if any(seen.get(name) for name in RUNTIME):
        return "launches but no device events: the profiler was not asked for device activity, or another one held it"
    return "no device events and no gloo collectives: only host activity was traced"
