"""Collectives whose result is needed at once: DTensor's, told by the call that they come of."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from asked import codes, only, said
from made_spans import Made, collective, host, kernel, launch, window
from meeting import MS, run_of

from meshscope.analysis.looked_for import looked_for
from meshscope.analysis.needed_at_once import is_mostly_needed_at_once, needed_at_once
from meshscope.analysis.what_if import FREE, TWICE, WhatIf
from meshscope.analysis.what_if_caveats import AT_ONCE, cautioned
from meshscope.run import Run

GATHER, REDUCE = "_c10d_functional::all_gather_into_tensor", "c10d::allreduce_"
STEP_NS = 100 * MS


def turns(call: str, *, calls: int = 20) -> list[Made]:
    """A step in which 2 ms of compute and 2 ms of a collective that ``call`` asks for follow one another."""
    spans: list[Made] = []
    for at in range(calls):
        asked_ns = 4 * at * MS
        inside = launch(asked_ns + MS // 4, asked_ns + MS // 2)
        spans += [
            host(asked_ns, asked_ns + MS, call),
            collective(asked_ns + MS, asked_ns + 3 * MS, inside, "all_gather", size_bytes=20_000 * (1 + 4 * (at % 2))),
            kernel(asked_ns + 3 * MS, asked_ns + 5 * MS),
        ]
    return spans


def two_ranks(spans: list[Made]) -> Run:
    about = {"steps": [(0, STEP_NS)], "world": 2, "host": "one"}
    return run_of([window(spans, rank=rank, **about) for rank in (0, 1)], strategy="tp", ranks=2)


def states(run: Run) -> dict[str, tuple[str, str]]:
    return {one.code: (one.state, one.why) for one in looked_for(run)}


def test_what_a_functional_call_asks_for_is_needed_at_once_and_nothing_else() -> None:
    of = window(
        [*turns(GATHER, calls=2), *(one for one in turns("c10d::_allgather_base_", calls=4) if one.start_ns > 8 * MS)]
    )
    assert [of.spans.start_ns[row] for row in needed_at_once(of)] == [MS, 5 * MS]


def test_layers_that_share_their_ranks_are_not_told_to_overlap_or_to_put_calls_together() -> None:
    """The same calls, asked for by hand, are told both."""
    by_hand, by_layers = two_ranks(turns(REDUCE)), two_ranks(turns(GATHER))
    assert {"no-overlap", "small-collectives"} <= set(codes(by_hand))
    assert not {"no-overlap", "small-collectives"} & set(codes(by_layers))
    assert states(by_hand)["no-overlap"][0] == "found"
    assert states(by_layers)["no-overlap"] == (
        "does not apply",
        "most results are needed at once, as under tensor parallelism",
    )


def in_region(name: str) -> list[Made]:
    """The same turns, asked for by c10d's own call within an autograd function."""
    return [
        inner
        for one in turns(REDUCE)
        for inner in ([host(one.start_ns, one.end_ns, name), one] if one.name == REDUCE else [one])
    ]


def test_megatrons_regions_are_needed_at_once_also_where_a_rank_is_missing() -> None:
    """One of two ranks is here: nothing can be matched, and still the calls tell what they are for."""
    whole = two_ranks(in_region("_ReduceFromModelParallelRegion"))
    alone = replace(whole, windows=whole.windows[:1])
    assert is_mostly_needed_at_once(alone)
    assert states(alone)["no-overlap"][0] == "does not apply"


def test_a_rank_alone_is_not_told_what_may_be_waiting_for_the_other() -> None:
    """20 calls of 2 ms, all exposed, in a step of 100 ms: a finding with both ranks, and not with one."""
    whole = two_ranks(turns(REDUCE))
    alone = replace(whole, windows=whole.windows[:1])
    assert "no-overlap" in codes(whole)
    assert "no-overlap" not in codes(alone)
    assert states(alone)["no-overlap"] == (
        "cannot say",
        "waiting may be in it: only rank 0 alone of the 2 ranks of the run can be seen, and another may have come last",
    )


def test_unmatched_calls_at_the_end_of_a_window_are_no_transfer() -> None:
    """Rank 1's window begins ten calls later: the ten that are matched take 20 ms of rank 0's step, and no more."""
    whole = two_ranks(turns(REDUCE))
    first, second = whole.windows
    late_ns = 41 * MS
    kept = second.spans.where(np.flatnonzero(second.spans.start_ns >= late_ns - MS // 4 * 4))
    cut = replace(second, spans=kept, start_ns=late_ns, steps=(), step_ns=np.empty((0, 2), dtype=np.int64))
    found = only("no-overlap", replace(whole, windows=(first, cut)))
    assert found.cost_ns == 20 * MS
    assert "20.0 ms may be waiting" in said(found)


def test_a_few_of_them_do_not_excuse_the_rest() -> None:
    mixed = [*turns(GATHER, calls=4), *(one for one in turns(REDUCE) if one.start_ns >= 16 * MS)]
    assert not is_mostly_needed_at_once(two_ranks(mixed))
    assert "no-overlap" in codes(two_ranks(mixed))


def test_hiding_them_is_called_a_bound_and_speeding_them_up_is_not() -> None:
    answers = tuple(WhatIf(name, total_ns=1, step_ns=1.0, saved_frac=0.5) for name in (FREE, TWICE))
    free, twice = cautioned(answers, two_ranks(turns(GATHER)))
    assert (free.caveat, twice.caveat) == (AT_ONCE, "")
    assert cautioned(answers, two_ranks(turns(REDUCE))) == answers
