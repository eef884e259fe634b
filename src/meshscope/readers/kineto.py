"""Kineto's Chrome traces (torch.profiler), plain or gzip: one file is one rank.

With device events in the file, device work is what the answers are about (``device_kind`` gpu); without them a rank
that shows gloo's transfers, or is known to run on CPU, is read by the CPU rule; else the window holds no device work
and says so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from meshscope.kinds import Kind, is_any
from meshscope.readers import kineto_cpu, kineto_forward, kineto_gloo, kineto_gpu, kineto_host
from meshscope.readers.growing import is_constant, taken
from meshscope.readers.kineto_calls import grouped, whole
from meshscope.readers.kineto_columns import Columns, columns
from meshscope.readers.kineto_doubts import doubts, no_answer_why, none_why, several_devices
from meshscope.readers.kineto_graphs import graph_nodes
from meshscope.readers.kineto_groups import host, process_groups
from meshscope.readers.kineto_nccl import annotated
from meshscope.readers.kineto_peers import paired
from meshscope.readers.kineto_repairs import device_rows, repaired, threaded
from meshscope.readers.naming import rank_in_name
from meshscope.readers.reader import Reader
from meshscope.readers.time_bounds import LATEST_NS
from meshscope.readers.told import Told, renamed
from meshscope.readers.windows import EARLIEST_UNIX_NS, NO_ABSOLUTE_TIME, WORK, extent, step_bounds, step_of
from meshscope.spans import Allocations, Counts, SpanTable, Window, span_table

Ints = npt.NDArray[np.int64]

SIMULATED = "simulated"
"""The key in the head of a trace that was drawn from a prediction: an object with ``by``, or a text."""

_STEP = re.compile(r"^ProfilerStep#([0-9]{1,9})$")
_WHOLE = re.compile(r"^[0-9]{1,19}$")
_JSON = re.compile(rb"\A(\xef\xbb\xbf)?\s*(\{\s*[\"{}]|\[\s*[{\]])")


def sniff(head: bytes) -> bool:
    """JSON: an object, or a list of objects (how torch wrote before Kineto)."""
    return _JSON.match(head) is not None


def read(path: Path, *, t0_unix_ns: int | None = None, device_kind: str = "") -> tuple[Window, ...]:
    """See :class:`meshscope.readers.reader.Read`."""
    found = repaired(columns(path), lambda: graph_nodes(path)).by_start()
    is_device = device_rows(found)
    if why := no_answer_why(found):
        draft = _none(found, why)
    elif is_device.any():
        draft = _gpu(found, is_device)
    elif kineto_cpu.has_gloo(found) or device_kind == "cpu":
        found = threaded(found)
        draft, found = _cpu(found)
    else:
        draft = _none(found, none_why(found))
    draft = replace(draft, told=kineto_host.cited(found, draft.told))
    return (_window(path, found, draft, t0_unix_ns),)


@dataclass(frozen=True, eq=False)
class _Draft:
    """What one of the rules made of the file: the kinds of its rows, and what cannot be said.

    ``rows`` are the table's where some were cut in pieces; None where each is one.
    """

    device_kind: str
    told: Told
    rows: kineto_cpu.Pieces | None
    size_bytes: Ints
    call: Ints | None
    cannot_say: tuple[tuple[str, str], ...]


def _gpu(found: Columns, is_device: npt.NDArray[np.bool_]) -> _Draft:
    told, size_bytes = annotated(found, kineto_gpu.told(found, is_device))
    cannot_say = (*doubts("gpu", told.kind, size_bytes), *several_devices(found, told.kind), *found.doubts)
    return _Draft("gpu", told, None, size_bytes, None, cannot_say)


def _cpu(found: Columns) -> tuple[_Draft, Columns]:
    """Also the columns, with the process groups of gloo's calls where these are told."""
    told = kineto_cpu.told(found)
    calls = kineto_gloo.calls(found, told.kind)
    told = renamed(told, calls.spans, calls.collective)
    rows = kineto_cpu.pieces(found, told.kind)
    found = grouped(found, calls.call, _base_ns(found))
    size_bytes = whole(found, calls.call, calls.size_bytes, process_groups(found.metadata, found.group_ranks))
    cannot_say = doubts("cpu", told.kind, size_bytes, unmatched=calls.unmatched, is_complete=found.is_complete)
    return _Draft("cpu", told, rows, size_bytes, calls.call, cannot_say), found


def _none(found: Columns, why: str) -> _Draft:
    told = kineto_gpu.told(found, np.zeros(len(found.start_ns), dtype=bool))
    return _Draft("none", told, None, found.size_bytes, None, (("breakdown", why),))


