"""Who leads, by how much, and why: no more than the numbers support."""

from __future__ import annotations

import math
import re
import textwrap
from dataclasses import replace
from typing import Any

import pytest
from drawn import run, steps, windows
from stepped import Step, profiled
from stepped import windows as exposed_windows

from meshscope.analysis.comparison import comparison
from meshscope.recording.entries import Compiled, Ended, MemoryMeasured, RankStarted
from meshscope.run import SILENCE_NS, Run

DDP = """
    0 step        aaaaaaaaaa
    0 compute     ########..
    0 all_reduce  ....#####.
"""
TWO = """
    0 step        aaaaabbbbb
    0 compute     ########..
"""
FSDP = """
    0 step        aaaaaaaaaaaaaaaaaaaa
    0 compute     ########............
    0 all_gather  ........##########..
"""
SLOW = """
    0 step        aaaaaaaaaaaaaaaaaaaa
    0 compute     #################...
    0 all_reduce  ................##..
"""
WAITING = """
    0 step        aaaaaaaaaaaaaaaaaaaa
    0 compute     ########............
    0 all_reduce  .......##...........
"""
STEP = [Step(compute=80, exposed=10, idle=10)] * 3
EXPOSED = [Step(compute=80, exposed=100, idle=20)] * 3


def made(strategy: str, step_ms: float, picture: str = "", **about: Any) -> Run:
    """A run of equal steps, and the windows of a picture."""
    jitter = [step_ms + (number % 3) * 0.1 for number in range(20)]
    drawn = windows(picture) if picture else ()
    return run([*steps(jitter), Ended(t_ns=10**12, outcome="done")], windows=drawn, strategy=strategy, **about)


def test_the_fastest_leads_and_the_slowest_says_why() -> None:
    found = comparison((profiled("ddp", 100, STEP), profiled("fsdp", 200, EXPOSED)))
    assert found.leader == "ddp"
    assert found.verdict == (
        "ddp leads: 2.0× fsdp, because fsdp leaves 50 % of a step exposed in all-gather (ddp 10 %)."
    )


@pytest.mark.parametrize(
    ("step_ms", "made_of", "why"),
    [
        (200, Step(compute=180, exposed=10, idle=10), ", because slow computes 180 ms per step (ddp 80.0 ms)."),
        (200, Step(compute=80, exposed=10, idle=110), ", because slow idles 55 % of a step (ddp 10 %)."),
        (200, Step(compute=80, exposed=10, idle=10, copied=100), ", because slow copies in 50 % of a step (ddp 0 %)."),
        # As long a step without a profiler, and none of the difference in the profiled ones.
        (
            200,
            Step(compute=80, exposed=10, idle=10),
            "; slow's step is 100 ms longer than ddp's, but not when profiled, so why is not known.",
        ),
        (
            200,
            Step(compute=70, exposed=10, idle=10),
            "; slow's step is 100 ms longer than ddp's, but 10.0 ms shorter when profiled, so why is not known.",
        ),
        (
            200,
            Step(compute=160, exposed=70, idle=50),
            "; slow's step is 100 ms longer than ddp's, but 180 ms when profiled, too much to say why.",
        ),
        # 40 ms of 100: named with its size. 35 of 123 (and 147 without a profiler): not at all.
        (
            200,
            Step(compute=110, exposed=40, idle=50),
            "; slow's profiled step is 100 ms longer than ddp's, in part (40.0 ms) because slow idles 25 % of a step",
        ),
        (
            247,
            Step(compute=115, exposed=35, idle=43, copied=30),
            "profiled step is 123 ms longer than ddp's, and no part makes up a third (most: computing, 35.0 ms).",
        ),
        # Idle is all that the profiled steps differ by, and that is 33 of 147 ms.
        (
            247,
            Step(compute=80, exposed=10, idle=43),
            "; slow's step is 147 ms longer than ddp's, but only 33.0 ms when profiled, too little to say why.",
        ),
    ],
)
def test_the_reason_is_the_part_that_explains_the_difference_of_the_step_times_if_any_does(
    step_ms: float, made_of: Step, why: str
) -> None:
    runs = profiled("ddp", 100, STEP), profiled("slow", step_ms, [made_of] * 3)
    assert why in comparison(runs).verdict


