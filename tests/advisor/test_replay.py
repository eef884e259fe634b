"""A step is played piece by piece; what repeats is skipped, and nothing changes by it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshscope.advisor.replay import COMPUTE, Clocks, Piece, Repeat, play


def compute(seconds: float, *waits: tuple[str, int], gives: str = "layer") -> Piece:
    return Piece(COMPUTE, seconds, "work", waits=waits, gives=gives)


def sent(seconds: float, *waits: tuple[str, int], gives: str = "gathered", lane: str = "link") -> Piece:
    return Piece(lane, seconds, "gather", waits=waits, gives=gives)


def gathering(work_s: float, gather_s: float, layers: int) -> Repeat:
    """FSDP's forward: the next layer is gathered while this one computes, not before the last one's buffer is free."""
    ahead, own = sent(gather_s, ("layer", 0)), compute(work_s, ("gathered", 1))
    return Repeat((sent(gather_s), Repeat((ahead, own), layers - 1), compute(work_s, ("gathered", 0))))


def test_a_gather_shorter_than_a_layer_shows_once():
    played = play(gathering(work_s=5, gather_s=3, layers=10))
    assert played.now_s == pytest.approx(3 + 10 * 5)
    assert played.waited == pytest.approx({"link": 3})


def test_a_gather_longer_than_a_layer_shows_in_every_layer_by_what_it_is_longer():
    # The first is waited for whole; each of the nine others ends 4 seconds after the layer beside it.
    played = play(gathering(work_s=3, gather_s=7, layers=10))
    assert played.waited["link"] == pytest.approx(7 + 4 * 9)
    assert played.now_s == pytest.approx(7 + 9 * 7 + 3)


def test_compute_beside_a_collective_is_slower_by_the_contention():
    # Six seconds of work, three of them beside the collective: half as slow again for those.
    played = play(Repeat((sent(3.0), compute(6.0))), contention=1.5)
    assert played.lanes[COMPUTE] == pytest.approx(7.5)
    assert played.slowed_s == pytest.approx(1.5)


def test_a_host_slower_than_its_device_sets_the_pace():
    launched = Piece(COMPUTE, 1.0, "kernel", host_s=3.0, gives="layer")
    played = play(Repeat((launched,), 100))
    assert played.now_s == pytest.approx(301)
    assert played.waited["host"] == pytest.approx(201)


def test_a_lane_does_one_thing_at_a_time():
    played = play(Repeat((sent(4), sent(4))), is_kept=True)
    assert played.played is not None
    assert [(each.start_s, each.end_s) for each in played.played] == [(0, 4), (4, 8)]


SECONDS = st.floats(0.0, 10.0).map(lambda value: round(value, 3))
PIECES = st.one_of(
    st.builds(compute, SECONDS, st.tuples(st.sampled_from(["gathered", "reduced", "layer"]), st.integers(0, 2))),
    st.builds(sent, SECONDS, st.tuples(st.sampled_from(["layer", "reduced"]), st.integers(0, 2))),
    st.builds(
        lambda seconds, wait: sent(seconds, wait, gives="reduced", lane="other"),
        SECONDS,
        st.tuples(st.just("layer"), st.integers(0, 1)),
    ),
    st.builds(lambda seconds, host: Piece(COMPUTE, seconds, "kernel", host_s=host, gives="layer"), SECONDS, SECONDS),
)


@given(
    st.lists(PIECES, min_size=1, max_size=5),
    st.lists(PIECES, max_size=2),
    st.integers(1, 40),
    st.integers(1, 6),
    st.sampled_from([1.0, 1.25]),
)
def test_skipping_what_repeats_changes_nothing(
    body: list[Piece], after: list[Piece], times: int, rounds: int, contention: float
):
    program = Repeat((Repeat((Repeat(tuple(body), times), *after), rounds),))
    skipped = play(program, contention=contention)
    whole = play(program, contention=contention, is_folded=False)
    assert summary(skipped) == pytest.approx(summary(whole), rel=1e-6, abs=1e-6)


def summary(clocks: Clocks) -> dict[str, float]:
    both = {f"busy {lane}": seconds for lane, seconds in clocks.busy.items()}
    waited = {f"waited {lane}": seconds for lane, seconds in clocks.waited.items() if seconds > 1e-9}
    return clocks.lanes | both | waited | {"slowed": clocks.slowed_s}
