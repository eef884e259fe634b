"""What a Kineto file cannot tell, in words: the question first, then why."""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt

from meshscope.kinds import Kind, is_any
from meshscope.readers.damage import DAMAGED, ENDLESS, NOT_AN_EVENT, SECOND_HEAD
from meshscope.readers.kineto_columns import RUNTIME, Columns
from meshscope.readers.kineto_repairs import LOST, device_rows
from meshscope.readers.time_bounds import (
    NEGATIVE,
    NO_DURATION,
    NO_TIME,
    OUT_OF_RANGE,
    RATHER_NANOSECONDS,
    TOO_EARLY,
    TOO_LONG,
    TORN,
    is_torn,
)  # fmt: skip
from meshscope.readers.windows import WORK
from meshscope.units import counted, percent, ranges

Doubt = tuple[str, str]
Ints = npt.NDArray[np.int64]

_HOST = ("cpu_op", "operator", *RUNTIME)
_UNTIMED = (NO_TIME, NO_DURATION, RATHER_NANOSECONDS, OUT_OF_RANGE, TOO_EARLY, NEGATIVE, TOO_LONG)
_SEVERAL = "and whose device events are whose cannot be told; trace to one path per rank"
# A process counts as one with this share of the largest one's rows, and this many of its own: one damaged id, or one
# row that an exporter gave to somebody else, is no second rank.
_SUSPECT, _PLAIN = (0.05, 1), (0.25, 8)

_AUTOGRAD_CUDA = "CUDA functions"
_ASCEND = ("hcom_", "AscendCL@", "Node@launch", "aclnn")

_LEAST_LOST, _MOST_LOST_FRAC = 8, 0.1

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


def several_devices(found: Columns, kind: npt.NDArray[np.uint8]) -> tuple[Doubt, ...]:
    """What the union over several devices of one process cannot tell of any of them."""
    device = found.device[is_any(kind, WORK) & (found.device >= 0)]
    if not len(device) or (device == device[0]).all():
        return ()
    many = (
        f"one process drove devices {ranges(np.unique(device).tolist())}, and the rank's numbers are unions over them"
    )
    return (
        ("idle_ns", f"{many}: a device may idle while another works; see each device's own"),
        ("hidden_ns", f"{many}: one device's compute seems to hide another's communication; see each device's own"),
    )


def _unmatched_why(count: int, *, is_complete: bool) -> str:
    spans = "1 gloo span" if count == 1 else f"{count} gloo spans"
    if is_complete:
        where = f"{spans} {'was' if count == 1 else 'were'} called before the window"
    else:
        where = f"what is left of the file holds no call for {spans}"
    return f"{where}; a reduce-scatter among them shows as all_reduce"


def no_answer_why(found: Columns) -> str:
    """Why the device events of a file are no one rank's, or of no one time; "" where nothing speaks against it."""
    if found.dropped.get(SECOND_HEAD):
        return f"another trace begins inside this one: several ranks wrote to one path, {_SEVERAL}"
    if why := _unreadable(found):
        return why
    is_device = device_rows(found)
    devices = np.unique(found.device[is_device])
    is_suspect = bool(found.dropped.get(DAMAGED)) or len(devices[devices >= 0]) > 1
    processes = _processes(found, _SUSPECT if is_suspect else _PLAIN)
    if len(processes) > 1:
        listed = " and ".join(map(str, processes[:4]))
        return f"the file holds events of {len(processes)} processes ({listed}), {_SEVERAL}"
    return TORN[1] if is_torn(found.start_ns[is_device]) else ""


def _unreadable(found: Columns) -> str:
    """Where so many entries are lost, what is left of a kind of events may be none of them, or the odd one."""
    lost = sum(found.dropped.get(why, 0) for why in (DAMAGED, NOT_AN_EVENT, ENDLESS))
    if lost < _LEAST_LOST or lost <= _MOST_LOST_FRAC * found.read:
        return ""
    return (
        f"{lost} of {counted(found.read, 'event')} could not be read ({percent(lost / found.read)}), and device work "
        "may be among them: copy the file again, or trace again"
    )


def _processes(found: Columns, least: tuple[float, int]) -> list[object]:
    """The ids of the processes that ran operators or launched, by their number of rows; strays left out."""
    rows = np.bincount(found.thread[found.is_of(_HOST)], minlength=len(found.threads)).tolist()
    counts: Counter[object] = Counter()
    for (process, _), count in zip(found.threads, rows, strict=True):
        if process is not None:
            counts[process] += count
    enough = max(max(counts.values(), default=0) * least[0], least[1])
    return [process for process, count in counts.most_common() if count >= enough]


def none_why(found: Columns) -> str:
    """Why a file without device events has none."""
    rows = np.bincount(found.category, minlength=len(found.categories)).tolist()
    seen = Counter({name: count for name, count in zip(found.categories, rows, strict=True) if count})
    if found.dropped.get(LOST):
        return f"device events: {found.dropped[LOST]}, and none of them with a time"
    if not found.is_complete:
        return f"the file was cut before any device event (entries read: {found.read})"
    untimed = {why: found.dropped[why] for why in _UNTIMED if found.dropped.get(why)}
    if not seen and untimed:
        return (
            "no event with a time that can be (" + "; ".join(f"{count}: {why}" for why, count in untimed.items()) + ")"
        )
    if not seen:
        return f"no event with a duration (entries read: {found.read})"
    return _other_profiler_why(found) or _no_device_why(seen)


def _other_profiler_why(found: Columns) -> str:
    """Device times as profilers without Kineto's categories write them; "" of other files."""
    rows = np.bincount(found.thread, minlength=len(found.threads)).tolist()
    on_cuda = sum(count for (process, _), count in zip(found.threads, rows, strict=True) if process == _AUTOGRAD_CUDA)
    if on_cuda:
        return (
            f"torch.autograd.profiler wrote it: {counted(on_cuda, 'operator')} with CUDA times and no kernels, so what "
            "ran at once cannot be told; trace with torch.profiler (since torch 1.8.1)"
        )
    is_bare = found.is_of(("",))
    named = np.unique(found.name[is_bare])
    if any(found.names[number].startswith(_ASCEND) for number in named.tolist()):
        return (
            "it is a trace_view of Ascend's profiler, whose NPU events are not read; on NVIDIA, AMD and Intel GPUs "
            "torch.profiler's own traces are"
        )
    return ""


def _no_device_why(seen: Counter[str]) -> str:
    """For a file with ``seen`` rows of each category."""
    if seen.get("cuda_profiler_range"):
        return f"only CUPTI range-profiler records ({seen['cuda_profiler_range']}), no kernel events"
    other = {name: count for name, count in seen.items() if name.startswith(("mtia", "hpu", "xpu_", "npu"))}
    if other:
        listed = ", ".join(f"{count} {name}" for name, count in sorted(other.items()))
        return f"no GPU events; device categories that are named, not counted: {listed}"
    if any(seen.get(name) for name in RUNTIME):
        return "launches but no device events: the profiler was not asked for device activity, or another one held it"
    return "no device events and no gloo collectives: only host activity was traced"