def test_what_the_scheduler_chooses_is_no_reason() -> None:
    about = {"device_kind": "cpu", "ranks": 2}
    shared = comparison(
        (profiled("ddp", 100, STEP, cores=2, **about), profiled("fsdp", 200, EXPOSED, cores=2, **about))
    )
    assert shared.verdict == (
        "ddp leads: 2.0× fsdp; fsdp's profiled step is 100 ms longer than ddp's, 90.0 of them exposed: the scheduler's "
        "choice."
    )
    more = [Step(compute=60, exposed=130, idle=10)] * 3
    beyond = comparison((profiled("ddp", 100, STEP, cores=2, **about), profiled("fsdp", 200, more, cores=2, **about)))
    assert beyond.verdict.endswith(
        "fsdp's profiled step is 100 ms longer than ddp's, all of them exposed: the scheduler's choice."
    )
    apart = comparison((profiled("ddp", 100, STEP, cores=4, **about), profiled("fsdp", 200, EXPOSED, cores=4, **about)))
    assert "because fsdp leaves 50 % of a step exposed" in apart.verdict
    idle = [Step(compute=80, exposed=10, idle=110)] * 3
    idling = comparison((profiled("ddp", 100, STEP, cores=2, **about), profiled("slow", 200, idle, cores=2, **about)))
    assert "because slow idles 55 % of a step (ddp 10 %)" in idling.verdict


def test_what_profiled_steps_show_is_told_of_profiled_steps_alone_and_of_the_one_it_is_set_against() -> None:
    """The unprofiled steps differ by 100 ms, the profiled ones by 120, of which 90 are exposed."""
    longer = [Step(compute=110, exposed=100, idle=10)] * 3
    about = {"device_kind": "cpu", "ranks": 2, "cores": 2}
    runs = [profiled(name, ms, made, **about) for name, ms, made in
            (("pjit", 100, STEP), ("pmap", 101, STEP), ("fsdp", 200, longer))]  # fmt: skip
    said = comparison(tuple(runs)).verdict
    assert said == (
        "pjit and pmap are level and lead: 2.0× fsdp; fsdp's profiled step is 120 ms longer than pjit's, 90.0 of them "
        "exposed: the scheduler's choice."
    )
    assert len(textwrap.wrap(said, 80)) == 2


def test_steps_of_other_size_have_no_leader() -> None:
    """Half the samples in steps of the same length."""
    fewer = [*steps([99.0] * 20, samples=8), Ended(t_ns=10**12, outcome="done")]
    halved = run(fewer, windows=exposed_windows(EXPOSED), strategy="fsdp")
    found = comparison((profiled("ddp", 100, STEP), halved))
    assert found.leader == ""
    assert found.verdict == "No winner of ddp and fsdp: a step of ddp takes 32 samples, one of fsdp 16."


def test_without_traces_there_is_no_reason() -> None:
    assert comparison((made("a", 100), made("b", 200))).verdict == "a leads: 2.0× b."


def test_a_difference_within_the_noise_is_none() -> None:
    found = comparison((made("a", 100.0), made("b", 100.05), made("c", 200)))
    assert found.verdict == "a and b are level and lead: 2.0× c."
    assert found.leader == "a"
    level = comparison((made("a", 100.0), made("b", 100.05)))
    assert re.fullmatch(
        r"a and b are level: 317 and 316 samples/s; one run of each tells apart \d+ % and more\.", level.verdict
    )
    assert level.leader == ""


def test_one_strategy_is_told_without_comparing() -> None:
    assert comparison((made("ddp", 100),)).verdict.startswith("ddp: 317 samples/s")


