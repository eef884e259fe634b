"""What a Kineto file cannot tell, in words: the question first, then why."""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt

from meshscope.kinds import Kind
from meshscope.readers.kineto_columns import RUNTIME, Columns

Doubt = tuple[str, str]

_NO_WAIT_GPU = "kernels spin while they wait for peers; telling that apart needs the same collective on all ranks"
_NO_WAIT_CPU = "a gloo span includes the waiting for peers, and no wait is recorded as an operator"


def doubts(found: Columns, device_kind: str, kind: npt.NDArray[np.uint8], *, unmatched: int = 0) -> tuple[Doubt, ...]:
    """For a file with device work, of the kinds in ``kind``. Without a collective nothing is doubtful about one."""
    if not (kind == Kind.COLLECTIVE).any():
        return ()
    said = []
    if not (kind == Kind.WAIT).any():
        said.append(("wait_ns", _NO_WAIT_CPU if device_kind == "cpu" else _NO_WAIT_GPU))
    if unmatched:
        why = f"{unmatched} gloo spans were called before the window; a reduce-scatter among them shows as all_reduce"
        said.append(("collectives", why))
    if device_kind == "cpu" and not found.metadata.get("record_shapes"):
        said.append(("size_bytes", "sizes need the profiler's record_shapes"))
    return tuple(said)


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
