"""What kernels, phases, scopes, launches and idle time are made of, worked by hand."""

from __future__ import annotations

import pytest
from drawn import run
from explained import asked, only, parts, value, worth
from made_spans import Made, collective, host, kernel, launch, window

from meshscope.analysis.explaining import explanations
from meshscope.errors import InputError
from meshscope.kinds import ANNOTATION, FRAME
from meshscope.run import Run

ENGINE = "autograd::engine::evaluate_function: MmBackward0"
STEP = "Optimizer.step#AdamW.step"


def gemms() -> Run:
    """Two ranks; rank 0 calls gemm for 10 and 30 in step 0 and 20 in step 1, rank 1 once for 40. One softmax of 100."""
    first = [kernel(0, 10), kernel(20, 50), kernel(100, 120), kernel(200, 300, name="softmax")]
    return run(windows=[
        window(first, steps=[(0, 90), (90, 190)]),
        window([kernel(0, 40)], rank=1, steps=[(0, 90)]),
    ])  # fmt: skip


def test_an_operation_is_its_calls_added_up_over_ranks() -> None:
    case = only(gemms(), "operations.gemm")
    assert (value(case), parts(case)) == (100, {"rank 0": 60, "rank 1": 40})
    assert case.json == "operations.top[0].total_ns"
    assert case.notes == ("on 2 ranks (0–1)", "calls begin: 3 in step 0, 1 in step 1")
    assert case.evidence is not None
    assert (case.evidence.count, case.evidence.largest[0].share_ns) == (4, 40)
    assert [rule.rule for rule in case.evidence.rules] == ["the trace's own category"]


@pytest.mark.parametrize(
    ("what", "of_all", "of_step", "of_rank"),
    [
        (".count", 4, 3, 1),
        (".mean", 25.0, 80 / 3, 40.0),
        (".median", 25.0, 30.0, 40.0),
        (".max", 40, 40, 40),
        (".share", 0.5, 1.0, 1.0),
        ("", 100, 80, 40),
    ],
)
def test_each_figure_of_an_operation_can_be_told_of_a_rank_and_of_a_step(
    what: str, of_all: float, of_step: float, of_rank: float
) -> None:
    name = f"operations.gemm{what}"
    told = (worth(gemms(), name), worth(gemms(), name, step=0), worth(gemms(), name, rank=1, step=0))
    assert told == (of_all, of_step, of_rank)


def test_an_operation_that_a_step_does_not_call_took_no_time_there_and_has_no_median() -> None:
    assert worth(gemms(), "operations.softmax", step=1) == 0
    (case,) = asked(gemms(), "operations.softmax.median", step=1)
    assert (case.figure, case.why) == (None, "no call of it begins there")


def test_one_name_of_two_kinds_is_two_cases() -> None:
    of = run(windows=[window([kernel(0, 10, name="x"), Made(kernel(0, 1).kind.COPY, "s", 20, 25, "x")])])
    assert [(case.of, value(case)) for case in asked(of, "operations.x")] == [
        ("compute by that name", 10),
        ("copy by that name", 5),
    ]


def test_a_part_of_a_kernels_name_brings_its_whole_name_without_steering_the_terminal() -> None:
    of = run(windows=[window([kernel(0, 9, name="void evil\x1b[31m::gemm<float, 128>")])])
    with pytest.raises(InputError) as refused:
        explanations((of,), "evil")
    assert "Did you mean operations.void evil�[31m::gemm<float, 128>" in refused.value.hint


def trained() -> Run:
    """Two steps, each 10 of forward, 30 of backward with its all-reduce (5 of it beside compute), 10 of optimizer."""
    spans: list[Made] = []
    for at in (0, 100):
        spans += [
            kernel(at + 10, at + 20, launch(at + 1, at + 2), "forward"),
            host(at + 20, at + 40, ENGINE, lane="autograd"),
            kernel(at + 30, at + 45, launch(at + 21, at + 22, lane="autograd"), "backward"),
            collective(at + 40, at + 60, launch(at + 31, at + 32, lane="autograd")),
            host(at + 50, at + 70, STEP, rule=ANNOTATION),
            kernel(at + 55, at + 65, launch(at + 51, at + 52), "adam"),
        ]
    return run(windows=[window(spans, steps=[(0, 100), (100, 200)])])