def test_baselines_alone_are_no_comparison() -> None:
    single = run(steps([99.0] * 9, ranks=1), strategy="torch-single", is_baseline=True, ranks=1)
    assert comparison((single,)).verdict == "Only a baseline has run."
    assert comparison((single, single)).verdict == "Only baselines have run."


def test_nothing_to_rank_is_said() -> None:
    assert comparison(()).verdict == "Nothing has run yet."
    found = comparison((run(strategy="ddp"),))
    assert found.leader == ""
    assert "No strategy" in found.verdict
    assert found.rows[0].not_ranked_why == "no unprofiled step past warm-up yet"


def test_another_kind_of_device_is_shown_and_never_ranked() -> None:
    gpus, cpu = [made("ddp", 100), made("fsdp", 120)], made("pmap", 1, device_kind="cpu")
    found = comparison((*gpus, cpu))
    assert found.leader == "ddp"
    assert "pmap" not in found.verdict
    assert (found.rows[2].is_ranked, found.rows[2].not_ranked_why) == (False, "ran on CPU, the others on GPU")
    assert "pmap is not ranked: it ran on CPU, the others on GPU." in found.footnotes


def test_a_strategy_that_failed_is_shown_and_never_ranked() -> None:
    broken = run([*steps([50.0] * 9), Ended(t_ns=10**12, outcome="failed", why="rank 1 …")], strategy="fsdp")
    found = comparison((made("ddp", 100), broken))
    assert found.leader == "ddp"
    assert not math.isnan(found.rows[1].samples_per_s)
    assert "fsdp is not ranked: it failed before its last step." in found.footnotes


def test_a_strategy_that_broke_off_is_shown_and_never_ranked() -> None:
    last_ns = 10 * 10**9
    lost = replace(run(steps([50.0] * 9), strategy="fsdp"), now_ns=last_ns + SILENCE_NS, last_entry_ns=last_ns)
    found = comparison((made("ddp", 100), lost))
    assert (found.leader, found.rows[1].progress.state) == ("ddp", "lost")
    assert not math.isnan(found.rows[1].samples_per_s)
    assert "fsdp is not ranked: it broke off before its last step." in found.footnotes
    assert comparison((lost,)).verdict == "No strategy can be ranked."


def test_whoever_is_not_ranked_has_a_footnote() -> None:
    ended = Ended(t_ns=10**12, outcome="done")
    over, going = run([*steps([9.0] * 2), ended], strategy="over"), run(steps([9.0] * 2), strategy="going")
    untold = run(steps([50.0] * 9, samples=-1), strategy="untold")
    notes = comparison((made("ddp", 100), over, going, run(strategy="new"), untold)).footnotes
    assert "over is not ranked: no unprofiled step past warm-up." in notes
    assert "going and new are not ranked: no unprofiled step past warm-up yet." in notes
    assert "untold is not ranked: its steps do not say how many samples they took." in notes
    assert comparison((over,)).verdict == "No strategy has an unprofiled step past warm-up."


def test_what_the_ranks_say_of_their_device_beats_the_plan() -> None:
    started = RankStarted(t_ns=0, rank=0, device=0, device_name="CPU", device_kind="cpu", pid=1)
    fallen = run([started, *steps([1.0] * 9)], strategy="pmap", device_kind="gpu")
    found = comparison((made("ddp", 100), made("fsdp", 120), fallen))
    assert found.rows[2].device_kind == "cpu"
    assert not found.rows[2].is_ranked


def test_of_two_kinds_that_tie_the_faster_is_the_measure() -> None:
    found = comparison((made("pmap", 1, device_kind="cpu"), made("ddp", 100)))
    assert found.leader == "ddp"