def _window(path: Path, found: Columns, draft: _Draft, t0_unix_ns: int | None) -> Window:
    zero_ns, is_absolute = _zero(found, t0_unix_ns)
    rank, rank_from = _rank(path, found)
    device = _device(found, draft)
    steps, step_ns = step_bounds(_marks(found, zero_ns))
    found = paired(found, draft.told, draft.call, rank)
    spans = _spans(found, draft, zero_ns, rank, device)
    spans = replace(spans, step=step_of(spans.start_ns, steps, step_ns))
    start_ns, end_ns = extent(spans)
    is_work = is_any(draft.told.kind, WORK)
    return Window(
        rank=rank,
        device=device,
        rank_from=rank_from,
        framework="torch",
        device_kind=draft.device_kind,
        start_ns=start_ns,
        end_ns=end_ns,
        steps=tuple(steps.tolist()),
        step_ns=step_ns,
        is_complete=found.is_complete,
        spans=spans,
        counts=Counts(found.read, int(is_work.sum()), found.dropped, found.repaired),
        source=path.name,
        cannot_say=draft.cannot_say if is_absolute else (*draft.cannot_say, NO_ABSOLUTE_TIME),
        allocations=_allocations(found, draft.device_kind, device, zero_ns),
        world=_world(found),
        has_unix_time=is_absolute,
        host=host(found.metadata),
        process_groups=process_groups(found.metadata, found.group_ranks),
        simulated_by=_simulated_by(found),
    )


def _zero(found: Columns, t0_unix_ns: int | None) -> tuple[int, bool]:
    """What to take from the file's own times, and whether it knows when it was made.

    Since torch 2.3 times count from ``baseTimeNanoseconds``; before, they are unix microseconds.
    """
    base_ns = _base_ns(found)
    first_ns = int(found.start_ns.min()) if len(found.start_ns) else 0
    if not EARLIEST_UNIX_NS <= base_ns + first_ns < LATEST_NS:
        return first_ns, False
    return (t0_unix_ns or 0) - base_ns, True


def _base_ns(found: Columns) -> int:
    base = found.metadata.get("baseTimeNanoseconds", 0)
    return int(base) if isinstance(base, int | str) and _WHOLE.match(str(base)) else 0


def _simulated_by(found: Columns) -> str:
    """Whoever drew the trace says so; a claim without a name is one all the same."""
    said = found.metadata.get(SIMULATED)
    by = said.get("by") if isinstance(said, dict) else said
    return (by if isinstance(by, str) and by else "an unnamed program") if said else ""


def _rank(path: Path, found: Columns) -> tuple[int, str]:
    rank = _distributed(found, "rank")
    if rank >= 0:
        return rank, "trace"
    named = rank_in_name(path.name)
    return (0, "order") if named is None else (named, "file name")


def _world(found: Columns) -> int:
    return max(0, _distributed(found, "world_size"))


def _distributed(found: Columns, key: str) -> int:
    """A number of ``distributedInfo``, −1 where it is not said."""
    said = found.metadata.get("distributedInfo")
    value = said.get(key) if isinstance(said, dict) else None
    if isinstance(value, str) and _WHOLE.match(value):
        value = int(value)
    return value if isinstance(value, int) and 0 <= value < 2**31 else -1


def _device(found: Columns, draft: _Draft) -> int:
    """The device of most device events; 0 on CPU."""
    known = found.device[(found.device >= 0) & is_any(draft.told.kind, WORK)]
    known = known[known < 2**16]
    return int(np.bincount(known).argmax()) if draft.device_kind == "gpu" and len(known) else 0


def _marks(found: Columns, zero_ns: int) -> list[tuple[int, int, int]]:
    """(number, start, end) of the profiler's own step marks."""
    rows = np.flatnonzero(_is_step(found) & found.is_of(kineto_gpu.HOST))
    numbers = {code: int(found.names[code].split("#")[1]) for code in np.unique(found.name[rows]).tolist()}
    start_ns = found.start_ns[rows] - zero_ns
    ends = (start_ns + found.dur_ns[rows]).tolist()
    return list(zip([numbers[code] for code in found.name[rows].tolist()], start_ns.tolist(), ends, strict=True))


def _is_step(found: Columns) -> npt.NDArray[np.bool_]:
    # Most names are none, and the pattern costs more than their beginning.
    flags = np.array([name.startswith("Pro") and _STEP.match(name) is not None for name in found.names], dtype=np.bool_)
    return flags[found.name] if len(flags) else np.zeros(len(found.name), dtype=np.bool_)


