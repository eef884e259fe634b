"""Where the keys go."""

from __future__ import annotations

from dataclasses import replace

import drawn
import made_spans
import pytest

from meshscope.analysis.lanes import Lanes, lanes
from meshscope.errors import InputError
from meshscope.run import Run
from meshscope.ui.timeline import going, ranking, state
from meshscope.ui.timeline.beginning import begun
from meshscope.ui.timeline.searching import search
from meshscope.ui.timeline.state import State
from meshscope.ui.timeline.viewport import whole

PICTURE = """
0 compute     ####......####..
0 all_reduce  ..####...##.....
0 step        aaaaaaaabbbbbbbb
1 compute     ##......######..
1 all_reduce  ....##...##.....
1 step        aaaaaaaabbbbbbbb
"""


def opened(run: Run) -> tuple[Lanes, State]:
    found = lanes(run)
    assert found is not None
    return found, begun(found, whole(found.start_ns, found.end_ns, 80))


def where(there: State | None) -> tuple[int, str, int]:
    assert there is not None
    return there.rank, there.role, there.at_ns


def test_to_the_next_collective_and_back() -> None:
    found, now = opened(drawn.timeline(PICTURE))
    first = going.next_collective(found, now, 1)
    assert where(first) == (0, "collectives", 20)
    assert first is not None
    second = going.next_collective(found, first, 1)
    assert where(second) == (0, "collectives", 90)
    assert second is not None
    assert going.next_collective(found, second, 1) is None
    assert where(going.next_collective(found, second, -1)) == (0, "collectives", 20)


def test_to_exposed_stretches_and_steps() -> None:
    found, now = opened(drawn.timeline(PICTURE))
    assert where(going.next_exposed(found, now, 1)) == (0, "collectives", 40)
    assert where(going.next_step(found, now, 1))[2] == 80
    assert going.next_step(found, replace(now, at_ns=80), 1) is None
    assert where(going.next_step(found, replace(now, at_ns=90), -1))[2] == 80


def test_the_same_collective_on_the_next_rank() -> None:
    """Of two on rank 1, the one that ends when mine does; another kind of collective is none."""
    found, now = opened(drawn.timeline(PICTURE))
    here = going.next_collective(found, now, 1)
    assert here is not None
    there = going.across(found, here, 1)
    assert where(there) == (1, "collectives", 40)
    other, now = opened(drawn.timeline(PICTURE.replace("1 all_reduce", "1 all_gather")))
    here = going.next_collective(other, now, 1)
    assert here is not None
    assert going.across(other, here, 1) is None


def test_from_a_kernel_to_its_launch_and_back() -> None:
    launch = made_spans.launch(0, 10)
    run = drawn.run(windows=[made_spans.window([launch, made_spans.kernel(20, 50, launch)])])
    found, now = opened(run)
    kernel = going.next_span(found, replace(now, role="compute", at_ns=0), 1)
    assert where(kernel) == (0, "compute", 20)
    assert kernel is not None
    back = going.followed(found, kernel)
    assert where(back) == (0, "host", 0)
    assert back is not None
    assert where(going.followed(found, back)) == (0, "compute", 20)


def test_the_longest_on_the_screen_then_the_next_longest() -> None:
    """0–20, 30–70 and 80–130."""
    found, now = opened(drawn.timeline("0 compute ##.####.#####\n0 step aaaaaaaaaaaaa"))
    longest = going.longest(found, now, 1)
    assert where(longest) == (0, "compute", 80)
    assert longest is not None
    second = going.longest(found, longest, 1)
    assert where(second)[2] == 30
    assert second is not None
    assert where(going.longest(found, second, -1))[2] == 80
    third = going.longest(found, second, 1)
    assert where(third)[2] == 0
    assert third is not None
    assert going.longest(found, third, 1) is None
    assert where(going.longest(found, replace(now, view=now.view.showing(-10, 70)), 1))[2] == 30


def test_search_by_a_piece_of_a_name_whatever_its_case() -> None:
    found, now = opened(drawn.timeline(PICTURE))
    assert search(found, "  ") is None
    now = replace(now, search=search(found, "ALL_RED"))
    first = going.next_match(found, now, 1)
    assert where(first) == (0, "collectives", 20)
    assert first is not None
    second = going.next_match(found, first, 1)
    assert where(second) == (1, "collectives", 40)
    assert second is not None
    assert where(going.next_match(found, second, -1)) == (0, "collectives", 20)
    nothing = replace(now, search=search(found, "no such name"))
    assert going.next_match(found, nothing, 1) is None