def test_scaling_is_against_the_same_framework_on_one_device() -> None:
    single = run(steps([99.0] * 9, ranks=1, samples=10), strategy="torch-single", is_baseline=True, ranks=1)
    other = run(steps([9.0] * 9, ranks=1), strategy="jax-single", is_baseline=True, ranks=1, framework="jax")
    found = comparison((run(steps([98.0] * 9, samples=10), strategy="ddp"), single, other))
    ddp = found.rows[0]
    assert ddp.speedup == pytest.approx(20 / 0.099 / (10 / 0.099))
    assert ddp.efficiency_frac == pytest.approx(ddp.speedup / 2)
    assert math.isnan(found.rows[1].speedup)
    assert not found.rows[1].is_ranked
    assert found.leader == "ddp"
    assert any("torch-single" in note for note in found.footnotes)


def test_shares_of_a_step_add_up_to_one() -> None:
    (row,) = comparison((made("ddp", 100, DDP + "    0 copy ......####"),)).rows
    assert sum(row.share.values()) == pytest.approx(1)
    assert row.share == pytest.approx({"compute": 0.4, "hidden": 0.4, "exposed": 0.1, "copy": 0.1, "idle": 0.0})
    assert row.exposed_frac == pytest.approx(0.1)


def test_a_row_carries_what_it_stands_on() -> None:
    entries = [
        *steps([100.0] * 9), Compiled(t_ns=0, rank=0, name="f", stage="compile", duration_ns=5),
        MemoryMeasured(t_ns=0, rank=1, device=1, step=1, source="s", categories={}, how={}, peak_bytes=7, peak_how="m"),
    ]  # fmt: skip
    (row,) = comparison((run(entries, windows=windows(DDP), parallel_lines=3),)).rows
    assert (row.measured_steps, row.profiled_steps, row.profiled_ranks, row.parallel_lines) == (7, 1, 1, 3)
    assert (row.peak_bytes, row.peak_how, row.compile_ns) == (7, "m", 5)


def test_a_file_that_was_cut_gives_no_step_and_is_named() -> None:
    whole, cut = windows(DDP.rstrip() + DDP.replace("    0", "    1"))
    cut = replace(cut, steps=(), step_ns=cut.step_ns[:0], is_complete=False, source="traces/rank1.json")
    found = comparison((run([*steps([100.0] * 9)], windows=[whole, cut]),))
    (row,) = found.rows
    assert (row.profiled_steps, row.profiled_ranks, row.exposed_frac) == (1, 1, pytest.approx(0.1))
    assert "ddp rank 1: traces/rank1.json was cut short; none of its steps is counted." in found.footnotes


def test_steps_that_only_some_ranks_have_are_counted_by_rank() -> None:
    whole, short = windows(TWO.rstrip() + TWO.replace("    0", "    1"))
    short = replace(short, steps=short.steps[:1], step_ns=short.step_ns[:1])
    found = comparison((run(windows=[whole, short]),))
    assert any("(ddp 3 of 2 × 2)" in note for note in found.footnotes)


def test_a_trace_that_could_not_be_read_is_named() -> None:
    found = comparison((replace(made("ddp", 100), refused=(("traces/a.json", "no events", "look"),)),))
    assert "ddp: traces/a.json could not be read." in found.footnotes


def test_lines_that_could_not_be_read_are_told() -> None:
    found = comparison((replace(made("ddp", 100), skipped_lines=3), replace(made("fsdp", 120), skipped_lines=1)))
    assert "3 lines of ddp's journal could not be read." in found.footnotes
    assert "1 line of fsdp's journal could not be read." in found.footnotes


def test_a_run_of_no_ranks_and_steps_of_no_samples_divide_nothing() -> None:
    none = made("ddp", 100, ranks=0)
    single = run(steps([99.0] * 9, ranks=1), strategy="torch-single", is_baseline=True, ranks=1)
    empty = run(steps([50.0] * 9, samples=0), strategy="fsdp")
    untold = run(steps([50.0] * 9, samples=-1), strategy="zero")
    found = comparison((none, empty, untold, single))
    assert math.isnan(found.rows[0].efficiency_frac)
    assert found.leader == "ddp"
    for row in found.rows[1:3]:
        assert row.not_ranked_why == "its steps do not say how many samples they took"


