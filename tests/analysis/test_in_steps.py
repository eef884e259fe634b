"""What a mean step has of an operation, a module, a phase and an idle device, worked by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from drawn import run
from hypothesis import given
from hypothesis import strategies as st
from made_spans import Made, collective, copy, host, kernel, launch, window

from meshscope.analysis.homes import homes
from meshscope.analysis.idle_shares import ENDS, HOST, QUEUED, idle_shares, mean
from meshscope.analysis.in_steps import begun_in_steps
from meshscope.analysis.operations import operations
from meshscope.analysis.phases import phases
from meshscope.analysis.scopes import scopes
from meshscope.kinds import ANNOTATION, FRAME

ENGINE = "autograd::engine::evaluate_function: MmBackward0"


def test_a_call_belongs_to_the_step_in_which_it_begins_and_to_no_other() -> None:
    here = window([kernel(0, 9)], steps=[(10, 20), (20, 30), (40, 50)])
    times = np.array([9, 10, 19, 20, 29, 30, 39, 40, 49, 50])
    expected = [False, True, True, True, True, False, False, True, True, False]
    assert begun_in_steps(here, times).tolist() == expected
    assert not begun_in_steps(window([kernel(0, 9)]), times).any()


def test_what_lies_outside_of_steps_is_in_the_whole_and_in_no_mean_step() -> None:
    before = kernel(0, 7, name="gemm")
    first = window([before, kernel(10, 20, name="gemm"), kernel(25, 40, name="norm")], steps=[(10, 20), (20, 30)])
    second = window([kernel(12, 42, name="gemm")], rank=1, steps=[(10, 50)])
    gemm, norm = operations(run(windows=[first, second]))
    # Three pairs of a rank and a step; the gemm before them is no part of any, and the norm counts whole.
    assert (gemm.total_ns, gemm.count) == (47, 3)
    assert (gemm.per_step_ns, gemm.per_step_count) == (pytest.approx(40 / 3), pytest.approx(2 / 3))
    assert (norm.per_step_ns, norm.per_step_count) == (5, pytest.approx(1 / 3))


def test_without_a_complete_step_there_is_no_mean_step() -> None:
    (found,) = operations(run(windows=[window([kernel(0, 7)])]))
    assert (found.per_step_ns, found.per_step_count) == (None, None)


def test_an_operation_names_the_rule_that_told_what_it_is() -> None:
    spans = [Made(kernel(0, 1).kind, "stream 7", 0, 10, "my_kernel", rule="everything else"), copy(20, 30)]
    found = {one.kind: one.rule for one in operations(run(windows=[window(spans)]))}
    assert found == {"compute": "everything else", "copy": "the trace's own category"}


@given(st.lists(st.tuples(st.integers(0, 90), st.integers(0, 20), st.sampled_from("abc")), min_size=1, max_size=20))
def test_over_a_step_around_everything_the_mean_step_is_all_there_is(drawn: list[tuple[int, int, str]]) -> None:
    spans = [kernel(start, start + length, name=name) for start, length, name in drawn]
    for one in operations(run(windows=[window(spans, steps=[(0, 200)])])):
        assert (one.per_step_ns, one.per_step_count) == (one.total_ns, one.count)


def modules() -> list[Made]:
    """Two kernels of one name in one module, a third in another; their backward after the first step."""
    return [
        host(0, 30, "nn.Module: Block_0", rule=FRAME), host(30, 60, "nn.Module: Head_0", rule=FRAME),
        kernel(10, 30, launch(1, 2), "gemm"), kernel(30, 40, launch(3, 4), "gemm"),
        kernel(45, 55, launch(31, 32), "gemm"), kernel(60, 65, launch(61, 62), "loss"),
        kernel(120, 140, launch(110, 111), "gemm"), host(100, 130, "nn.Module: Block_0", rule=FRAME),
    ]  # fmt: skip


def test_a_module_has_in_a_mean_step_what_begins_in_one() -> None:
    (found,) = scopes(run(windows=[window(modules(), steps=[(0, 100)])]))
    assert {one.name: (one.total_ns, one.per_step_ns) for one in found.scopes} == {
        "Block_0": (50, 30), "Head_0": (10, 10),
    }  # fmt: skip
    assert (found.of_ns, found.per_step_ns) == (65, 45)


def test_an_operation_is_at_home_where_it_has_most_of_its_time() -> None:
    found = homes(run(windows=[window(modules(), steps=[(0, 100)])]))
    assert set(found) == {("gemm", "compute")}
    home = found["gemm", "compute"]
    assert (home.source, home.scope, home.scopes) == ("module", "Block_0", 2)
    assert home.frac == pytest.approx(50 / 60)


def test_where_nothing_is_in_a_scope_nothing_is_at_home() -> None:
    assert homes(run(windows=[window([kernel(0, 9, launch(0, 1))])])) == {}


def test_modules_tell_more_than_annotations() -> None:
    spans = [*modules(), host(0, 100, "## forward ##", rule=ANNOTATION)]
    assert {home.source for home in homes(run(windows=[window(spans)])).values()} == {"module"}


def test_a_phase_has_in_a_mean_step_what_was_launched_in_one() -> None:
    """Backward runs on for 10 behind the host's mark of the step that launched it."""
    spans = [
        kernel(10, 20, launch(1, 2), "forward"), host(20, 40, ENGINE, lane="autograd"),
        kernel(30, 60, launch(21, 22, lane="autograd"), "backward"),
    ]  # fmt: skip
    made = window(spans, steps=[(0, 50)])
    assert {one.name: (one.busy_ns, one.per_step_ns) for one in phases(run(windows=[made]))} == {
        "forward": (10, 10), "backward": (30, 30),
    }  # fmt: skip


