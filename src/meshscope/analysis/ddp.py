"""DDP checked: its buckets and what sticks out behind the backward pass, accumulation that synchronizes too often,
the search for unused parameters, and the buffers that are broadcast before each forward pass."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from meshscope.analysis.host_activity import host_named
from meshscope.analysis.parts import per_run
from meshscope.analysis.passes import Pass, is_ddp, marks_optimizer, passes
from meshscope.analysis.phase_names import OPTIMIZER, PHASES
from meshscope.analysis.phases import phase_of
from meshscope.analysis.places import places
from meshscope.analysis.waiting import waiting
from meshscope.intervals import Intervals, difference, union
from meshscope.run import Run
from meshscope.spans import Kind, Window
from meshscope.units import ratio

Ints = npt.NDArray[np.int64]

_SEARCH = re.compile(r"^torch(\.|::)distributed(\.ddp\.|::)reducer::search_unused_parameters")


@dataclass(frozen=True)
class Bucket:
    """One bucket, in the mean over the passes and ranks; times count from the beginning of the backward pass where its
    work runs (on a GPU from its first kernel: the host's calls are by another clock).

    ``size_bytes`` is None where it is not known. ``ready_ns`` is when its all-reduce had been asked for and what was
    launched before it had been computed, ``end_ns`` when it ended; ``after_ns`` is the part of ``exposed_ns`` behind
    the backward pass's last computation.
    """

    number: int
    size_bytes: int | None
    ready_ns: float
    begin_ns: float
    end_ns: float
    busy_ns: float
    exposed_ns: float
    after_ns: float


@dataclass(frozen=True)
class Ddp:
    """All ranks and windows together. From the mean pass's first computation to its last it is ``computed_ns``, which
    ``tail_ns`` of exposed all-reduces follow; ``tail_frac`` is the share of all tails in the windows' length,
    ``covered_ns``. In ``waited_ns`` of the mean tail they do nothing but wait for a late rank; that is not known of
    ``unmatched`` passes.
    ``device_step_ns`` is how long a step takes a device, from pass to pass; NaN where that is not known.

    ``buckets`` are those of the most frequent series of sizes, ``alike`` of ``passes``. ``repeats`` counts optimizer
    steps whose gradients were all-reduced in the same series more than once, in ``repeated`` passes too many, whose
    exposed time is ``repeated_ns``. ``search_ns`` is what the search for unused parameters took on the host
    (``searches`` times), ``buffers_ns`` the exposed time of ``buffers`` broadcasts.
    """

    ranks: tuple[int, ...]
    passes: int
    alike: int
    buckets: tuple[Bucket, ...]
    computed_ns: float
    tail_ns: float
    tail_frac: float
    waited_ns: float
    unmatched: int
    device_step_ns: float
    covered_ns: int
    passes_per_step: float
    optimizer_steps: int
    repeats: int
    repeated: int
    repeated_ns: int
    searches: int
    search_ns: int
    buffers: int
    buffers_ns: int


@per_run
def ddp(run: Run) -> Ddp | None:
    """None where no trace shows a backward pass of DDP."""
    windows = [window for window in run.windows if is_ddp(window)]
    found = [one for window in windows for one in passes(window)]
    synced = [one for one in found if len(one.row)]
    if not synced:
        return None
    ((signature, alike),) = Counter(one.signature for one in synced).most_common(1)
    covered_ns = sum(window.end_ns - window.start_ns for window in windows)
    in_steps = sum(one.step >= 0 for one in synced)
    repeats, extra = repeated(windows)
    buffered = [broadcasts(window) for window in windows]
    searched = [searches(window) for window in windows]
    waited_ns = [ns for _, _, ns in waited(run)]
    return Ddp(
        ranks=tuple(sorted({one.rank for one in synced})),
        passes=len(synced),
        alike=alike,
        buckets=_buckets([one for one in synced if one.signature == signature]),
        computed_ns=float(np.mean([one.computed_ns - one.begun_ns for one in synced])),
        tail_ns=float(np.mean([one.tail_ns for one in synced])),
        tail_frac=ratio(sum(one.tail_ns for one in synced), covered_ns),
        waited_ns=sum(ns or 0 for ns in waited_ns) / len(synced),
        unmatched=sum(ns is None for ns in waited_ns),
        device_step_ns=_period_ns(windows) * ratio(in_steps, sum(len(window.steps) for window in windows)),
        covered_ns=covered_ns,
        passes_per_step=ratio(in_steps, sum(len(window.steps) for window in windows)),
        optimizer_steps=len({(one.rank, one.optimizer, id(window)) for window in windows for one in passes(window)}),
        repeats=repeats,
        repeated=len(extra),
        repeated_ns=sum(one.exposed.total_ns for _, one in extra),
        searches=sum(len(rows) for rows, _ in searched),
        search_ns=sum(when.total_ns for _, when in searched),
        buffers=sum(len(rows) for rows, _ in buffered),
        buffers_ns=sum(exposed.total_ns for _, exposed in buffered),
    )


_HALF = {
    re.compile(r"(^|::)(half|float16|fp16)$", re.IGNORECASE): "fp16",
    re.compile(r"(^|::)b(rain_)?float_?16$|^bf16$", re.IGNORECASE): "bf16",
}


def sent_as(run: Run) -> str:
    """``fp16`` or ``bf16`` where every bucket was sent in it; "" where not, or where types are not told."""
    types = {
        window.spans.dtypes[code] if code >= 0 else ""
        for window in run.windows
        for one in passes(window)
        for code in np.unique(window.spans.dtype[one.row]).tolist()
    }
    return next((word for pattern, word in _HALF.items() if types and all(map(pattern.search, types))), "")


def _period_ns(windows: Sequence[Window]) -> float:
    """From the last computation of a pass with all-reduces to that of the next, in the mean; NaN without two."""
    ends = [[one.computed_ns for one in passes(window) if len(one.row)] for window in windows]
    apart = [times[-1] - times[0] for times in ends if len(times) > 1]
    return ratio(sum(apart), sum(len(times) - 1 for times in ends if len(times) > 1))


def waited(run: Run) -> list[tuple[Window, Pass, int | None]]:
    """What each pass with all-reduces waited for late ranks in its tail; None where they were not all matched."""
    waits = waiting(run).windows
    found: list[tuple[Window, Pass, int | None]] = []
    for window in run.windows:
        here = waits.get(window)
        for one in passes(window):
            if not len(one.row):
                continue
            is_matched = here is not None and bool(np.isin(one.row, here.row).all())
            tail = here.waiting(np.isin(here.row, one.row)) & one.tail if here is not None and is_matched else None
            found.append((window, one, None if tail is None else tail.total_ns))
    return found


def _buckets(found: Sequence[Pass]) -> tuple[Bucket, ...]:
    start_ns = np.array([one.begun_ns for one in found], dtype=np.int64)[:, None]
    means = {
        name: (np.stack([getattr(one, name) for one in found]) - start_ns).mean(axis=0)
        for name in ("ready_ns", "begin_ns", "end_ns")
    }
    means |= {name: np.stack([getattr(one, name) for one in found]).mean(axis=0) for name in ("exposed_ns", "after_ns")}
    means["busy_ns"] = np.stack([one.end_ns - one.begin_ns for one in found]).mean(axis=0)
    return tuple(
        Bucket(
            number=number + 1,
            size_bytes=size_bytes if size_bytes >= 0 else None,
            **{name: float(values[number]) for name, values in means.items()},
        )
        for number, size_bytes in enumerate(found[0].signature)
    )


def repeated(windows: Sequence[Window]) -> tuple[int, list[tuple[Window, Pass]]]:
    """Optimizer steps before which one series of buckets went out several times, and the passes that need not have.

    Unknown sizes are no series: two passes of equal length may be of different models. Where no step of an optimizer is
    marked nothing is known to be accumulated.
    """
    repeats = 0
    extra: list[tuple[Window, Pass]] = []
    for window in windows:
        steps: dict[int, list[Pass]] = defaultdict(list)
        for one in passes(window) if marks_optimizer(window) else ():
            steps[one.optimizer].append(one)
        for some in steps.values():
            synced = [one for one in some if len(one.row)]
            signatures = {one.signature for one in synced}
            if len(synced) > 1 and len(signatures) == 1 and min(synced[0].signature) >= 0:
                repeats += 1
                extra += [(window, one) for one in synced[:-1]]
    return repeats, extra


def searches(window: Window) -> tuple[Ints, Intervals]:
    """The rows of searches for unused parameters, and their time on the host."""
    spans = window.spans
    rows = np.flatnonzero(host_named(spans, _SEARCH.search))
    return rows, union(spans.start_ns[rows], spans.end_ns[rows])


def broadcasts(window: Window) -> tuple[Ints, Intervals]:
    """Rows of broadcasts, which DDP uses for nothing but buffers once it trains, and their exposed time.

    Those that an optimizer asks for are its own: ZeRO's send the parameters that a rank has updated.
    """
    spans = window.spans
    is_broadcast = np.array([name == "broadcast" for name in (*spans.collectives, "")], dtype=bool)
    is_one = (spans.kind == Kind.COLLECTIVE) & is_broadcast[spans.collective]
    phase = phase_of(window)
    if phase is not None:
        is_one[places(window).row[phase == PHASES.index(OPTIMIZER)]] = False
    rows = np.flatnonzero(is_one)
    busy = union(spans.start_ns[rows], spans.end_ns[rows])
    return rows, difference(busy, spans.busy(Kind.COMPUTE))


def doubts(run: Run) -> tuple[tuple[str, str], ...]:
    """Why DDP's passes are not known although there are some, or only in part."""
    said: dict[str, None] = {}
    for window in run.windows:
        if window.device_kind == "none" or not is_ddp(window):
            continue
        found = passes(window)
        if not found:
            said["the trace does not show which all-reduce the backward pass asked for"] = None
        unsized = [one for one in found if len(one.row) and min(one.signature) < 0]
        if unsized:
            said["sizes of buckets are not known, so accumulation without no_sync cannot be told"] = None
    return tuple(("ddp", why) for why in said)
