"""Ranks that stand still, and collectives that differ between ranks."""

from __future__ import annotations

from dataclasses import replace

import pytest
from asked import codes, only, said
from drawn import run, steps
from meeting import MS, groups, met, run_of, window

from meshscope.recording.entries import Ended, Entry, Phase, RankEnded, Sampled, StacksTaken, StepDone
from meshscope.records import Call, FlightRecord, Group
from meshscope.run import Run

S = 1_000_000_000


def call(sequence: int, *, done: bool = True, sizes: tuple[int, ...] = (8,), name: str = "all_reduce") -> Call:
    return Call(
        number=sequence, group="0", sequence=sequence, is_p2p=False, collective=name, name=f"nccl:{name}", peers="",
        input_sizes=(sizes,), output_sizes=(sizes,), input_dtypes=("Float",), output_dtypes=("Float",), state="",
        is_done=done, created_ns=sequence, started_ns=0, completed_ns=0, timeout_ns=0, where="",
    )  # fmt: skip


def dump(rank: int, *calls: Call) -> FlightRecord:
    return FlightRecord(kind="", source="", rank=rank, version="2.4", calls=calls, groups={"0": Group("0", "", (0, 1))})


def dumped(*records: FlightRecord) -> Run:
    return replace(run(strategy=""), records=records)


def training(rank: int) -> Phase:
    return Phase(t_ns=0, rank=rank, phase="training")


def alive(now_ns: int) -> Sampled:
    """A sensor's reading, which a supervisor writes as long as it lives."""
    return Sampled(t_ns=now_ns, device="host", values={"utilization_frac": 0.5})


def stands_still(*more: Entry, after_s: float, phases: tuple[Entry, ...] = (training(0), training(1))) -> Run:
    """Two ranks do four steps of 100 ms and nothing after."""
    done: list[StepDone] = steps([100.0] * 4)
    now_ns = int(done[-1].end_ns + after_s * S)
    return run([*done, *phases, *more, alive(now_ns)], now_ns=now_ns)


def test_a_rank_that_has_not_called_what_others_wait_in_is_a_hang_of_that_rank() -> None:
    found = only("hang", dumped(dump(0, call(4), call(5, done=False)), dump(1, call(4))))
    assert (found.rank, found.is_grave) == (1, True)
    assert "all_reduce 5" in said(found)


@pytest.mark.parametrize(("waited_s", "hangs"), [(1, False), (11, True)])
def test_ranks_of_an_attached_job_that_wait_since_a_moment_ago_do_not_hang(waited_s: float, hangs: bool) -> None:
    """They are asked one after the other while they train."""
    t0 = 1_700_000_000 * S
    asked = StacksTaken(t_ns=20 * S, rank=0, path="", threads=(("/w/train.py:1 train",),))
    waits = replace(call(5, done=False), created_ns=t0 + int((20 - waited_s) * S))
    found = run([asked], strategy="attached", is_attached=True, t0_unix_ns=t0)
    found = replace(found, records=(dump(0, call(4), waits), dump(1, call(4))))
    assert ("hang" in codes(found)) is hangs


def test_a_call_that_all_are_in_is_no_hang_yet() -> None:
    assert codes(dumped(dump(0, call(5, done=False)), dump(1, call(5, done=False)))) == []


def test_calls_that_are_all_done_are_no_hang() -> None:
    assert codes(dumped(dump(0, call(4), call(5)), dump(1, call(4)))) == []


def test_a_run_in_which_no_step_ends_any_more_hangs_and_costs_the_time_since() -> None:
    found = only("hang", stands_still(after_s=30))
    assert found.cost_ns == pytest.approx(30 * S)
    assert found.of == "the 30.4 s since the first step began"
    assert "ranks 0–1 finished step 3 and none after it" in said(found)


def test_a_pause_within_patience_is_no_hang() -> None:
    assert codes(stands_still(after_s=9)) == []


@pytest.mark.parametrize("phase", ["compiling", "stopping profiler", "ending"])
def test_a_rank_that_does_something_else_than_train_holds_the_others_up_and_does_not_hang(phase: str) -> None:
    busy = Phase(t_ns=1, rank=1, phase=phase)
    assert codes(stands_still(after_s=60, phases=(training(0), training(1), busy))) == []


def test_a_run_that_is_done_does_not_hang_however_long_ago() -> None:
    assert codes(stands_still(Ended(t_ns=S, outcome="done"), after_s=600)) == []


def test_the_rank_that_stopped_earlier_is_the_one_to_look_at() -> None:
    done = steps([100.0] * 4)
    lacking = [one for one in done if (one.rank, one.step) != (1, 3)]
    found = only("hang", run([*lacking, training(0), training(1), alive(40 * S)], now_ns=40 * S))
    assert found.rank == 1
    assert "rank 1 finished step 2 last; rank 0 finished step 3 last" in said(found)


def test_a_recording_whose_supervisor_is_gone_says_nothing_of_the_time_after_it() -> None:
    lost = run([*steps([100.0] * 4), training(0), training(1)], now_ns=600 * S)
    assert lost.is_lost
    assert codes(lost) == []


def test_a_rank_that_died_of_a_timeout_shows_a_hang_of_the_one_that_did_not() -> None:
    why = "RuntimeError: Timed out waiting 4000ms for recv operation to complete"
    ends = (
        RankEnded(t_ns=5 * S, rank=0, exit_code=1, why=why),
        RankEnded(t_ns=5 * S, rank=1, exit_code=-15, why="ended with the run"),
    )
    found = only(
        "hang", stands_still(*ends, Ended(t_ns=5 * S, outcome="failed", why=f"rank 0: {why}", rank=0), after_s=5)
    )
    assert found.rank == 1
    assert f"rank 0 gave up: {why}" in said(found)


