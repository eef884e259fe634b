"""Who wins is decided once: the comparison's verdict and the screen of all strategies say the same of a recording."""

from __future__ import annotations

import pytest
from drawn import run, steps
from stepped import Step, profiled

from meshscope.analysis.comparison import comparison
from meshscope.analysis.contenders import contenders
from meshscope.analysis.gap_words import winning
from meshscope.recording.entries import Ended, Sampled
from meshscope.run import Run

LAST_NS = 10 * 10**9


def beside(strategy: str, step_ms: float, others: float, count: int = 20) -> Run:
    """Two CPU ranks on two cores, of which other programs use ``others`` all the time, and the ranks the rest."""
    readings = [
        Sampled(t_ns=at_ns, device=device, values=values)
        for at_ns in (0, LAST_NS)
        for device, values in (
            ("host", {"utilization_frac": 1.0}),
            *((f"rank {rank}", {"cpu_cores": (2 - others) / 2}) for rank in (0, 1)),
        )
    ]
    entries = [*steps([step_ms - 1] * count), *readings, Ended(t_ns=LAST_NS, outcome="done")]
    return run(entries, strategy=strategy, device_kind="cpu", cores=2)


def both(*runs: Run) -> tuple[str, str, str]:
    """The leader and the headline of the comparison, and what the screen of all strategies says."""
    found = comparison(runs)
    return found.leader, found.verdict, winning(contenders(runs)).sentence


def test_beside_other_programs_neither_names_a_winner_and_both_say_why() -> None:
    said = "ddp is ahead, but other programs used 1.5 of 2 cores while ddp was measured: no winner can be named."
    assert both(beside("ddp", 100, 1.5), beside("pmap", 140, 0.1)) == ("", said, said)
    assert both(beside("ddp", 100, 1.5), beside("pmap", 140, 0.1), beside("fsdp", 200, 0.1)) == ("", said, said)


def test_where_nobody_else_ran_both_name_the_same_winner() -> None:
    leader, headline, screen = both(beside("ddp", 100, 0.1), beside("pmap", 140, 0.1))
    assert (leader, headline) == ("ddp", "ddp leads: 1.4× pmap.")
    assert screen.startswith("ddp wins by 40.0 ms a step over pmap (1.4×)")


def test_a_loser_that_ran_beside_other_programs_is_named_by_both() -> None:
    runs = beside("ddp", 100, 0.1), beside("pmap", 140, 1.5), beside("fsdp", 200, 0.1)
    leader, headline, screen = both(*runs)
    why = "other programs used 1.5 of 2 cores while pmap was measured."
    assert (leader, headline) == ("ddp", f"ddp leads: 2.0× fsdp. Whether ddp leads pmap is not known: {why}")
    assert screen.startswith("ddp wins by 100 ms a step over fsdp (2.0×), but not over pmap")
    assert screen.endswith(f"Whether it wins over pmap is not known: {why}")


def test_a_difference_that_one_run_of_each_cannot_show_has_no_winner_in_either() -> None:
    """3 % apart, and no spread within either run: runs of one thing differ by more on CPU cores."""
    leader, headline, screen = both(beside("ddp", 100, 0.1), beside("pmap", 103, 0.1))
    assert leader == ""
    assert headline.startswith("ddp and pmap are level: 320 and 311 samples/s; one run of each tells apart ")
    assert screen.startswith("Neither of ddp and pmap wins: they are 3.00 ms a step apart (3 %); one run of each tells")
    assert headline.rsplit("apart", 1)[1] == screen.rsplit("apart", 1)[1]


@pytest.mark.parametrize(("count", "leader"), [(13, ""), (14, "ddp")])
def test_too_few_steps_have_no_winner_in_either(count: int, leader: str) -> None:
    found, headline, screen = both(beside("ddp", 100, 0.1, count), beside("pmap", 140, 0.1, count))
    assert found == leader
    assert (headline == screen) is (not leader)
    few = "No winner of ddp and pmap: ddp has 11 unprofiled steps past warm-up; 12 are needed."
    assert headline == (few if not leader else "ddp leads: 1.4× pmap.")


def test_each_size_has_its_own_decision() -> None:
    small = profiled("ddp", 100), profiled("fsdp", 200)
    alone = profiled("pp", 400, [Step(compute=1)], global_batch=64)
    leader, headline, _ = both(*small, alone)
    assert leader == "ddp"
    assert headline.startswith("With 2 ranks, global batch 32: ddp leads: 2.0× fsdp. pp differs")
