"""Numbers of one rank and of one step; and the reason where there is none."""

from __future__ import annotations

import pytest
from drawn import run, steps, timeline
from explained import asked, only, value, worth
from made_spans import window
from meeting import met, run_of

from meshscope.analysis.explaining import explanations, groups
from meshscope.analysis.findings import findings
from meshscope.errors import InputError
from meshscope.recording.entries import Compiled, MemoryMeasured, RankStarted, Sampled

MS = 1_000_000
UNEVEN = """
    0 step        aaaaaaaaaabbbbbbbbbb
    0 compute     ####......##########
    0 all_reduce  ..####......####....
"""


def test_shares_of_one_step_add_up_to_one() -> None:
    of = timeline(UNEVEN)
    parts = [worth(of, f"share.{what}", step=0, rank=0) for what in ("compute", "hidden", "exposed", "copy", "idle")]
    assert parts == [0.2, 0.2, 0.2, 0.0, 0.4]
    assert worth(of, "share.exposed", step=1, rank=0) == 0


def test_a_kind_of_collective_in_one_step() -> None:
    of = timeline(UNEVEN)
    assert worth(of, "by_kind.all_reduce.exposed") == 10
    assert [worth(of, "by_kind.all_reduce.exposed", step=step) for step in (0, 1)] == [20, 0]
    assert worth(of, "by_kind.all_reduce.busy", step=1, rank=0) == 40


def ranks():  # type: ignore[no-untyped-def]
    """Rank 1 comes 10 late in step 0 and rank 0 comes 4 late in step 1; transfer takes 20 each time."""
    return run_of(met([[0, 104], [10, 100]], 20, steps=(0, 1)))


def test_waiting_in_one_step() -> None:
    of = ranks()
    assert [value(case) for case in asked(of, "waiting.wait")] == [10, 4]
    assert [value(case) for case in asked(of, "waiting.wait", step=0)] == [10, 0]
    assert worth(of, "waiting.charged", rank=1, step=0) == 10
    assert worth(of, "waiting.late", rank=0, step=1) == 4
    assert worth(of, "waiting.per_step.wait", rank=0) == 5
    assert worth(of, "waiting.per_step.held", rank=1) == 5
    assert worth(of, "waiting.calls", rank=0) == 2


def test_a_row_of_collectives_in_one_step_and_of_one_rank() -> None:
    of = ranks()
    assert (worth(of, "collectives.all_reduce.wait"), worth(of, "collectives.all_reduce.transfer")) == (14, 80)
    assert worth(of, "collectives.all_reduce.wait", step=0) == 10
    assert worth(of, "collectives.all_reduce.busy", rank=0) == 30 + 20
    assert worth(of, "collectives.all_reduce.count", rank=0, step=1) == 1
    assert [(case.of.split(" in ")[0], value(case)) for case in asked(of, "collectives.all_reduce.late")] == [
        ("rank 0", 4),
        ("rank 1", 10),
    ]


def test_what_a_step_worked_through() -> None:
    of = run(steps([90, 80, 70, 60], ranks=1))
    assert worth(of, "throughput", step=2) == pytest.approx(16 / 0.070)
    assert worth(of, "tokens_per_s", step=2) == pytest.approx(160 / 0.070)
    assert worth(of, "loss", step=1) == 4.0
    assert worth(of, "data_wait", step=1) == 0


def test_mfu_of_a_step_is_by_its_own_time() -> None:
    options = {"layers": 2, "width": 64, "vocab": 512, "seq": 128, "precision": "bf16"}
    name = "NVIDIA A100-SXM4-80GB"
    started = [RankStarted(t_ns=0, rank=0, device=0, device_name=name, device_kind="gpu", pid=1)]
    of = run([*started, *steps([9, 9, 9, 18], ranks=1)], options=options, sequence_length=128, global_batch=32, ranks=1)
    assert worth(of, "mfu", step=3) == pytest.approx(worth(of, "mfu", step=2) / 2)
    (token,) = asked(of, "flop_per_token")
    assert token.figure is not None
    matrices, attention = token.figure.of
    assert [part.value for part in matrices.of] == [6, 2 * (12 * 64**2 + 2 * 64) + (512 + 128 + 1) * 64]
    assert [part.value for part in attention.of] == [6, 2, 64, 128]