def _spans(found: Columns, draft: _Draft, zero_ns: int, rank: int, device: int) -> SpanTable:
    """Rows in order of their start; ``link`` is the launch of a device row, or the call of a gloo span, and the forward
    operator of a backward function.

    ``found`` is used up: its columns become the table's, changed where they stand.
    """
    told = draft.told
    lane, lanes = _lanes(found, is_any(told.kind, WORK) & (found.stream >= 0))
    found.let_go("stream", "category", "collective", "elements", "peer")
    told.kind[_is_step(found) & (told.kind == Kind.HOST)] = Kind.STEP
    names = {"names": found.names, "lanes": lanes, "dtypes": found.dtypes, "groups": found.groups,
             "collectives": told.collectives, "rules": told.rules}  # fmt: skip
    own: dict[str, Any] = {
        "device": _devices(found, device),
        "lane": lane,
        "name": found.name,
        "kind": told.kind,
        "size_bytes": draft.size_bytes,
        "dtype": found.dtype,
        "group": found.group,
        "sequence": found.sequence,
        "collective": told.collective,
        "rule": told.rule,
    }
    if draft.rows is None:
        start_ns, end_ns = found.start_ns, found.dur_ns
        end_ns += start_ns
        own["link"] = _links(found, draft)
    else:
        by_start = np.argsort(draft.rows.start_ns, kind="stable")
        start_ns, end_ns, row = draft.rows.start_ns[by_start], draft.rows.end_ns[by_start], draft.rows.row[by_start]
        call = _with_forwards(found, draft.call)
        own = {name: taken(column, row) if np.ndim(column) else column for name, column in own.items()}
        own["link"] = -1 if call is None else _calls(call, row)
    found.let_go("correlation", "node")
    start_ns -= zero_ns
    end_ns -= zero_ns
    return span_table(start_ns=start_ns, end_ns=end_ns, rank=rank, **own, **names)


def _links(found: Columns, draft: _Draft) -> Ints | int:
    if draft.device_kind != "gpu":
        return -1
    link = kineto_gpu.launches(found.correlation, draft.told.kind)
    backward, forward = kineto_forward.forwards(found)
    link[backward] = forward
    return link


def _with_forwards(found: Columns, call: Ints | None) -> Ints | None:
    backward, forward = kineto_forward.forwards(found)
    if not len(backward):
        return call
    whole = np.full(len(found.start_ns), -1, dtype=np.int64) if call is None else call.copy()
    whole[backward] = forward
    return whole


def _calls(call: Ints, row: Ints) -> Ints:
    """The table's row of the call of each row, −1 where it has none."""
    place = np.full(len(call), -1, dtype=np.int64)
    place[row[::-1]] = np.arange(len(row))[::-1]
    return np.where(call[row] >= 0, place[np.maximum(call[row], 0)], -1)


def _devices(found: Columns, device: int) -> npt.NDArray[np.int32] | int:
    """The device of each row, ``device`` where a row says none; one number where all are the same."""
    column = found.device
    if is_constant(column):
        return int(column[0]) if 0 <= column[0] < 2**16 else device
    column[(column < 0) | (column >= 2**16)] = device
    return int(column[0]) if len(column) and (column == column[0]).all() else column.astype(np.int32, copy=False)


def _lanes(found: Columns, on_stream: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.int32], tuple[str, ...]]:
    """Streams by device and number, threads by name; shape (n,)."""
    names = [_thread_name(found, thread) for thread in found.threads]
    lane = found.thread
    pairs, number = _pairs(found.device[on_stream], found.stream[on_stream])
    if len(pairs):
        lane[on_stream] = number + len(names)
    return lane, (*names, *(f"stream {stream}" for _, stream in pairs))


def _pairs(device: Ints, stream: Ints) -> tuple[list[tuple[int, int]], npt.NDArray[np.int32]]:
    """The distinct pairs in order, and the number of each row's; both columns are of shape (n,)."""
    devices, device_codes = np.unique(device, return_inverse=True)
    streams, stream_codes = np.unique(stream, return_inverse=True)
    codes = device_codes * len(streams) + stream_codes
    used = np.flatnonzero(np.bincount(codes, minlength=1)) if len(codes) else codes
    pairs = [(int(devices[code // len(streams)]), int(streams[code % len(streams)])) for code in used.tolist()]
    return pairs, np.searchsorted(used, codes).astype(np.int32)


def _thread_name(found: Columns, thread: tuple[object, object]) -> str:
    named = found.thread_names.get(thread)
    return named[0] if named else f"thread {thread[1]}"


def _allocations(found: Columns, device_kind: str, device: int, zero_ns: int) -> Allocations | None:
    """The allocator's totals of host memory for a CPU rank, of the window's device for a GPU rank."""
    if device_kind == "gpu":
        keep = (found.memory_device_type > 0) & (found.memory_device == device)
    else:
        keep = found.memory_device_type == 0
    keep &= found.memory_total_bytes >= 0
    if not keep.any():
        return None
    order = np.argsort(found.memory_time_ns[keep], kind="stable")
    return Allocations(found.memory_time_ns[keep][order] - zero_ns, found.memory_total_bytes[keep][order])


READER = Reader(format="kineto", suffixes=(".json", ".json.gz"), sniff=sniff, read=read)
