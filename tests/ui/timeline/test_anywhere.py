"""Whatever keys are pressed, in whatever order, over whatever run: something is drawn, and every line is as wide."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import drawn
import made_spans
import pytest
from meeting import later, met, run_of
from staged_timeline import linked, subject

from meshscope.errors import InputError
from meshscope.run import Run
from meshscope.ui.look import Look
from meshscope.ui.timeline import going, ranking
from meshscope.ui.timeline.beginning import begun, carried
from meshscope.ui.timeline.frame import Extent, above, below, scrolled
from meshscope.ui.timeline.moves import MOVES
from meshscope.ui.timeline.searching import search
from meshscope.ui.timeline.state import State, departed
from meshscope.ui.timeline.telling import told
from meshscope.ui.timeline.viewport import whole


def apart() -> Run:
    """Two ranks whose clocks are far apart."""
    first, second = met([[0, 10_000_000], [1_000_000, 11_000_000]], [2_000_000, 2_000_000])
    return run_of([first, later(second, 11_560_000_000)])


RUNS: dict[str, Callable[[], Run]] = {
    "linked": linked,
    "twenty": lambda: run_of(met([[rank, 1000 + rank] for rank in range(20)], [50, 50])),
    "apart": apart,
    "host_alone": lambda: drawn.timeline("3 host ##.#\n3 step aaaa"),
    "short": lambda: drawn.run(windows=[drawn.windows("0 compute #")[0]]),
    "without_length": lambda: drawn.run(windows=[made_spans.window([made_spans.kernel(5, 5)])]),
}
SIZES = ((80, 24), (220, 60), (40, 10), (12, 4), (1, 1))


@pytest.mark.parametrize("name", RUNS)
def test_keys_in_any_order_over_any_run(name: str) -> None:
    choose = random.Random(name)
    about, grown = subject(RUNS[name]()), subject(linked())
    lanes = about.lanes
    now = begun(lanes, whole(lanes.start_ns, lanes.end_ns, Extent(80, 24).placed.columns))
    for _ in range(400):
        there = MOVES[choose.choice(tuple(MOVES))](lanes, now)
        now = departed(now, there) if there is not None else now
        now = _now_and_then(choose, about.lanes, now)
        if choose.random() < 0.2:
            extent = Extent(*choose.choice(SIZES))
            now = replace(now, view=now.view.sized(extent.placed.columns))
            now = scrolled(lanes, now, extent.lanes)
            for strip in [*above(about, now, extent, Look()), *below(about, now, extent, Look())]:
                assert strip.cell_length == sum(part.cell_length for part in strip)
                assert strip.cell_length == extent.width or extent.width < extent.placed.gutter + 2
        if choose.random() < 0.02:
            now = carried(grown.lanes, lanes, carried(lanes, grown.lanes, now))
        assert now.view.span_ns >= now.view.columns
        assert now.rank in now.shown


def _now_and_then(choose: random.Random, lanes: going.Lanes, now: State) -> State:
    """What is typed, and what is asked of the span under the cursor."""
    drawn_number = choose.random()
    if drawn_number < 0.05:
        return replace(now, search=search(lanes, choose.choice(("e", "all", "zzz", ""))))
    if drawn_number < 0.1:
        try:
            return ranking.filtered(lanes, now, choose.choice(("0", "0-9", "5,7", "x", "")))
        except InputError:
            return now
    here = going.chosen(lanes, now)
    if here is not None and drawn_number < 0.2:
        assert told(lanes, *here, subject(linked()).waits)
    return now
