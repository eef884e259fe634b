"""What holds of all findings: their order, their form, and that a healthy run has none."""

from __future__ import annotations

import math

import pytest
from asked import codes
from drawn import run, steps, timeline

from meshscope.analysis.findings import Finding, findings, rules
from meshscope.analysis.findings.rule import Rule, part, share
from meshscope.analysis.findings.whole import Whole, traced_step, training, usual_step
from meshscope.analysis.standing import shares_cores
from meshscope.discovery import bundled
from meshscope.recording.entries import Checked
from meshscope.run import Gallery

STRATEGIES = ("ddp", "fsdp", "pmap", "pjit")
END_NS = 2**62


def recorded() -> Gallery:
    return Gallery(bundled("recordings") / "tiny-4-cpu-ranks")


def test_the_clean_recording_of_all_four_strategies_has_no_finding() -> None:
    _, runs = recorded().at(END_NS)
    assert {run.name for run in runs} >= set(STRATEGIES)
    assert all(run.windows and run.ended for run in runs)
    assert {run.name: codes(run) for run in runs if codes(run)} == {}


def test_nor_has_it_one_at_any_moment_of_a_replay() -> None:
    gallery = recorded()
    plan, runs = gallery.at(END_NS)
    assert plan is not None
    last_ns = max(run.experiment.t0_unix_ns + run.last_entry_ns for run in runs)
    for moment in range(40):
        now_ns = plan.t0_unix_ns + (last_ns - plan.t0_unix_ns) * moment // 40
        assert [(run.name, codes(run)) for run in gallery.at(now_ns)[1] if codes(run)] == []


def test_every_rule_is_found_by_its_file_and_has_a_code_of_its_own() -> None:
    found = [rule.code for rule in rules()]
    assert len(found) == len(set(found)) == 28
    assert all(code == code.lower() and " " not in code for code in found)


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.code)
def test_every_rule_abstains_on_a_run_of_which_nothing_is_known(rule: Rule) -> None:
    assert rule.question(run()) == ()


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.code)
def test_every_rule_abstains_on_a_healthy_run_of_two_devices(rule: Rule) -> None:
    checks = (Checked(t_ns=1, rank=rank, step=0, parameters=1.0, rng=str(rank)) for rank in (0, 1))
    entries = [*steps([100.0] * 20), *checks]
    healthy = timeline(
        """
        0 compute    ##########..##########..##########..
        0 all_reduce .......###.........###.........###..
        0 step       aaaaaaaaaaaabbbbbbbbbbbbcccccccccccc
        1 compute    ##########..##########..##########..
        1 all_reduce .......###.........###.........###..
        1 step       aaaaaaaaaaaabbbbbbbbbbbbcccccccccccc
        """
    )
    both = run(entries, windows=healthy.windows)
    assert rule.question(both) == ()


def test_what_spoils_the_run_comes_first_then_what_costs_most_then_what_costs_no_time() -> None:
    slow_input = steps([100.0] * 20, data_wait_ns=30_000_000)
    keys = [
        Checked(t_ns=step, rank=rank, step=step, parameters=0.0, rng=f"state {step}")
        for step in range(3)
        for rank in (0, 1)
    ]
    assert codes(run([*slow_input, *keys])) == ["same-key", "input-bound"]


def test_a_cost_carries_what_it_is_a_share_of() -> None:
    found = part(25.0, Whole(100.0, "a step of 100 ns"))
    assert (found.cost_ns, found.cost_frac, found.of) == (25.0, 0.25, "a step of 100 ns")
    unknown = share(0.5, Whole())
    assert math.isnan(unknown.cost_ns)
    assert math.isnan(unknown.cost_frac)


def test_a_finding_names_a_rank_only_where_it_is_about_one() -> None:
    assert Finding("a", "a", (), "", "", ranks=(3,)).rank == 3
    assert Finding("a", "a", (), "", "", ranks=(3, 4)).rank is None
    assert Finding("a", "a", (), "", "").rank is None


def test_wholes_are_the_usual_step_the_traced_step_and_the_training() -> None:
    assert usual_step(run()).is_known is False
    assert usual_step(run(steps([100.0] * 6, ranks=1))).ns == 100e6
    assert training(run(steps([100.0, 100.0], ranks=1))).ns == 201e6
    stepped = timeline("0 compute ##..##..\n0 step aaaabbbb")
    assert (traced_step(stepped).ns, traced_step(stepped).words) == (40, "the mean profiled step of 40 ns")
    assert traced_step(timeline("0 compute ##..##")).words == "the 60 ns traced of a rank"


def test_cpu_ranks_share_cores_unless_each_has_one_for_communication_beside_that_for_computing() -> None:
    assert shares_cores(run(device_kind="cpu", ranks=4, cores=7))
    assert not shares_cores(run(device_kind="cpu", ranks=4, cores=8))
    assert shares_cores(run(device_kind="cpu", ranks=2, cores=0))
    assert not shares_cores(run(device_kind="gpu", ranks=4, cores=1))


def test_the_answer_is_kept_for_as_long_as_the_run() -> None:
    one = run(steps([100.0] * 20, data_wait_ns=30_000_000))
    assert findings(one) is findings(one)
