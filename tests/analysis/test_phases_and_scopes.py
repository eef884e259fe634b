"""Device time by phase, module and annotation, worked by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from drawn import run
from made_spans import Made, collective, host, kernel, launch, window

from meshscope.analysis import phases as of_phases
from meshscope.analysis.phases import phases
from meshscope.analysis.scopes import scopes
from meshscope.kinds import ANNOTATION, FRAME, Kind
from meshscope.run import Run, open_traces

ENGINE = "autograd::engine::evaluate_function: MmBackward0"
STEP = "Optimizer.step#AdamW.step"


def step_of(at: int, *, lane: str = "autograd") -> list[Made]:
    """Forward, backward and optimizer, a kernel launched in each; the backward's all-reduce runs into the optimizer."""
    return [
        kernel(at + 10, at + 20, launch(at + 1, at + 2), "forward"),
        host(at + 20, at + 40, ENGINE, lane=lane),
        kernel(at + 30, at + 45, launch(at + 21, at + 22, lane=lane), "backward"),
        collective(at + 40, at + 60, launch(at + 31, at + 32, lane=lane)),
        host(at + 50, at + 70, STEP, rule=ANNOTATION),
        kernel(at + 55, at + 65, launch(at + 51, at + 52), "adam"),
    ]


def by_name(here: Run) -> dict[str, tuple[int, int, int]]:
    return {one.name: (one.works, one.busy_ns, one.collective_ns) for one in phases(here)}


def test_work_belongs_to_the_phase_that_launched_it() -> None:
    made = window([*step_of(0), *step_of(100)], steps=[(0, 100), (100, 200)])
    expected = {"forward": (2, 20, 0), "backward": (4, 60, 40), "optimizer": (2, 20, 0)}
    assert by_name(run(windows=[made])) == expected


def test_shares_are_of_the_phases_added_up() -> None:
    made = window(step_of(0), steps=[(0, 100)])
    assert [round(one.frac, 3) for one in phases(run(windows=[made]))] == [0.2, 0.6, 0.2]


def test_what_no_backward_of_its_step_follows_is_not_forward() -> None:
    evaluated = kernel(250, 260, launch(240, 241), "evaluation")
    made = window([*step_of(0), evaluated, *step_of(300)], steps=[(0, 100), (200, 300), (300, 400)])
    assert by_name(run(windows=[made]))["other"] == (1, 10, 0)


def test_work_without_its_launch_is_in_no_known_phase() -> None:
    made = window([*step_of(0), kernel(70, 77)], steps=[(0, 100)])
    assert by_name(run(windows=[made]))["unknown"] == (1, 7, 0)


def test_a_cpu_rank_computes_in_its_phases_itself() -> None:
    call = Made(Kind.LAUNCH, "main", 25, 26, "c10d::allreduce_")
    made = window(
        [
            kernel(0, 10, name="aten::mm", lane="main"), host(20, 40, ENGINE),
            kernel(21, 24, name="aten::mm", lane="main"), call, collective(27, 60, call, lane="pt_gloo_runloop"),
            host(60, 80, STEP, rule=ANNOTATION), kernel(62, 70, name="aten::add_", lane="main"),
        ],
        device_kind="cpu",
        steps=[(0, 100)],
    )  # fmt: skip
    assert by_name(run(windows=[made])) == {"forward": (1, 10, 0), "backward": (2, 36, 33), "optimizer": (1, 8, 0)}


def test_a_trace_that_marks_no_phase_says_so() -> None:
    made = run(windows=[window([kernel(0, 9, launch(0, 1))])])
    assert phases(made) == ()
    assert "neither autograd nor an optimizer" in of_phases.doubts(made)[0][1]


def test_an_optimizer_alone_tells_no_forward_from_backward() -> None:
    made = run(
        windows=[
            window([host(50, 70, STEP, rule=ANNOTATION), kernel(55, 65, launch(51, 52)), kernel(0, 5, launch(0, 1))])
        ]
    )
    assert {one.name for one in phases(made)} == {"optimizer", "other"}
    assert "not told apart" in of_phases.doubts(made)[0][1]


