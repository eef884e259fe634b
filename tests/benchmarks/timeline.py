"""What a frame of the timeline costs: ``python tests/benchmarks/timeline.py [SPANS]``; prints figures, asserts none.

21 lanes in 200 columns over as many spans as asked for (10⁷), at zooms from all of it down to a nanosecond a column;
then 64 and 1024 ranks, as many lines as find room in 60. Zooms are drawn anew; the cursor alone moves over one.
CPU time of the process, the least of three repetitions of each frame; garbage is collected as in the application.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace

import numpy as np

from meshscope.analysis.lanes import lanes
from meshscope.analysis.waiting import Waiting
from meshscope.experiment import Experiment
from meshscope.kinds import Kind
from meshscope.run import Run, fold
from meshscope.spans import Counts, Window, span_table
from meshscope.ui.app import collect_less
from meshscope.ui.timeline import state
from meshscope.ui.timeline.beginning import begun
from meshscope.ui.timeline.frame import Extent, Subject, frame, scrolled
from meshscope.ui.timeline.listing import visible
from meshscope.ui.timeline.state import State
from meshscope.ui.timeline.viewport import whole

RANKS, COLUMNS, LINES = 7, 200, 30
_KINDS = (Kind.COMPUTE, Kind.COLLECTIVE, Kind.COPY)


def window(rank: int, count: int) -> Window:
    """Spans of three kinds in turn, some of them at once."""
    random_ = np.random.default_rng(rank)
    start_ns = np.cumsum(random_.integers(1, 2000, count))
    end_ns = start_ns + random_.integers(1, 3000, count)
    kind = random_.choice([int(kind) for kind in _KINDS], count).astype(np.uint8)
    names = tuple(f"kernel_{number}" for number in range(500))
    spans = span_table(
        start_ns=start_ns, end_ns=end_ns, kind=kind, rank=rank, name=random_.integers(0, 500, count), names=names,
        lanes=("stream 7",), step=np.zeros(count),
    )  # fmt: skip
    last = int(end_ns.max())
    return Window(
        rank=rank, device=0, rank_from="made", framework="torch", device_kind="gpu", start_ns=0, end_ns=last,
        steps=(0,), step_ns=np.array([[0, last]]), is_complete=True, spans=spans, counts=Counts(), source="made",
    )  # fmt: skip


def made(spans: int, ranks: int = RANKS) -> Run:
    head = Experiment(
        t0_unix_ns=0, strategy="", title="made", framework="torch", ranks=ranks, device_kind="gpu", model=""
    )
    windows = tuple(window(rank, spans // ranks) for rank in range(ranks))
    return replace(fold(head, [], path="made"), windows=windows)


def many(ranks: int) -> Run:
    """A rank more is a lane more: 2000 spans on each."""
    return made(2000 * ranks, ranks)


def main(spans: int = 10_000_000) -> None:
    collect_less()
    measure(f"{spans} spans", made(spans), Extent(COLUMNS + 23, LINES))
    for ranks in (64, 1024):
        measure(f"{ranks} ranks", many(ranks), Extent(COLUMNS + 20, 60))


def measure(what: str, run: Run, extent: Extent) -> None:
    started = time.process_time()
    found = lanes(run)
    assert found is not None
    took_s = time.process_time() - started
    view = whole(found.start_ns, found.end_ns, extent.placed.columns)
    subject, first = Subject(found, Waiting(), "made"), begun(found, view)
    drawn = min(len(visible(found, first)), extent.lanes)
    print(f"{what}, {drawn} lines in {extent.width} × {extent.height}: laid out once in {took_s:.2f} s CPU")
    random_ = np.random.default_rng(0)
    panned, moved = [], []
    while view.span_ns > 2 * view.columns:
        for _ in range(5):
            at = int(random_.integers(found.start_ns, found.end_ns))
            shown = view.showing(at, at + view.span_ns)
            there = state.gone(replace(first, view=shown), shown.start_ns)
            panned.append((frame_s(subject, there, extent), shown.span_ns))
            moved.append(frame_s(subject, state.time_moved(there, 1), extent, is_new=False))
        view = view.showing(view.start_ns, view.start_ns + view.span_ns // 2)
    say("zoom or pan", [one for one, _ in panned])
    say("cursor alone", moved)
    worst = max(panned)
    print(f"  the dearest shows {worst[1] / 1e6:.3f} ms of the run")


def say(what: str, frames_s: list[float]) -> None:
    frames = np.array(frames_s) * 1e3
    median, p95 = np.percentile(frames, [50, 95])
    print(f"  {what}: {len(frames)} frames: median {median:.2f}, p95 {p95:.2f}, most {frames.max():.2f} ms CPU")


def frame_s(subject: Subject, there: State, extent: Extent, *, is_new: bool = True) -> float:
    took = []
    for _ in range(3):
        if is_new:
            # Another stretch than the last one drew, which is kept.
            frame(subject, replace(there, view=whole(subject.lanes.start_ns, subject.lanes.end_ns, 1)), Extent(24, 8))
        begun_s = time.process_time()
        frame(subject, scrolled(subject.lanes, there, extent.lanes), extent)
        took.append(time.process_time() - begun_s)
    return min(took)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
