"""What a frame of the timeline costs: ``python tests/benchmarks/timeline.py [SPANS]``; prints figures, asserts none.

20 lanes in 200 columns over as many spans as asked for (10⁷), at zooms from all of it down to a nanosecond a column.
CPU time of the process, the least of a few repetitions of each frame.
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
from meshscope.ui.look import Look
from meshscope.ui.screens.timeline import Timeline
from meshscope.ui.timeline import state
from meshscope.ui.timeline.drawing import place
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


def made(spans: int) -> Run:
    head = Experiment(
        t0_unix_ns=0, strategy="", title="made", framework="torch", ranks=RANKS, device_kind="gpu", model=""
    )
    windows = tuple(window(rank, spans // RANKS) for rank in range(RANKS))
    return replace(fold(head, [], path="made"), windows=windows)


def main(spans: int = 10_000_000) -> None:
    run = made(spans)
    begun = time.process_time()
    found = lanes(run)
    assert found is not None
    print(f"{spans} spans, {len(found.lanes)} lanes: laid out once in {time.process_time() - begun:.2f} s CPU")
    screen = Timeline(found, Waiting(), run, Look())
    width = COLUMNS + 23
    view = whole(found.start_ns, found.end_ns, place(width).columns)
    screen.state = state.begun(found, view)
    random_ = np.random.default_rng(0)
    took = []
    while view.span_ns > 2 * view.columns:
        for _ in range(5):
            at = int(random_.integers(found.start_ns, found.end_ns))
            shown = view.showing(at, at + view.span_ns)
            screen.state = state.begun(found, shown)
            screen.state = state.gone(replace(screen.state, view=shown), shown.start_ns)
            took.append((frame_s(screen, width), shown.span_ns))
        view = view.showing(view.start_ns, view.start_ns + view.span_ns // 2)
    frames = np.array([one for one, _ in took]) * 1e3
    median, p95 = np.percentile(frames, [50, 95])
    print(f"{len(frames)} frames: median {median:.2f}, p95 {p95:.2f}, most {frames.max():.2f} ms CPU")
    worst = took[int(frames.argmax())]
    print(f"the dearest shows {worst[1] / 1e6:.3f} ms of the run")


def frame_s(screen: Timeline, width: int) -> float:
    took = []
    for _ in range(3):
        begun = time.process_time()
        screen.frame(width, LINES)
        took.append(time.process_time() - begun)
    return min(took)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