def test_a_kernel_is_of_the_innermost_module_around_its_launch() -> None:
    made = window([
        host(0, 100, "nn.Module: Block_0", rule=FRAME), host(10, 50, "nn.Module: Linear_1", rule=FRAME),
        host(12, 40, "torch/nn/modules/linear.py(1): forward", rule=FRAME),
        kernel(60, 90, launch(20, 21)), kernel(100, 110, launch(60, 61)), kernel(110, 120, launch(105, 106)),
        kernel(130, 150),
    ])  # fmt: skip
    (found,) = scopes(run(windows=[made]))
    assert found.source == "module"
    assert [(one.name, one.total_ns, round(one.frac, 2)) for one in found.scopes] == [
        ("Linear_1", 30, 0.43),
        ("Block_0", 10, 0.14),
    ]
    assert (found.of_ns, found.outside_ns, found.unknown_ns) == (70, 10, 20)


def test_an_annotation_is_around_the_thread_that_works_for_it_as_well() -> None:
    made = window([
        host(0, 100, "ProfilerStep#3", rule=ANNOTATION), host(10, 50, "## backward ##", rule=ANNOTATION),
        kernel(60, 90, launch(20, 21, lane="autograd")), kernel(100, 110, launch(60, 61)),
    ])  # fmt: skip
    (found,) = scopes(run(windows=[made]))
    assert [(one.name, one.total_ns) for one in found.scopes] == [("## backward ##", 30)]
    assert found.outside_ns == 10


def test_an_operator_of_the_same_name_is_no_annotation() -> None:
    made = window([host(10, 50, "attention"), kernel(60, 90, launch(20, 21))])
    assert scopes(run(windows=[made])) == ()


@pytest.mark.shared
def test_real_ranks_of_ddp_are_forward_backward_and_optimizer(shared: Path) -> None:
    (here,) = open_traces([shared / "traces" / "nccl-hta-nccl-data"]).runs
    found = {one.name: one for one in phases(here)}
    assert list(found) == ["forward", "backward", "optimizer"]
    # Every all-reduce is launched by the backward pass; broadcasts of buffers come before the forward pass.
    assert found["backward"].collective_ns > 100 * found["forward"].collective_ns > 0
    (annotations,) = scopes(here)
    assert {one.name for one in annotations.scopes} >= {"## backward ##", "DistributedDataParallel.forward"}


@pytest.mark.shared
def test_real_modules_are_found_in_a_trace_with_stacks(shared: Path) -> None:
    (here,) = open_traces([shared / "traces" / "gpu-tl-timesformer-h100"]).runs
    (modules,) = scopes(here)
    assert modules.outside_ns < 0.03 * modules.of_ns
    assert modules.scopes[0].name.startswith("TimesformerSelfAttention_")


def test_backward_work_is_in_the_module_of_its_forward_operator() -> None:
    forward = host(12, 16, "aten::addmm")
    linked = Made(Kind.HOST, "autograd", 40, 50, ENGINE, launch=forward)
    unlinked = host(50, 60, ENGINE, lane="autograd")
    made = window(
        [
            host(0, 30, "nn.Module: Net_0", rule=FRAME), host(10, 20, "nn.Module: Linear_0", rule=FRAME),
            forward, kernel(15, 18, launch(13, 14)),
            linked, kernel(45, 52, launch(41, 42, lane="autograd")),
            unlinked, kernel(55, 59, launch(51, 52, lane="autograd")),
        ]
    )  # fmt: skip
    (modules,) = scopes(run(windows=[made]))
    assert [(one.name, one.works, one.total_ns, one.backward_ns) for one in modules.scopes] == [("Linear_0", 2, 10, 7)]
    assert (modules.of_ns, modules.outside_ns) == (14, 4)


def test_where_no_backward_work_is_linked_its_time_is_not_told() -> None:
    made = window([host(0, 30, "nn.Module: Net_0", rule=FRAME), kernel(15, 18, launch(13, 14))])
    (modules,) = scopes(run(windows=[made]))
    assert [one.backward_ns for one in modules.scopes] == [None]