def waiting_for_the_host() -> list[Made]:
    """100 busy, 70 idle (60 for the host, 10 queued) in a step that begins 5 before the first work: 3 of these are its
    launch, 2 it is queued."""
    first, second = launch(5, 8), launch(150, 160)
    return [first, kernel(10, 100, first), host(110, 145, "aten::mm"), second, kernel(170, 180, second)]


def test_idle_time_of_a_step_is_told_by_cause_and_adds_up() -> None:
    (found,) = idle_shares(run(windows=[window(waiting_for_the_host(), steps=[(5, 180)])])).ranks
    assert (found.span_ns, found.idle_ns) == (175, 75)
    assert (found.of(HOST), found.of(QUEUED), found.of(ENDS)) == (60 + 3, 10 + 2, 0)
    assert sum(found.causes.values()) == found.idle_ns


def test_without_a_step_the_whole_window_is_told() -> None:
    (found,) = idle_shares(run(windows=[window(waiting_for_the_host())])).ranks
    assert (found.steps, found.span_ns, found.idle_ns, found.of(ENDS)) == (0, 170, 70, 0)


def test_what_is_waited_for_beside_communication_is_counted_in_steps_as_well() -> None:
    first, reduce, ready, late = launch(0, 5), launch(5, 6), launch(7, 8), launch(350, 360)
    spans = [
        first, reduce, ready, late, kernel(10, 100, first), collective(50, 200, reduce), kernel(200, 300, ready),
        copy(300, 370, launch(8, 9)), kernel(370, 400, late),
    ]  # fmt: skip
    whole = idle_shares(run(windows=[window(spans)])).ranks[0]
    assert whole.beside == {"collective": 100, "copy": 20, "host": 50}
    halves = idle_shares(run(windows=[window(spans, steps=[(0, 150), (150, 320)])])).ranks[0]
    # All that runs before 370 was launched in the first step, and nothing in the second: it is of the first.
    assert halves.beside == {"collective": 100 / 2, "copy": 20 / 2, "host": 50 / 2}


def test_a_rank_without_a_complete_step_stands_apart_and_the_mean_is_over_the_others() -> None:
    windows = [
        window(waiting_for_the_host(), steps=[(5, 180)]),
        window(waiting_for_the_host(), rank=1),
        window([launch(0, 1), kernel(10, 85, launch(2, 3)), kernel(100, 180)], rank=2, steps=[(10, 180)]),
    ]
    found = idle_shares(run(windows=windows, ranks=3))
    assert [one.rank for one in found.ranks] == [0, 2]
    assert found.others == (1,)
    whole = mean(found.ranks)
    assert (whole.idle_ns, whole.span_ns) == ((75 + 15) / 2, (175 + 170) / 2)
    assert whole.causes["unknown"] == 15 / 2


def test_a_trace_without_the_host_tells_how_long_and_why_not_why() -> None:
    (found,) = idle_shares(run(windows=[window([kernel(0, 10), kernel(30, 40)], framework="jax")])).ranks
    assert (found.idle_ns, found.causes) == (20, {})
    assert found.why == "the trace shows what devices did, not what the host did"
    assert mean([found]).why == found.why


@pytest.mark.parametrize("strategy", ["ddp", "fsdp", "torch-single", "pmap"])
def test_a_recordings_causes_add_up_to_its_idle_time(strategy: str) -> None:
    from meshscope.run import Gallery

    _, runs = Gallery(Path(__file__).parents[2] / "recordings" / "tiny-4-cpu-ranks").at(2**62)
    found = idle_shares(next(one for one in runs if one.name == strategy))
    assert found.ranks
    for one in found.ranks:
        if not one.why:
            assert sum(one.causes.values()) == pytest.approx(one.idle_ns, abs=2)
