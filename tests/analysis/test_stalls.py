"""Where a run stands still, told from the stacks that were taken of it."""

from __future__ import annotations

from asked import only, said
from drawn import run, steps

from meshscope.analysis.stalls import newest, places, stall_words
from meshscope.recording.entries import Entry, Phase, Sampled, StacksTaken
from meshscope.run import Run

S = 1_000_000_000
BACKWARD = "/v/site-packages/torch/autograd/graph.py:979 _engine_run_backward"
TRAIN, FETCH = "/w/train.py:67 train(step=4)", "/w/data.py:12 fetch(step=4)"
WAITS = (
    "E1130 15:27:29 20685 rendezvous.cc:116] [id={id}] This thread has been waiting for `all reduce RendezvousKey"
    "{{run_id=RunId: 44, global_devices=[0, 1, 2, 3], num_local_participants=4, collective_op_kind=cross_module, "
    "op_id=1}}` for 5 seconds and may be stuck. Expected 4 threads to join the rendezvous, but not all of them arrived "
    "on time."
)


def taken(rank: int, *threads: tuple[str, ...], at_ns: int = 11 * S, says: tuple[str, ...] = ()) -> StacksTaken:
    return StacksTaken(t_ns=at_ns, rank=rank, path=f"stacks/rank{rank}-1.txt", threads=threads, said=says)


def still(*entries: Entry, ranks: int = 2, framework: str = "torch", at_ns: int = 12 * S) -> Run:
    """Ranks that did four steps of 100 ms, and then nothing."""
    phases = [Phase(t_ns=0, rank=rank, phase="training") for rank in range(2)]
    return run([*steps([100.0] * 4), *phases, *entries], now_ns=at_ns, ranks=ranks, framework=framework)


def test_the_rank_that_stands_elsewhere_is_told_first() -> None:
    found = still(taken(0, (BACKWARD, TRAIN)), taken(1, (FETCH, TRAIN)), ranks=2)
    assert stall_words(found) == (
        "rank 0 stood in _engine_run_backward (graph.py:979), reached from train(step=4) (train.py:67)",
        "rank 1 stood in fetch(step=4) (data.py:12)",
    )
    many = still(*(taken(rank, (BACKWARD, TRAIN)) for rank in (0, 2, 3)), taken(1, (FETCH, TRAIN)), ranks=4)
    assert [words.partition(" stood")[0] for words in stall_words(many)] == ["rank 1", "ranks 0, 2–3"]


def test_stacks_from_before_the_last_step_say_nothing_of_now() -> None:
    found = still(taken(0, (FETCH,), at_ns=200_000_000), ranks=2)
    assert newest(found) == ()
    assert stall_words(found) == ()


def test_of_two_stacks_of_a_rank_the_later_one_counts() -> None:
    found = still(taken(0, (BACKWARD,)), taken(0, (FETCH,), at_ns=12 * S), at_ns=13 * S)
    assert [one.threads[0][0] for one in newest(found)] == [FETCH]


def test_a_device_of_a_jax_process_is_named_by_its_thread_and_xla_counts_who_has_come() -> None:
    says = tuple(WAITS.format(id=number) for number in (0, 2, 1, 0))
    main, other = ("/v/site-packages/jax/stages.py:890 __call__", TRAIN), ("/w/inject.py:9 wait(device=3)",)
    found = still(taken(0, main, other, says=says), ranks=4, framework="jax")
    assert places(found) == (3,)
    words = stall_words(found)
    assert words[0] == "XLA: 3 of 4 participants wait in all_reduce 1 of devices 0–3, 1 of them not there"
    assert words[1] == "a thread beside the main one of rank 0 stood in wait(device=3) (inject.py:9)"
    hang = only("hang", found)
    assert hang.ranks == (3,)
    assert "3 of 4 participants" in said(hang)


def test_a_rank_that_is_not_in_torch_while_all_others_are_is_waited_for() -> None:
    odd = (taken(0, (BACKWARD, TRAIN)), taken(1, (FETCH, TRAIN)), taken(2, (BACKWARD, TRAIN)))
    assert places(still(*odd, ranks=3)) == (1,)
    assert only("hang", still(*odd, ranks=3)).ranks == (1,)
    assert places(still(*odd, ranks=4)) == (), "one rank has left no stack"
    assert places(still(*odd[:2], taken(2, (TRAIN,)), ranks=3)) == (), "two are elsewhere"


def test_an_argument_that_names_no_rank_of_the_run_names_nobody() -> None:
    main, other = (TRAIN,), ("/w/inject.py:9 wait(device=9)",)
    assert places(still(taken(0, main, other), ranks=4)) == ()


def test_who_computes_while_all_stand_still_is_told() -> None:
    readings = [
        Sampled(t_ns=at * S, device=device, values={field: value})
        for at in (4, 6)
        for device, field, value in (
            ("rank 0", "cpu_cores", 0.0),
            ("rank 1", "cpu_cores", 1.0 if at == 4 else 0.5),
            ("gpu 0", "utilization_frac", 1.0),
        )
    ]
    words = stall_words(still(*readings, taken(0, (TRAIN,)), ranks=2))
    assert "cores in use since then: rank 0 0.00, rank 1 0.75" in words
    assert "devices at work since then, in % of the time: gpu 0 100 %" in words


def test_a_supervisor_that_has_asked_makes_a_finding_before_twenty_steps_are_over() -> None:
    quiet = still(at_ns=8 * S)
    assert only("hang", still(taken(0, (FETCH,), at_ns=7 * S), at_ns=8 * S)).is_grave
    assert stall_words(quiet) == ()