def test_a_profiled_step_of_no_length_has_no_share() -> None:
    flat = """
        0 step        aaaaaaaaaa
        0 compute     ..........
        0 all_reduce  #.........
    """
    (window,) = windows(flat)
    flat_window = replace(window, step_ns=window.step_ns * 0)
    leader = replace(made("ddp", 100), windows=(flat_window,))
    exposed = profiled("fsdp", 200, [Step(compute=20, exposed=80)] * 3)
    assert "because fsdp leaves 80 % of a step exposed in all-gather (ddp –)" in comparison((leader, exposed)).verdict


@pytest.mark.parametrize(
    ("device_kind", "cores", "said"),
    [("cpu", 1, " on 1 of 2 cores."), ("cpu", 2, "samples/s."), ("cpu", 0, "samples/s."), ("gpu", 1, "samples/s.")],
)
def test_a_baseline_on_fewer_cores_says_on_how_many(device_kind: str, cores: int, said: str) -> None:
    about = {"device_kind": device_kind, "strategy": "torch-single", "is_baseline": True, "ranks": 1, "cores": cores}
    single = run(steps([99.0] * 9, ranks=1, samples=10), **about)
    found = comparison((made("ddp", 100, device_kind=device_kind, cores=2), single))
    (note,) = [note for note in found.footnotes if note.startswith("×1 is throughput over that of one device: ")]
    assert "torch-single 101 samples/s" in note
    assert note.endswith(said)


def test_unknown_is_not_a_number() -> None:
    (row,) = comparison((run(strategy="ddp"),)).rows
    assert row.share == {}
    for value in (row.samples_per_s, row.median_ns, row.exposed_frac, row.peak_bytes, row.compile_ns, row.speedup):
        assert math.isnan(value)


def test_cpu_ranks_compare_code_paths_and_say_so() -> None:
    found = comparison((made("ddp", 100, device_kind="cpu"),))
    assert found.footnotes[0] == "2 CPU ranks share 2 cores: this compares code paths, not GPUs."
    assert not any("cores" in note for note in comparison((made("ddp", 100),)).footnotes)


def test_different_batches_are_said() -> None:
    found = comparison((made("ddp", 100), made("fsdp", 100, global_batch=64)))
    assert "Global batches differ: ddp 32, fsdp 64." in found.footnotes


def test_a_run_with_an_injected_fault_is_shown_and_never_ranked_beside_clean_ones() -> None:
    found = comparison((made("ddp", 100), made("fsdp", 50, faults=["straggler 60 ms"])))
    assert found.leader == "ddp"
    assert found.rows[1].not_ranked_why == "ran with injected straggler 60 ms, others did not"
    assert found.footnotes[0] == "No clean run: fsdp ran with injected straggler 60 ms."


def test_runs_that_all_have_the_fault_are_ranked_and_said_to_have_it() -> None:
    found = comparison((made("ddp", 100, faults=["same key"]), made("fsdp", 50, faults=["same key"])))
    assert found.leader == "fsdp"
    assert found.footnotes[0] == "No clean runs: ddp and fsdp ran with injected same key."


def test_a_baseline_with_a_fault_is_no_measure_of_a_clean_run() -> None:
    faults = ["slow input 9 ms"]
    late = run(steps([99.0] * 9, ranks=1), strategy="torch-single", is_baseline=True, ranks=1, faults=faults)
    clean = run(steps([98.0] * 9), strategy="ddp")
    alike = run(steps([98.0] * 9), strategy="ddp", faults=faults)
    assert math.isnan(comparison((clean, late)).rows[0].speedup)
    assert comparison((alike, late)).rows[0].speedup > 0
