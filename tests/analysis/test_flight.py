"""Which collectives were stuck, and where ranks differ, from their flight recorders side by side."""

from __future__ import annotations

from dataclasses import replace

from meshscope.analysis.flight import Flight, flight
from meshscope.analysis.flight_words import mismatch_words, unfinished_words
from meshscope.experiment import Experiment
from meshscope.records import Call, FlightRecord, Group
from meshscope.run import Run, fold

NOWHERE = Experiment(t0_unix_ns=0, strategy="", title="", framework="torch", ranks=2, device_kind="none", model="")
GROUP = Group("0", "default_pg", (0, 1, 2))


def call(sequence: int, collective: str = "all_reduce", *, done: bool = True, sizes: tuple[int, ...] = (8,)) -> Call:
    return Call(
        number=sequence, group="0", sequence=sequence, is_p2p=False, collective=collective, name=f"nccl:{collective}",
        peers="", input_sizes=(sizes,), output_sizes=(sizes,), input_dtypes=("Float",), output_dtypes=("Float",),
        state="completed" if done else "started", is_done=done, created_ns=sequence * 100, started_ns=0, completed_ns=0,
        timeout_ns=0, where="step (train.py:3)",
    )  # fmt: skip


def dump(rank: int, *calls: Call, group: Group = GROUP) -> FlightRecord:
    return FlightRecord(kind="", source="", rank=rank, version="2.4", calls=calls, groups={"0": group})


def run(*records: FlightRecord) -> Run:
    return replace(fold(NOWHERE, ()), records=records)


def answer(*records: FlightRecord) -> Flight:
    found = flight(run(*records))
    assert found is not None
    return found


def test_a_run_without_a_dump_has_no_answer() -> None:
    assert flight(run()) is None


def test_the_rank_that_has_not_come_is_named_with_what_it_did_last() -> None:
    found = answer(
        dump(0, call(4), call(5, done=False)), dump(1, call(3), call(4)), dump(2, call(4), call(5, done=False))
    )
    (stuck,) = found.unfinished
    assert (stuck.sequence, stuck.waiting, stuck.absent, stuck.done, stuck.unknown) == (5, (0, 2), (1,), (), ())
    assert stuck.last == {1: "all_reduce 4"}
    words = unfinished_words(stuck)
    assert "ranks 0, 2 had called it and not completed it" in words
    assert "rank 1 had not called it (newest there: rank 1: all_reduce 4)" in words
    assert "step (train.py:3)" in words
    assert not found.mismatches


def test_a_call_that_the_ring_has_forgotten_is_not_missing() -> None:
    found = answer(dump(0, call(4, done=False)), dump(1, call(7), call(8)))
    (stuck,) = found.unfinished
    assert (stuck.waiting, stuck.absent) == ((0,), ())


def test_a_rank_without_a_dump_is_said_to_be_unknown_and_not_absent() -> None:
    (stuck,) = answer(dump(0, call(1, done=False)), dump(1, call(1, done=False))).unfinished
    assert (stuck.absent, stuck.unknown) == ((), (2,))
    assert "of rank 2 there is no dump" in unfinished_words(stuck)


def test_ranks_of_another_group_are_not_missed() -> None:
    pair = Group("0", "", (0, 1))
    (stuck,) = answer(dump(0, call(1, done=False), group=pair), dump(1, group=pair), dump(2, group=pair)).unfinished
    assert stuck.absent == (1,)
    assert stuck.last == {1: "no call of this group"}


def test_where_no_dump_tells_the_members_those_that_know_the_group_are_meant() -> None:
    bare = Group("0", "", ())
    found = answer(dump(0, call(2, done=False), group=bare), dump(1, call(1), group=bare))
    assert not found.has_members
    assert found.unfinished[0].absent == (1,)


def test_a_call_that_all_have_completed_is_not_told() -> None:
    found = answer(*(dump(rank, call(1), call(2)) for rank in range(3)))
    assert (found.unfinished, found.mismatches) == ((), ())
    (called,) = found.calls
    assert (called.collective, called.count, called.unfinished, called.last_sequence) == ("all_reduce", 6, 0, 2)


def test_ranks_that_call_different_collectives_are_named() -> None:
    found = answer(dump(0, call(3)), dump(1, call(3, "broadcast")), dump(2, call(3)))
    (differs,) = found.mismatches
    assert (differs.of, differs.calls) == ("collective", {"all_reduce": (0, 2), "broadcast": (1,)})
    assert "ranks 0, 2: all_reduce; rank 1: broadcast" in mismatch_words(differs)


def test_ranks_that_differ_in_size_or_type_are_named() -> None:
    (differs,) = answer(dump(0, call(3)), dump(1, call(3, sizes=(8, 2)))).mismatches
    assert (differs.of, differs.calls) == ("size", {"all_reduce of 8": (0,), "all_reduce of 8×2": (1,)})
    half = replace(call(3), input_dtypes=("Half",))
    (differs,) = answer(dump(0, call(3)), dump(1, half)).mismatches
    assert differs.of == "type"


def test_an_uneven_all_gather_or_all_to_all_is_no_difference() -> None:
    uneven = [replace(call(1, "all_gather", sizes=(rank + 1,)), output_sizes=((3,),)) for rank in range(2)]
    assert not answer(*(dump(rank, one) for rank, one in enumerate(uneven))).mismatches
    split = [call(1, "all_to_all", sizes=(rank + 1,)) for rank in range(2)]
    assert not answer(*(dump(rank, one) for rank, one in enumerate(split))).mismatches


def test_a_send_that_was_not_received_is_told_of_its_own_rank() -> None:
    sent = replace(call(1, "send", done=False), is_p2p=True, peers="0->1")
    (stuck,) = answer(dump(0, sent), dump(1)).unfinished
    assert (stuck.collective, stuck.waiting, stuck.absent) == ("send 0->1", (0,), ())
