"""Who wins, by how much and why: parts that add up, and silence where the numbers do not carry it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from drawn import run
from hypothesis import given, settings
from hypothesis import strategies as st
from stepped import MS, Step, profiled, windows

from meshscope.analysis.contenders import Contender, contenders, order
from meshscope.analysis.gap import UNPROFILED, Gap, GapPart, deltas, gap
from meshscope.analysis.gap_words import sentence, winning
from meshscope.analysis.winner import LEVEL, PROFILED, UNKNOWN, WON, Decision
from meshscope.recording.entries import Ended
from meshscope.run import Run

DDP = [Step(compute=60, exposed=30, idle=10)] * 3
FSDP = [Step(compute=80, exposed=100, idle=20)] * 3


def between(fast: Run, slow: Run) -> Gap:
    found = gap(*contenders((fast, slow)))
    assert found is not None
    return found


def parts_ms(found: Gap) -> dict[str, float]:
    return {part.name: part.ns / MS for part in found.parts}


def test_the_parts_of_a_gap_add_up_to_the_difference_of_the_step_times() -> None:
    found = between(profiled("ddp", 100, DDP), profiled("fsdp", 200, FSDP))
    assert (found.verdict, found.total_ns) == (WON, 100 * MS)
    assert parts_ms(found) == {"computing": 20, "waiting": 0, "transfer": 70, "copy": 0, "idle": 10}
    assert sentence(found) == (
        "ddp wins by 100 ms a step over fsdp (2.0×): 70 ms less exposed transfer in all-gather, 20 ms less computing, "
        "10 ms less idle."
    )


def test_what_profiled_steps_do_not_show_is_a_part_of_its_own() -> None:
    found = between(profiled("ddp", 100, DDP), profiled("fsdp", 220, FSDP))
    assert parts_ms(found)[UNPROFILED] == 20
    assert sum(part.ns for part in found.parts) == found.total_ns == 120 * MS
    assert sentence(found).endswith("10 ms less idle, 20 ms less outside what profiled steps show.")


def test_profiled_steps_that_differ_by_much_less_give_no_reason() -> None:
    said = sentence(between(profiled("ddp", 100, DDP), profiled("fsdp", 400, FSDP)))
    assert said == (
        "ddp wins by 300 ms a step over fsdp (4.0×); their profiled steps differ by only 100 ms, so why is not known."
    )


def test_what_the_winner_spends_more_on_is_said_too() -> None:
    slow = [Step(compute=50, exposed=130, idle=20)] * 3
    assert sentence(between(profiled("ddp", 100, DDP), profiled("fsdp", 200, slow))) == (
        "ddp wins by 100 ms a step over fsdp (2.0×): 100 ms less exposed transfer in all-gather, 10 ms less idle, "
        "but 10 ms more computing."
    )


def test_waiting_for_a_late_rank_is_a_reason_of_its_own() -> None:
    slow = [Step(compute=60, exposed=110, idle=10, late=60)] * 3
    found = between(profiled("ddp", 100, DDP), profiled("fsdp", 180, slow))
    assert parts_ms(found) == {"computing": 30, "waiting": 30, "transfer": 20, "copy": 0, "idle": 0}
    assert "30.0 ms less exposed waiting for late ranks" in sentence(found)


def test_a_kind_of_collective_is_named_only_where_the_number_is_of_that_kind_alone() -> None:
    """70 ms is what all kinds differ by; in all-gather alone it is 100 more, in all-reduce 30 less."""
    reduced = [Step(compute=60, exposed=30, idle=10, collective="all_reduce")] * 3
    over_all = "70 ms less exposed transfer over all collectives, 20 ms less computing, 10 ms less idle."
    assert sentence(between(profiled("ddp", 100, reduced), profiled("fsdp", 200, FSDP))).endswith(over_all)
    more = [Step(compute=60, exposed=80, collective="all_reduce")] * 3
    less = [Step(compute=160, exposed=30)] * 3
    said = sentence(between(profiled("ddp", 140, more), profiled("fsdp", 190, less)))
    assert said.endswith("100.0 ms less computing, but 50.0 ms more exposed transfer over all collectives.")
    alone = [Step(compute=60, idle=40)] * 3
    assert "100 ms less exposed transfer in all-gather" in sentence(
        between(profiled("ddp", 100, alone), profiled("fsdp", 200, FSDP))
    )


@pytest.mark.parametrize(
    ("slow", "said"),
    [
        (Step(compute=160, exposed=30, idle=10), "100 ms less computing."),
        (Step(compute=130, hidden=30, exposed=30, idle=10), "100 ms less computing (compute 70 less, hidden 30 less)."),
        (Step(compute=60, hidden=100, exposed=30, idle=10), "100 ms less computing (all of it hidden)."),
        (
            Step(compute=10, hidden=150, exposed=30, idle=10),
            "100 ms less computing (compute 50 more, hidden 150 less).",
        ),
    ],
)
def test_computing_is_told_as_the_columns_have_it(slow: Step, said: str) -> None:
    """Compute beside a collective has a column of its own, and is computing as well."""
    found = between(profiled("ddp", 100, DDP), profiled("fsdp", 200, [slow] * 3))
    assert sentence(found) == f"ddp wins by 100 ms a step over fsdp (2.0×): {said}"


def test_a_part_within_the_spread_of_both_is_counted_with_the_rest() -> None:
    slow = [Step(compute=80, exposed=100, idle=ms) for ms in (0, 20, 40)]
    found = between(profiled("ddp", 100, DDP), profiled("fsdp", 200, slow))
    assert not next(part for part in found.parts if part.name == "idle").is_clear
    assert sentence(found).endswith("20 ms less computing, the rest 10 ms less.")


@pytest.mark.parametrize(
    ("made", "why"),
    [
        ((), "; why is not known: no complete step of fsdp was profiled."),
        (FSDP[:1], "10 ms less idle (from 1 profiled step)."),
        (FSDP[:2], "10 ms less idle (from 2 profiled steps)."),
        (FSDP, "10 ms less idle."),
    ],
)
def test_a_reason_says_of_how_few_steps_it_is(made: list[Step], why: str) -> None:
    found = between(profiled("ddp", 100, DDP), profiled("fsdp", 200, made))
    assert (found.verdict, bool(found.parts)) == (WON, bool(made))
    assert sentence(found).endswith(why)


def test_a_difference_within_the_noise_has_no_winner() -> None:
    found = between(profiled("ddp", 100, DDP), profiled("fsdp", 101, DDP))
    assert found.verdict == LEVEL
    assert re.fullmatch(
        r"Neither of ddp and fsdp wins: they are 1\.00 ms a step apart \(1 %\); "
        r"one run of each tells apart \d+ % and more\.",
        sentence(found),
    )


@pytest.mark.parametrize(
    ("about", "why"),
    [({"global_batch": 16}, "other global batch: 32 and 16"), ({"model": "small"}, "other model: tiny and small"),
     ({"ranks": 8}, "other number of ranks: 2 and 8")],
)  # fmt: skip
def test_other_conditions_have_no_winner(about: dict[str, Any], why: str) -> None:
    found = between(profiled("ddp", 100, DDP), profiled("fsdp", 200, FSDP, **about))
    assert found.verdict == UNKNOWN
    assert sentence(found) == f"No winner of ddp and fsdp: {why}."


def test_few_unprofiled_steps_have_no_winner() -> None:
    found = between(profiled("ddp", 100, DDP), profiled("fsdp", [200] * 10, FSDP))
    assert sentence(found) == "No winner of ddp and fsdp: fsdp has 8 unprofiled steps past warm-up; 12 are needed."


def test_the_winner_is_told_over_the_nearest_that_it_clearly_beats() -> None:
    runs = profiled("ddp", 100, DDP), profiled("pmap", 101, DDP), profiled("fsdp", 200, FSDP), profiled("pp", 400)
    found = winning(contenders(runs))
    assert (found.fastest, found.pair) == ("ddp", ("ddp", "fsdp"))
    assert list(found.gaps) == ["pmap", "fsdp", "pp"]
    assert found.sentence.startswith("ddp wins by 100 ms a step over fsdp (2.0×), but not over pmap: 70 ms less")
    assert found.sentence.endswith("It wins over pp too. pmap is level with ddp.")


def test_what_is_exposed_where_ranks_share_cores_is_told_as_the_scheduler_s_choice() -> None:
    def said(cores: int, slow: list[Step]) -> str:
        about = {"device_kind": "cpu", "ranks": 2, "cores": cores}
        return sentence(between(profiled("ddp", 100, DDP, **about), profiled("fsdp", 200, slow, **about)))

    chosen = "; on shared cores the scheduler chooses what is exposed."
    assert said(2, FSDP).endswith("10 ms less idle" + chosen)
    assert said(4, FSDP).endswith("10 ms less idle.")
    assert chosen not in said(2, [Step(compute=150, exposed=30, idle=20)] * 3)


def test_whom_it_is_not_known_to_win_over_is_said_with_the_reason() -> None:
    runs = profiled("ddp", 100, DDP), profiled("few", [150] * 10, DDP), profiled("fsdp", 200, FSDP)
    said = winning(contenders(runs)).sentence
    assert said.startswith("ddp wins by 100 ms a step over fsdp (2.0×), but not over few: ")
    assert said.endswith(
        "Whether it wins over few is not known: few has 8 unprofiled steps past warm-up; 12 are needed."
    )


def test_another_device_and_what_failed_win_nothing() -> None:
    cpu = profiled("pmap", 1, DDP, device_kind="cpu")
    slept = profiled("slept", 1, DDP, faults=["straggler 60 ms"])
    broken = replace(profiled("broken", 1, DDP), ended=Ended(t_ns=10**12, outcome="failed", why="rank 1 was killed"))
    found = contenders((profiled("ddp", 100, DDP), profiled("fsdp", 200, FSDP), cpu, slept, broken))
    assert [one.name for one in order(found)] == ["ddp", "fsdp"]
    assert [one.why for one in found[2:]] == [
        "ran on CPU, the others on GPU", "ran with injected straggler 60 ms, others did not",
        "failed before its last step",
    ]  # fmt: skip
    assert winning(found).pair == ("ddp", "fsdp")


def test_one_run_and_none_are_told_without_a_winner() -> None:
    assert winning(()).sentence == "Nothing has run yet."
    only = winning(contenders((profiled("ddp", 100, DDP),)))
    assert only.sentence == "ddp takes 100 ms a step; there is no other to compare it with."
    assert winning(contenders((profiled("ddp", 100),)), has_more=True).sentence.endswith("no other is ranked yet.")
    begun = winning(contenders((run(strategy="ddp"), run(strategy="fsdp"))))
    assert begun.sentence == "No winner: nothing here can be ranked yet."
    assert winning(contenders((run(strategy="ddp"),))).sentence == "ddp: no unprofiled step past warm-up yet."


def traced(title: str, made: Iterable[Step], **about: Any) -> Run:
    return run(windows=windows(made), strategy="", title=title, model="", global_batch=0, **about)


def test_traces_are_set_against_each_other_by_their_profiled_steps_and_nobody_wins() -> None:
    found = contenders((traced("new", DDP), traced("old", FSDP)))
    assert [one.step_ns / MS for one in found] == [100, 200]
    assert winning(found).gaps["old"].verdict == PROFILED
    assert winning(found).sentence == (
        "A profiled step of new is 100 ms shorter than one of old: 70 ms less exposed transfer in all-gather, "
        "20 ms less computing, 10 ms less idle. Traces hold no unprofiled step, so no winner is named."
    )


def test_a_trace_without_steps_is_not_ranked() -> None:
    stepless = traced("kernels", DDP)
    stepless = replace(stepless, windows=tuple(replace(one, steps=(), step_ns=one.step_ns[:0]) for one in
                                               stepless.windows))  # fmt: skip
    (one,) = contenders((stepless,))
    assert (one.is_ranked, one.why, one.split) == (False, "its traces hold no complete step", None)
    assert math.isnan(one.step_ns)


def test_differences_are_told_with_whether_they_are_clear() -> None:
    slow = [Step(compute=80, exposed=100, idle=ms) for ms in (0, 20, 40)]
    found = deltas(*contenders((profiled("ddp", 100, DDP), profiled("fsdp", 200, slow))))
    assert {name: (delta.ns / MS, delta.is_clear) for name, delta in found.items()} == {
        "step": (100, True), "compute": (20, True), "hidden": (0, False), "waiting": (0, False),
        "transfer": (70, True), "copy": (0, False), "idle": (10, False), "span": (100, True),
    }  # fmt: skip


def test_without_communication_exposed_time_is_set_against_any() -> None:
    alone = windows(FSDP)[:1]
    before = profiled("single", 100, [Step(compute=60, idle=10)] * 3)
    after = replace(profiled("fsdp", 200), windows=alone)
    found = deltas(*contenders((before, after)))
    assert found["exposed"].ns == 100 * MS
    assert not {"waiting", "transfer"} & found.keys()


def test_where_one_of_two_does_not_tell_waiting_apart_exposed_time_is_one_part() -> None:
    untold = replace(profiled("fsdp", 200), windows=windows(FSDP)[:1])
    found = deltas(*contenders((profiled("ddp", 100, DDP), untold)))
    assert found["exposed"].ns == 70 * MS
    assert not {"waiting", "transfer"} & found.keys()
    assert sum(delta.ns for name, delta in found.items() if name not in ("step", "span")) == found["span"].ns


def test_nothing_is_made_of_a_step_time_that_is_not_known() -> None:
    one, other = contenders((profiled("ddp", 100, DDP), run(strategy="fsdp")))
    assert gap(one, other) is None
    assert deltas(one, other) == {}


sizes = st.integers(-(10**9), 10**9)
gaps = st.builds(
    lambda computing, transfer, copied, idle, rest: made_gap(
        [("computing", computing), ("transfer", transfer), ("copy", copied), ("idle", idle), (UNPROFILED, rest)]
    ),
    *[sizes] * 5,
)


def made_gap(parts: list[tuple[str, int]]) -> Gap:
    total_ns = sum(ns for _, ns in parts)
    told = tuple(GapPart(name, ns, is_clear=True) for name, ns in parts)
    return Gap("a", "b", total_ns, 1.5, told, Decision(WON, least_frac=0.1), "", "", "in all-reduce")


@settings(max_examples=50, deadline=None)
@given(gaps)
def test_the_numbers_in_a_sentence_add_up_as_they_are_printed(found: Gap) -> None:
    head, _, why = sentence(found).partition(": ")
    total = re.findall(r"by ([\d.]+) ms", head)[0]
    printed = re.findall(r"([\d.]+) ms (less|more)", why)
    if why and found.total_ns > 0:
        signed = sum((-1 if way == "more" else 1) * float(number) for number, way in printed)
        assert signed == pytest.approx(float(total), abs=1e-9)


@settings(max_examples=50, deadline=None)
@given(gaps)
def test_what_is_more_stands_behind_but_and_what_is_less_before_it(found: Gap) -> None:
    _, _, why = sentence(found).partition(": ")
    if why and found.total_ns > 0:
        saved, but, spent = why.partition("but ")
        assert "more" not in saved
        assert "less" not in spent
        assert bool(but) == ("more" in why)


def test_a_saving_outside_the_profiled_steps_does_not_read_as_a_cost() -> None:
    found = made_gap([("transfer", 70 * MS), ("computing", -20 * MS), (UNPROFILED, 11_400_000)])
    assert sentence(found).endswith(
        ": 70.0 ms less exposed transfer in all-reduce, 11.4 ms less outside what profiled steps show, "
        "but 20.0 ms more computing."
    )


def test_a_contender_carries_what_the_comparison_shows() -> None:
    found: tuple[Contender, ...] = contenders((profiled("ddp", 100, DDP),))
    assert found[0].step_ns == found[0].row.median_ns == 100 * MS
    assert found[0].split is not None


def test_what_only_profiled_steps_show_is_taken_off() -> None:
    found = between(profiled("ddp", 100, DDP), profiled("fsdp", 170, FSDP))
    assert sentence(found).endswith("10.0 ms less idle, but 30.0 ms more outside what profiled steps show.")


def test_nobody_wins_whose_median_is_the_longer_one() -> None:
    fast, slow = contenders((profiled("ddp", 100, DDP), profiled("fsdp", 200, FSDP)))
    found = gap(replace(fast, step_ns=300.0 * MS), slow)
    assert found is not None
    assert found.verdict == UNKNOWN
    assert "No winner of ddp and fsdp: all their steps say otherwise" in sentence(found)
