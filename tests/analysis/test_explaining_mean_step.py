"""What the parts of a mean step are made of, as strategies are set side by side by them."""

from __future__ import annotations

import pytest
from drawn import timeline
from stepped import MS, Step, profiled

from meshscope.analysis.explaining import explanations
from meshscope.analysis.explaining.figure import OPERATIONS, Figure
from meshscope.analysis.explaining.mean_step import HEAD
from meshscope.analysis.step_split import each_step, step_split
from meshscope.run import Run

STEPS = [
    Step(compute=40, exposed=30, idle=10, late=20),
    Step(compute=41, hidden=5, exposed=33, copied=2, idle=11, late=11),
    Step(compute=44, hidden=7, exposed=30, idle=13),
]


def explained(run: Run, what: str) -> dict[str, Figure | None]:
    (found,) = explanations((run,), f"{HEAD}.{what}")
    return {case.of: case.figure for case in found.cases}


def worked_out(figure: Figure) -> int | float:
    """The value again, from its leaves."""
    parts = [worked_out(part) for part in figure.of]
    return OPERATIONS[figure.how](parts) if figure.how else figure.value


@pytest.mark.parametrize("what", ["compute", "hidden", "waiting", "transfer", "exposed", "copy", "idle", "span"])
def test_a_part_is_explained_by_the_value_that_the_screen_has(what: str) -> None:
    run = profiled("ddp", 100, STEPS)
    split = step_split(run)
    assert split is not None
    figure = explained(run, what)["all ranks"]
    assert figure is not None
    assert worked_out(figure) == figure.value
    assert figure.value == {"span": split.span_ns, "exposed": split.exposed_ns}.get(what, split.part_ns(what))


def test_waiting_and_transfer_of_each_rank_are_worked_by_hand() -> None:
    """Rank 0 computes 40, waits 20 for rank 1 and transfers 10; rank 1 computes 60 and transfers 10."""
    run = profiled("ddp", 100, [STEPS[0]] * 3)
    for what, expected in {"waiting": (10, 20, 0), "transfer": (10, 10, 10), "compute": (50, 40, 60)}.items():
        found = explained(run, what)
        values = [figure.value / MS for figure in found.values() if figure is not None]
        assert dict(zip(found, values, strict=True)) == dict(
            zip(("all ranks", "rank 0", "rank 1"), expected, strict=True)
        )


def test_where_waiting_cannot_be_told_the_explanation_says_so() -> None:
    alone = timeline("""
        0 step        aaaaaaaaaaaa
        0 compute     ######......
        0 all_reduce  ....####....
    """)
    (found,) = explanations((alone,), f"{HEAD}.waiting")
    assert [case.why for case in found.cases] == ["waiting for a late rank cannot be told from transfer here"]
    assert explained(alone, "exposed")["all ranks"] is not None


def test_each_step_is_the_mean_over_ranks_of_that_step_alone() -> None:
    found = dict(each_step(profiled("ddp", 100, STEPS)))
    assert list(found) == [0, 1, 2]
    first = found[0]
    # Rank 0 computes 40 and communicates 30 beside nothing, rank 1 computes 60 and communicates 10.
    assert (first.compute_ns, first.exposed_ns, first.idle_ns, first.span_ns) == (50 * MS, 20 * MS, 10 * MS, 80 * MS)
    assert all(one.busy_ns + one.idle_ns == one.span_ns for one in found.values())
    assert found[2].hidden_ns == 7 * MS
    assert each_step(timeline("0 compute ####")) == ()