def test_a_phase_is_the_union_of_the_work_that_was_asked_for_in_it() -> None:
    case = only(trained(), "phases.backward")
    assert (value(case), case.json) == (60, "phases[name=backward].busy_ns")
    assert worth(trained(), "phases.backward", step=1) == 30
    assert [worth(trained(), f"phases.backward.{what}") for what in ("compute", "collective", "copy", "count")] == [
        30, 40, 0, 4,
    ]  # fmt: skip
    assert "told by 2 evaluations of a function by autograd" in case.notes[1]
    assert case.evidence is not None
    assert case.evidence.count == 4


def test_the_shares_of_phases_add_up_to_one() -> None:
    shares = [worth(trained(), f"phases.{phase}.share") for phase in ("forward", "backward", "optimizer")]
    assert shares == [20 / 100, 60 / 100, 20 / 100]


def modules() -> Run:
    """A linear of 10, and a norm in it of 20; 5 in no module, 7 without a launch."""
    return run(windows=[window([
        host(0, 50, "nn.Module: Linear_0", rule=FRAME), kernel(60, 70, launch(1, 2)),
        host(10, 20, "nn.Module: Norm_0", rule=FRAME), kernel(70, 90, launch(11, 12), "norm"),
        kernel(90, 95, launch(55, 56), "loss"), kernel(95, 102, name="unseen"),
    ], steps=[(0, 110)])])  # fmt: skip


def test_work_is_in_the_innermost_module_around_its_launch() -> None:
    of = modules()
    assert [worth(of, f"scopes.module.{name}") for name in ("Linear_0", "Norm_0")] == [10, 20]
    assert [worth(of, f"scopes.{what}.module") for what in ("all", "outside", "unknown")] == [42, 5, 7]
    assert worth(of, "scopes.module.Norm_0.share") == 20 / 42
    assert only(of, "scopes.module.Norm_0").json == "scopes[source=module].scopes[0].total_ns"
    assert only(of, "scopes.module.Norm_0.backward").why == "no backward work is linked to its forward operator"


def fed() -> Run:
    """Launches at 0, 10 and 20, whose kernels start after 5, 20 and 40; the second step has the last launch."""
    one, two, three = launch(0, 4), launch(10, 16), launch(20, 25)
    spans = [one, two, three, kernel(5, 30, one), kernel(30, 60, two), kernel(60, 90, three)]
    return run(windows=[window(spans, steps=[(0, 20), (20, 90)])])


def test_launch_latency_is_the_median_over_its_launches() -> None:
    of = fed()
    case = only(of, "launches.latency")
    assert (value(case), case.json) == (20, "launches[rank=0].latency.median_ns")
    assert [part.value for part in (case.figure.of if case.figure else ())] == [5, 20, 40]
    assert worth(of, "launches.latency", step=0) == 12.5
    assert worth(of, "launches.latency", step=1) == worth(of, "launches.latency.max") == 40
    assert [worth(of, f"launches.{what}", step=0) for what in ("calls", "linked", "kernels", "empty")] == [2, 2, 2, 1.0]
    assert worth(of, "launches.empty") == 2 / 3


def test_what_a_trace_without_launches_cannot_say_it_does_not() -> None:
    case = only(run(windows=[window([kernel(0, 9)])]), "launches.latency")
    assert (case.figure, case.why) == (None, "its trace shows no launches")


def late() -> Run:
    """Idle from 10 to 91: until 80 in operators, until 90 in the launch, 1 queued; the step ends at 50."""
    one, two = launch(0, 1), launch(80, 90)
    return run(windows=[window([one, kernel(1, 10, one), host(10, 80), two, kernel(91, 101, two)], steps=[(0, 50)])])


def test_an_idle_cause_is_made_of_its_own_stretches() -> None:
    case = only(late(), "idle.operators")
    assert value(case) == 70
    assert case.evidence is not None
    assert [(one.start_ns, one.share_ns, one.name) for one in case.evidence.largest] == [(10, 70, "until gemm")]
    assert worth(late(), "idle.operators", step=0) == worth(late(), "idle.in_steps.operators") == 40
    assert parts(only(late(), "idle.total")) == {"operators": 70, "launch": 10, "queued": 1}
    assert worth(late(), "idle.host_late") == 80
    assert worth(late(), "idle.gaps") == 1


def test_what_binds_a_device_is_its_causes_added_up() -> None:
    case = only(late(), "launches.bound")
    assert parts(case) == {"idle while the host was in launch": 10, "idle while the host was in operators": 70}
    assert (value(case), value(only(late(), "launches.bound_share"))) == (80, 80 / 100)