def test_memory_as_it_was_measured_after_a_step() -> None:
    def measured(step: int, size: int) -> MemoryMeasured:
        return MemoryMeasured(t_ns=step, rank=0, device=0, step=step, source="trees", categories={"parameters": size},
                              how={"parameters": "exact"}, peak_bytes=2 * size, peak_how="measured")  # fmt: skip

    of = run([measured(1, 70), measured(5, 90)])
    assert (worth(of, "memory.parameters"), worth(of, "memory.parameters", step=1)) == (90, 70)
    assert (worth(of, "memory.peak", step=1), only(of, "memory.peak", step=1).json) == (140, "")
    with pytest.raises(InputError, match="no step 2") as refused:
        explanations((of,), "memory.peak", step=2)
    assert "1, 5" in refused.value.hint


def test_readings_within_a_step() -> None:
    sampled = [Sampled(t_ns=at * 10 * MS, device="gpu 0", values={"power_w": 100.0 + at}) for at in range(9)]
    of = run([*sampled, *steps([40, 40], ranks=1)])
    assert worth(of, "devices.power_w.mean") == 104
    assert worth(of, "devices.power_w.mean", step=0) == 101.5


def test_what_was_compiled_again_in_a_step() -> None:
    entries = [
        Compiled(t_ns=at, rank=0, step=step, name="train_step", stage=stage, duration_ns=ns, is_recompilation=step > 0)
        for at, (step, stage, ns) in enumerate(
            ((0, "compile", 50), (3, "trace", 5), (3, "compile", 7), (4, "compile", 9))
        )
    ]
    of = run([*steps([10] * 6, ranks=1), *entries])
    assert [value(case) for case in asked(of, "compilation.again")] == [12, 9]
    assert worth(of, "compilation.again", step=3) == 12
    assert worth(of, "compilation.cost") == 21
    assert only(of, "compilation.again.1").json == "compilation.recompilations[1].duration_ns"


@pytest.mark.parametrize(
    ("name", "narrowed", "why"),
    [
        ("breakdown.busy", {"step": 0}, "it is over whole windows; busy can"),
        ("step_time.p95", {"step": 0}, "it is of many steps together"),
        ("step_time", {"rank": 0}, "a step ends when its last rank does"),
        ("compile", {"step": 0}, "compilation.again has the others"),
        ("speedup", {"step": 0}, "it compares medians of two runs"),
        ("critical_path.total", {"step": 0}, "the path runs through all steps"),
        ("flop_per_step", {"step": 0}, "by formula every step computes as much"),
        ("devices.power_w.mean", {"rank": 0}, "a sensor is of a device"),
    ],
)
def test_what_cannot_be_narrowed_is_refused_with_the_reason(name: str, narrowed: dict[str, int], why: str) -> None:
    sampled = [Sampled(t_ns=MS, device="gpu 0", values={"power_w": 100.0})]
    from made_spans import kernel

    of = run([*steps([9] * 4), *sampled], windows=[window([kernel(0, 9)], steps=[(0, 9)])])
    with pytest.raises(InputError) as refused:
        explanations((of,), name, **narrowed)
    (what,) = narrowed
    assert f"{name} cannot be told of one {what}: " in refused.value.message
    assert why in refused.value.message
    assert refused.value.hint == f"Leave --{what} out."


def test_a_rank_of_which_nothing_was_traced_is_no_empty_answer() -> None:
    of = run([*steps([9] * 4, ranks=2)], windows=[window([], steps=[(0, 9)])])
    assert [case.why for case in asked(of, "exposed", rank=1)] == ["nothing is recorded of it"]


def test_names_of_a_group_begin_as_it_says() -> None:
    of = ranks()
    for group in groups():
        if group.heads:
            for number in group.numbers(of):
                assert all(group.may_have(name) for name in (number.name, *number.also)), number.name


def test_what_a_finding_costs_is_a_share_of_what_it_names_with_its_rule_beside() -> None:
    arrival = [[100 * MS * step for step in range(40)] for _ in range(4)]
    arrival[2] = [at + 30 * MS for at in arrival[2]]
    of = run_of(met(arrival, MS, steps=tuple(range(40)), host="node"), strategy="ddp", device_kind="gpu", cores=64)
    case = only(of, "findings.straggler.cost")
    (found,) = findings(of)
    assert (value(case), case.rank, case.json) == (round(found.cost_ns), 2, "findings[0].cost_ns")
    assert case.figure is not None
    share, whole = case.figure.of[0].of
    assert (share.value, whole.name) == (found.cost_frac, found.of)
    assert any(note.startswith("its rule: Straggler:") for note in case.notes)
    assert any(note.startswith("shown by: rank 2 came last") for note in case.notes)
    assert only(of, "findings.straggler.cost", rank=0).why == "it is not about that rank"
