"""Conditions for a build to fail, and which run belongs to which."""

from __future__ import annotations

import pytest
from measured import MS, measured, noisy

from meshscope.analysis.change import change
from meshscope.analysis.conditions import HOLDS_NOT, conditions, judged
from meshscope.analysis.figures import PARTS
from meshscope.analysis.pairing import changes
from meshscope.analysis.works import Works
from meshscope.errors import InputError

SAME = change([measured(noisy(1))], [measured(noisy(2))])
SLOWER = change([measured(noisy(1))], [measured(noisy(2, median_ms=75))])


def state(text: str, found: object = SLOWER) -> str:
    (one,) = judged(conditions(text), found)  # type: ignore[arg-type]
    return one.state


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("step_time>5%", "holds"),
        ("step_time > 5 %", "holds"),
        ("STEP_TIME>=5%", "holds"),
        ("step_time>90%", "does not hold"),
        ("step_time>50%", "cannot say"),
        ("step_time<-5%", "does not hold"),
        ("throughput<-5%", "holds"),
        ("throughput<−5%", "holds"),
        ("step_time>60ms", "holds"),
        ("step_time>0.2s", "does not hold"),
        ("throughput<120/s", "holds"),
        ("memory>1GB", "cannot say"),
        ("exposed>5%", "cannot say"),
    ],
)
def test_a_condition_holds_when_the_whole_interval_lies_beyond(text: str, holds: str) -> None:
    assert state(text) == holds


def test_what_does_not_differ_fails_no_build() -> None:
    assert state("step_time>15%", SAME) == "does not hold"
    assert state("step_time>1%", SAME) == "cannot say"


def test_memory_has_a_limit_of_its_own() -> None:
    runs = [measured(noisy(at), peak_bytes=30 * 10**9, peak_how="measured") for at in (1, 2)]
    found = change(runs[:1], runs[1:])
    assert state("memory>20GB", found) == "holds"
    assert state("memory>40GB", found) == "does not hold"
    assert state("memory>10%", found) == "does not hold"


def test_several_conditions_stand_in_one_text() -> None:
    assert [one.metric for one in conditions("step_time>5%, memory>1GiB,exposed>=20ms")] == [
        "step_time", "memory", "exposed",
    ]  # fmt: skip
    assert conditions("memory>1GiB")[0].threshold == 2**30
    assert conditions("exposed>=20ms")[0].threshold == 20 * MS


@pytest.mark.parametrize("text", ["", "step_time", "step_time>5", "steptime>5%", "step_time>5GB", "memory>5ms", "a>b%"])
def test_what_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(InputError) as refused:
        conditions(text)
    assert refused.value.hint


def test_strategies_are_paired_by_name_and_those_alone_are_told() -> None:
    a = [measured(noisy(1)), measured(noisy(2), strategy="fsdp", title="fsdp")]
    b = [measured(noisy(3), strategy="fsdp", title="fsdp"), measured(noisy(4), strategy="pmap", title="pmap")]
    found = changes(a, b)
    assert [pair.strategy for pair in found.changes] == ["fsdp"]
    assert found.alone == (("A", "ddp"), ("B", "pmap"))


def test_one_strategy_on_each_side_is_a_pair_whatever_its_name() -> None:
    found = changes([measured(noisy(1))], [measured(noisy(2), strategy="fsdp", title="fsdp")])
    (pair,) = found.changes
    assert (pair.strategy, pair.a_title, pair.b_title) == ("", "ddp", "fsdp")
    assert "strategy: ddp → fsdp" in pair.differs


def test_runs_of_one_strategy_are_repeats() -> None:
    found = changes([measured(noisy(at)) for at in range(3)], [measured(noisy(9))])
    assert any("180 steps in 3 runs (A)" in note for note in found.changes[0].basis)


def test_repeats_that_are_not_of_one_thing_are_refused() -> None:
    found = changes([measured(noisy(1)), measured(noisy(2), options={"lr": "9"})], [measured(noisy(3))])
    assert found.changes[0].why.startswith("the repeats of A are not of one thing")


def test_nothing_in_common_is_refused() -> None:
    a = [measured(noisy(at), strategy=name, title=name) for at, name in enumerate(("ddp", "fsdp"))]
    b = [measured(noisy(at), strategy=name, title=name) for at, name in enumerate(("pmap", "pjit"))]
    with pytest.raises(InputError, match="nothing to compare"):
        changes(a, b)
    with pytest.raises(InputError, match="which of them"):
        changes([measured([], strategy="")] * 2, [measured([], strategy="")])


def test_nothing_on_both_sides_is_known_and_no_change() -> None:
    parts = dict.fromkeys(PARTS, (5e6, 5e6, 5e6)) | {"exposed": (0.0, 0.0, 0.0)}
    a, b = (measured([50.0] * 60, parts_ns=parts, works=Works((5, 15, 25), 2, ())) for _ in range(2))
    for text in ("exposed>20ms", "exposed>5%"):
        (found,) = judged(conditions(text), change([a], [b]))
        assert found.state == HOLDS_NOT, found.why
