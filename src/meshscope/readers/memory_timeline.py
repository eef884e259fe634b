"""Memory timelines: what ``torch.profiler``'s ``export_memory_timeline`` writes, in its two forms that hold numbers.

``.raw.json.gz`` is a list of rows [time, action, bytes, category] in order; ``.json`` is [times, sizes by category],
added up already, times in µs. The third form, ``.html``, is a picture. Actions and the order of the categories are
those of ``torch.profiler._memory_profiler``: what was there before has the time −1, bytes of a DESTROY are negative,
and a new version of a tensor is a pair of rows that moves its bytes from one category to another (or the same).
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from meshscope.errors import TraceError
from meshscope.readers.damage import CUT_SHORT
from meshscope.readers.records import RecordReader, rank_of, whole
from meshscope.readers.windows import EARLIEST_UNIX_NS, NO_ABSOLUTE_TIME
from meshscope.records import MemoryRecord, Record
from meshscope.spans import Allocations, Counts

Ints = npt.NDArray[np.int64]

KIND = "memory timeline of torch.profiler"
CATEGORIES = (
    "parameters",
    "optimizer",
    "inputs",
    "temporaries",
    "activations",
    "gradients",
    "autograd detail",
    "unknown",
)
_PREEXISTING, _CREATE, _INCREMENT_VERSION, _DESTROY = 1, 2, 3, 4
_ACTIONS = ("preexisting", "create", "increment_version", "destroy")
_NAMES = re.compile(
    r"memory[-_]?(timeline|profile).*\.(raw|json|html)(\.json)?(\.gz)?$|\.raw(\.json)?(\.gz)?$", re.IGNORECASE
)
_NUMBERS = re.compile(rb"\A(\xef\xbb\xbf)?\s*\[\s*\[\s*-?\d")
_PICTURE = re.compile(rb"<title>[^<]*Memory Timeline", re.IGNORECASE)
_FEWEST_US = EARLIEST_UNIX_NS // 1000
_NO_DEVICE = ("device", "the file does not say of which device it is")
_NO_RESERVED = ("memory.reserved_bytes", "a timeline knows tensors, not what the allocator holds for them")
_NO_WORK = ("breakdown", f"a {KIND} holds no device work")
_NO_BEFORE = ("memory.preexisting_bytes", "added up by category, what was there before is not told apart")
_NO_WITHIN = ("memory.peak_bytes", "sizes are added up by microsecond: a peak within one is not seen")
_LIMIT = 1 << 50


def sniff(head: bytes) -> bool:
    """A list of lists of numbers, or the page that holds the picture."""
    return _NUMBERS.match(head) is not None or _PICTURE.search(head) is not None


def read(path: Path) -> tuple[Record, ...]:
    """One record: the file is of one device."""
    content, cut_short = whole(path)
    if _PICTURE.search(content[:4096]):
        raise TraceError(
            f"{path.name} is a picture of a memory timeline: it holds no numbers.",
            hint="Export it as memory_timeline.raw.json.gz (or .json): export_memory_timeline goes by the suffix.",
        )
    values, is_whole = _decoded(content, path)
    is_complete = is_whole and not cut_short
    dropped: Counter[str] = Counter() if is_complete else Counter({CUT_SHORT: 1})
    rank, rank_from = rank_of(path)
    about: dict[str, Any] = {"kind": KIND, "source": path.name, "rank": rank, "rank_from": rank_from,
                             "is_complete": is_complete, "device": -1, "device_kind": "none"}  # fmt: skip
    if _is_added_up(values):
        return (_added_up(values, dropped, about),)
    return (_replayed(values, dropped, about),)


def _decoded(content: bytes, path: Path) -> tuple[list[Any], bool]:
    """The rows, as many as are whole, and whether that is all of them."""
    text = content.removeprefix(b"\xef\xbb\xbf").strip()
    end = text.rfind(b"]") + 1
    for ending, is_whole in ((b"", True), (b"]", False), (b"]]", False)):
        try:
            values = msgspec.json.decode(text[:end] + ending if ending else text)
        except msgspec.MsgspecError:
            continue
        if isinstance(values, list) and values and all(isinstance(value, list) for value in values):
            return values, is_whole
    raise TraceError(
        f"{path.name} begins like a memory timeline and is none.",
        hint="Give what torch.profiler's export_memory_timeline wrote.",
    )


def _is_added_up(values: list[Any]) -> bool:
    return len(values) == 2 and bool(values[1]) and all(isinstance(row, list) for row in values[1])


def _rows(values: list[Any], width: int, dropped: Counter[str]) -> Ints:
    """Rows of that many whole numbers, shape (n, width); null is −1. What is none is counted."""
    kept = [row for row in values if len(row) == width and all(_fits(value) for value in row)]
    if len(kept) < len(values):
        dropped["row that is no event"] += len(values) - len(kept)
    whole_rows = [[-1 if value is None else value for value in row] for row in kept]
    return np.array(whole_rows, dtype=np.int64).reshape(-1, width)


def _fits(value: Any) -> bool:
    return value is None or (type(value) is int and -(2**62) < value < 2**62)


def _replayed(values: list[Any], dropped: Counter[str], about: dict[str, Any]) -> MemoryRecord:
    rows = _rows(values, 4, dropped)
    known = (rows[:, 1] >= _PREEXISTING) & (rows[:, 1] <= _DESTROY) & (np.abs(rows[:, 2]) < _LIMIT)
    if not known.all():
        dropped["row of an unknown action"] += int((~known).sum())
        rows = rows[known]
    if not len(rows):
        raise TraceError(
            f"{about['source']} holds no event.", hint="Profile at least one step with profile_memory=True."
        )
    time, action, size_bytes = rows[:, 0], rows[:, 1], rows[:, 2]
    change = np.where(action == _DESTROY, -np.abs(size_bytes), np.where(action == _INCREMENT_VERSION, 0, size_bytes))
    held = np.cumsum(change)
    at = int(held.argmax())
    moved = np.where(action == _INCREMENT_VERSION, size_bytes, change)
    counts = np.bincount(action, minlength=5)
    time_ns, has_time = _unix_ns(time)
    is_before = action == _PREEXISTING
    return _record(
        about,
        time_ns[~is_before],
        held[~is_before],
        _running_by_category(rows[:, 3], moved)[:, ~is_before],
        has_time=has_time,
        counts=Counts(read=len(values), dropped=dict(dropped)),
        cannot_say=(_NO_WORK, _NO_RESERVED, _NO_DEVICE),
        peak_bytes=max(0, int(held.max())),
        end_bytes=int(held[-1]),
        preexisting_bytes=int(change[is_before].sum()),
        categories=_by_category(rows[: at + 1, 3], moved[: at + 1]),
        actions={name: int(counts[number]) for number, name in enumerate(_ACTIONS, 1) if counts[number]},
    )


def _running_by_category(category: Ints, moved: Ints) -> Ints:
    """Bytes by category after each row, shape (categories, n)."""
    is_mine = _number(category)[None, :] == np.arange(len(CATEGORIES))[:, None]
    running: Ints = np.cumsum(np.where(is_mine, moved[None, :], 0), axis=1)
    return running


def _number(category: Ints) -> Ints:
    """A category beyond those known is ``unknown``."""
    return np.where((category >= 0) & (category < len(CATEGORIES)), category, len(CATEGORIES) - 1)


def _by_category(category: Ints, moved: Ints) -> dict[str, int]:
    """Bytes by category once some rows are done."""
    number = _number(category)
    totals = np.zeros(len(CATEGORIES), dtype=np.int64)
    np.add.at(totals, number, moved)
    return {name: int(total) for name, total in zip(CATEGORIES, totals.tolist(), strict=True) if total}


def _added_up(values: list[Any], dropped: Counter[str], about: dict[str, Any]) -> MemoryRecord:
    """Each row of sizes begins with a zero, the ground of the plot."""
    sizes = _rows(values[1], 1 + len(CATEGORIES), dropped)
    times = np.array([value if _fits(value) and value is not None else -1 for value in values[0]], dtype=np.int64)
    count = min(len(sizes), len(times))
    if not count or (np.abs(sizes) >= _LIMIT).any():
        raise TraceError(f"{about['source']} holds no sizes.", hint="Export it as memory_timeline.raw.json.gz instead.")
    times, sizes = times[:count], sizes[:count]
    held = sizes.sum(axis=1)
    at = int(held.argmax())
    time_ns, has_time = _unix_ns(times)
    categories = {name: int(value) for name, value in zip(CATEGORIES, sizes[at, 1:].tolist(), strict=True) if value}
    return _record(
        about,
        time_ns,
        held,
        sizes[:, 1:].T,
        has_time=has_time,
        counts=Counts(read=count, dropped=dict(dropped)),
        cannot_say=(_NO_WORK, _NO_RESERVED, _NO_DEVICE, _NO_BEFORE, _NO_WITHIN),
        peak_bytes=max(0, int(held.max())),
        end_bytes=int(held[-1]),
        categories=categories,
    )


def _record(
    about: dict[str, Any], time_ns: Ints, held: Ints, by_category: Ints, *, has_time: bool, **figures: Any
) -> MemoryRecord:
    """Rows that nothing follows at the same time are what was held then. ``by_category`` has shape (categories, n)."""
    zero_ns = 0 if has_time or not len(time_ns) else int(time_ns.min())
    last = np.append(np.diff(time_ns) != 0, np.True_) if len(time_ns) else np.empty(0, dtype=bool)
    if not has_time:
        figures["cannot_say"] = (*figures["cannot_say"], NO_ABSOLUTE_TIME)
    return MemoryRecord(
        **about,
        **figures,
        start_ns=int(time_ns.min()) - zero_ns if len(time_ns) else 0,
        end_ns=int(time_ns.max()) - zero_ns if len(time_ns) else 0,
        has_unix_time=has_time,
        peak_how="replayed",
        allocations=Allocations(time_ns[last] - zero_ns, held[last]),
        category_bytes={name: row[last] for name, row in zip(CATEGORIES, by_category, strict=True) if row.any()},
    )


def _unix_ns(time: Ints) -> tuple[Ints, bool]:
    """Times in ns, and whether they are unix times: torch wrote µs before 2.2, and ns since."""
    known = time[time > 0]
    if len(known) and known.min() >= EARLIEST_UNIX_NS:
        return time, True
    if len(known) and known.min() >= _FEWEST_US:
        return np.where(time < 0, time, time * 1000), True
    return time, False


RECORD_READER = RecordReader(
    format="torch memory timeline", names=_NAMES, sniff=sniff, read=read, called="memory_timeline.raw.json.gz, .json"
)