def test_what_the_supervisor_said_of_a_hang_is_evidence_and_names_the_rank() -> None:
    why = "rank 1 hangs: no rank made progress for 5 s; all are in step 4"
    ends = (
        RankEnded(t_ns=6 * S, rank=1, exit_code=1, log_lines=("…", '  File "train.py", line 3 in load')),
        Ended(t_ns=6 * S, outcome="failed", why=why, rank=1),
    )
    found = only("hang", stands_still(*ends, after_s=6))
    assert found.rank == 1
    assert found.evidence[0] == why
    assert 'rank 1 was at "train.py", line 3 in load' in said(found)


def test_a_rank_that_failed_of_something_else_is_no_hang() -> None:
    ends = (
        RankEnded(t_ns=2 * S, rank=0, exit_code=1, why="ValueError: no"),
        Ended(t_ns=2 * S, outcome="failed", why="rank 0: ValueError: no", rank=0),
    )
    assert codes(stands_still(*ends, after_s=2)) == []


def test_one_number_with_two_sizes_is_a_collective_that_differs() -> None:
    found = only("collectives-differ", dumped(dump(0, call(5)), dump(1, call(5, sizes=(4,)))))
    assert found.is_grave
    assert "differ in the size of call 5" in said(found)


def numbered(names: list[str], rank: int, *, ranks: tuple[int, ...] = (0, 1)) -> object:
    count = len(names)
    columns = {"sequence": list(range(count)), "group": 0, "groups": ("0",), "size_bytes": 8}
    starts = [at * MS for at in range(count)]
    return window(
        rank, starts, [at + MS // 2 for at in starts], names=names, spans=columns, process_groups=groups(ranks), world=2
    )


def test_traces_that_number_their_collectives_show_where_ranks_differ() -> None:
    usual = ["all_reduce", "all_gather", "all_reduce", "all_reduce"]
    odd = ["all_reduce", "reduce_scatter", "all_reduce", "all_reduce"]
    found = only("collectives-differ", run_of([numbered(usual, 0), numbered(odd, 1)]))  # type: ignore[list-item]
    assert "call 1 of group 0 differs: rank 0: all_gather of 8 B; rank 1: reduce_scatter of 8 B" in said(found)


def test_windows_that_differ_almost_everywhere_are_of_two_runs_and_no_finding() -> None:
    one, other = ["all_reduce"] * 4, ["all_gather"] * 4
    assert codes(run_of([numbered(one, 0), numbered(other, 1)])) == []  # type: ignore[list-item]


def test_unnumbered_collectives_and_equal_ones_do_not_differ() -> None:
    assert "collectives-differ" not in codes(run_of(met([[0, 2 * MS], [0, 2 * MS]], MS)))
    assert codes(run_of([numbered(["all_reduce"] * 4, rank) for rank in (0, 1)])) == []  # type: ignore[misc]


def _apart(*more: Entry, gap_s: float, phases: tuple[Entry, ...] = (training(0), training(1))) -> Run:
    """Rank 0 steps on at 100 ms each until the end; rank 1 has done four steps, and nothing for ``gap_s`` seconds."""
    number = round(gap_s * 10) + 4
    done = [one for one in steps([100.0] * number) if one.rank == 0 or one.step < 4]
    now_ns = max(one.end_ns for one in done) + 1_000_000
    return run([*done, *phases, *more, alive(now_ns)], now_ns=now_ns)


def test_a_rank_that_stands_still_while_another_steps_on_is_told_of_with_its_stack() -> None:
    # Taken since rank 1's last step, and long before rank 0's.
    stands = StacksTaken(t_ns=2 * S, rank=1, path="", threads=(("/w/train.py:12 fetch",),))
    found = only("hang", _apart(stands, gap_s=30))
    assert (found.rank, found.is_grave) == (1, False)
    assert "rank 1 ended no step for 30.6 s" in said(found)
    assert "rank 0 still steps" in said(found)
    assert "rank 1 stood in fetch (train.py:12)" in said(found)


def test_ranks_that_step_apart_for_less_than_patience_or_do_other_than_train_are_left_in_peace() -> None:
    assert "hang" not in codes(_apart(gap_s=9))
    assert "hang" not in codes(_apart(Phase(t_ns=S, rank=1, phase="ending"), gap_s=30))
    assert "hang" not in codes(_apart(RankEnded(t_ns=S, rank=1, exit_code=0), gap_s=30))


def test_a_call_that_was_waited_in_once_is_no_hang_where_steps_have_ended_since() -> None:
    records = (dump(0, call(4), call(5, done=False)), dump(1, call(4)))
    asked = StacksTaken(t_ns=100_000_000, rank=0, path="", threads=(("/w/train.py:1 train",),))
    on = run([*steps([100.0] * 4), training(0), training(1), asked], now_ns=S)
    assert "hang" not in codes(replace(on, records=records))
    assert "hang" in codes(replace(run([*steps([100.0] * 4), replace_time(asked, S)], now_ns=S), records=records))


def replace_time(taken: StacksTaken, t_ns: int) -> StacksTaken:
    return StacksTaken(t_ns=t_ns, rank=taken.rank, path=taken.path, threads=taken.threads)