def test_matches_that_begin_at_one_time_are_visited_lane_by_lane() -> None:
    """On both ranks at 90: from rank 0 to rank 1 and back."""
    found, now = opened(drawn.timeline(PICTURE))
    now = replace(now, search=search(found, "all_reduce"), at_ns=60)
    first = going.next_match(found, now, 1)
    assert where(first) == (0, "collectives", 90)
    assert first is not None
    second = going.next_match(found, first, 1)
    assert where(second) == (1, "collectives", 90)
    assert second is not None
    assert going.next_match(found, second, 1) is None
    assert where(going.next_match(found, second, -1)) == (0, "collectives", 90)


def test_a_step_by_its_number() -> None:
    found, now = opened(drawn.timeline(PICTURE))
    there = going.to_step(found, now, " 1 ")
    assert (there.at_ns, there.view.start_ns <= 80, there.view.stop_ns >= 160) == (80, True, True)
    for text in ("x", "", "-1", "9" * 30, "1.5"):
        with pytest.raises(InputError, match="is the number of no step") as caught:
            going.to_step(found, now, text)
        assert caught.value.hint == "Steps 0–1 were profiled."
    with pytest.raises(InputError, match=r"^Step 7 was not profiled; steps 0–1 were\.$"):
        going.to_step(found, now, "7")


def test_one_step_that_was_profiled_is_told_by_its_number() -> None:
    """Not as how many there are."""
    found, now = opened(drawn.timeline("0 compute ####\n0 step aaaa"))
    with pytest.raises(InputError, match=r"^Step 99 was not profiled; step 0 was\.$"):
        going.to_step(found, now, "99")


def test_a_collective_without_a_counterpart_at_its_time_leads_nowhere() -> None:
    """Rank 1's is over before rank 0's begins; rank 2 has it."""
    picture = (
        "0 all_reduce ....##\n0 step aaaaaa\n1 all_reduce ##....\n1 step aaaaaa\n2 all_reduce .....#\n2 step aaaaaa"
    )
    run = drawn.timeline(picture)
    found, now = opened(run)
    found = replace(found, residual_ns=None)
    here = going.next_collective(found, now, 1)
    assert here is not None
    assert where(going.across(found, here, 1)) == (2, "collectives", 50)


def test_a_chosen_span_between_columns_is_the_longest_in_its_column() -> None:
    """One column shows all of it: at 65 no span is."""
    found, now = opened(drawn.timeline(PICTURE))
    one = replace(now, view=replace(now.view, columns=1).showing(0, 160), at_ns=65, rank=0, role="compute")
    assert going.chosen(found, one) == (0, 0)


@pytest.mark.parametrize(
    ("text", "ranks"), [("0", (0,)), ("0,1", (0, 1)), ("1-5", (1,)), ("1, 0", (0, 1)), ("", (0, 1)), (" ", (0, 1))]
)
def test_only_some_ranks(text: str, ranks: tuple[int, ...]) -> None:
    found, now = opened(drawn.timeline(PICTURE))
    assert ranking.filtered(found, now, text).shown == ranks


@pytest.mark.parametrize(
    ("text", "missing"),
    [("0,9", "9"), ("0-1", ""), ("", ""), ("1-5", "2–5"), ("7-9, 1", "7–9"), ("0 – 2", "2"), ("4,5", "4, 5")],
)
def test_ranks_that_are_not_there_are_named(text: str, missing: str) -> None:
    assert ranking.unknown(text, (0, 1)) == missing


@pytest.mark.parametrize("text", ["x", "5", "1-", "-1", "0..1", "9999999999"])
def test_ranks_that_are_none_are_refused(text: str) -> None:
    found, now = opened(drawn.timeline(PICTURE))
    with pytest.raises(InputError):
        ranking.filtered(found, now, text)


def test_ranks_by_what_they_expose_on_the_screen() -> None:
    """Rank 0 exposes 40–60 and 90–100, rank 1 40–60 alone."""
    found, now = opened(drawn.timeline(PICTURE))
    assert ranking.sorted_by(found, now, "exposed").shown == (0, 1)
    later = replace(now, view=now.view.showing(0, 80))
    assert ranking.sorted_by(found, later, "busy").shown == (0, 1)  # 60 and 40 ns
    assert ranking.sorted_by(found, replace(now, view=now.view.showing(80, 160)), "busy").shown == (1, 0)  # 50 and 60


def test_the_cursor_moves_the_stretch_along_at_its_edge() -> None:
    found, now = opened(drawn.timeline(PICTURE))
    del found
    near = replace(now, view=now.view.showing(0, 80), at_ns=0)
    for _ in range(81):
        near = state.time_moved(near, 1)
    assert near.at_ns == near.view.edge(79)
    assert near.view.start_ns > 0


def test_a_third_mark_begins_anew() -> None:
    _, now = opened(drawn.timeline(PICTURE))
    for at in (10, 20, 30):
        now = state.marked(replace(now, at_ns=at))
    assert now.marks == (30,)
