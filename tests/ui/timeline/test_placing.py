"""Where a finding is looked at on the timeline."""

from __future__ import annotations

import drawn
import pytest

from meshscope.analysis.findings import Finding
from meshscope.analysis.lanes import lanes
from meshscope.ui.timeline.beginning import begun
from meshscope.ui.timeline.placing import placed
from meshscope.ui.timeline.state import State
from meshscope.ui.timeline.viewport import whole

PICTURE = """
0 compute     ####..####..............
0 all_reduce  ...##.....####..........
0 step        aaaaaaaaaaaaaaaaaaaaaaaa
1 compute     ##......................
1 all_reduce  ..###.....####..........
1 step        aaaaaaaaaaaaaaaaaaaaaaaa
"""


def gone_to(code: str, *ranks: int) -> State | None:
    found = lanes(drawn.timeline(PICTURE, tells_wait=False))
    assert found is not None
    first = begun(found, whole(found.start_ns, found.end_ns, 80))
    return placed(found, first, Finding(code, code, (), "", "", ranks=ranks))


@pytest.mark.parametrize(
    ("code", "ranks", "place"),
    [
        ("exposed-tail", (0,), (0, "collectives", 100)),  # 40 exposed there, 10 at 40
        ("no-overlap", (), (0, "collectives", 100)),
        ("straggler", (0,), (1, "collectives", 20)),  # rank 1 waits 10 for rank 0, which comes at 30
        ("host-bound", (1,), (1, "compute", 50)),  # nothing from 50 to 100
    ],
)
def test_where_it_is_longest(code: str, ranks: tuple[int, ...], place: tuple[int, str, int]) -> None:
    there = gone_to(code, *ranks)
    assert there is not None
    assert (there.rank, there.role, there.at_ns) == place
    assert there.view.start_ns <= place[2] < there.view.stop_ns


def test_one_that_no_stretch_shows() -> None:
    assert gone_to("same-key") is None
    assert gone_to("straggler", 0, 1) is None
