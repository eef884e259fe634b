"""Compilations of real runs: which step compiled again, what was not as before, and what it cost."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from meshscope.analysis.compilation import compilation
from meshscope.analysis.findings import findings
from meshscope.run import Gallery, Run

from .conftest import Live

pytestmark = [pytest.mark.live, pytest.mark.slow]

SMALL = ("--device", "cpu", "--layers", "2", "--width", "64", "--vocab", "512", "--seq", "32")


def _ended(live: Live) -> Run:
    assert live.wait(300).outcome == "done", live.log()
    _, (run,) = Gallery(live.folder).at(time.time_ns())
    return run


def test_a_compiled_torch_model_says_which_guard_failed_in_which_step(record: Callable[..., Live]) -> None:
    run = _ended(record("compiled-toy", ranks=2, steps=10))

    found = compilation(run)
    assert [(one.step, one.ranks) for one in found.again] == [(5, (0, 1)), (7, (0, 1)), (8, (0, 1))]
    size, second, third = found.again
    assert size.function.startswith("forward (compiled_toy.py:")
    assert size.changed == ("tokens dim 0: 4 → 3",)
    assert second.changed == third.changed == ()
    assert {second.reason, third.reason} <= {"way == 'plain'", "way == 'double'"}
    assert all(one.duration_ns > 0 and not one.is_warm_up for one in found.again)
    assert found.first_step_ns > 0 == found.before_ns
    assert found.reporting == (0, 1)
    assert 0 < found.cost_ns < found.training_ns
    (storm,) = (one for one in findings(run) if one.code == "recompilation-storm")
    assert any("tokens dim 0: 4 → 3" in said for said in storm.evidence)


def test_a_jax_step_that_meets_new_lengths_says_each_of_them(record: Callable[..., Live]) -> None:
    run = _ended(record("pmap", workloads="", ranks=2, steps=12, options=(*SMALL, "--inject", "new-lengths:3")))

    storm = compilation(run).storm
    assert [one.step for one in storm] == [3, 6, 9]
    for length, one in zip((32, 31, 30), storm, strict=True):
        # pmap's function is one of JAX's own, whose arguments have no names; tokens are the last input.
        (changed,) = one.changed
        number, count = changed.split()[1:4:2]
        assert number == count
        assert changed.endswith(f"int32[2,1,4,{length + 1}] → int32[2,1,4,{length}]")
        assert set(one.stage_ns) == {"trace", "lower", "compile"}
    assert "recompilation-storm" in {one.code for one in findings(run)}
