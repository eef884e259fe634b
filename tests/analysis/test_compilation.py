"""Compilation: before training, in it, what changed, and on whom it cost what; from a journal and from traces alone."""

from __future__ import annotations

import math
from typing import Any

import pytest
from drawn import run, steps
from made_spans import host
from made_spans import window as made_window

from meshscope.analysis.compilation import compilation
from meshscope.analysis.compilation_words import reading, traced_reading, who, why_words
from meshscope.analysis.traced_compilation import TracedCompilation, traced_compilation
from meshscope.recording.entries import Compiled, function_of

MS = 1_000_000
CHANGED = ("tokens int32[8,128] → int32[7,128]",)


def compiled(
    t_ns: int, step: int, ms: int, name: str = "jit(step)", stage: str = "compile", *, rank: int = 0, **about: Any
) -> Compiled:
    return Compiled(t_ns=t_ns, rank=rank, name=name, stage=stage, duration_ns=ms * MS, step=step, **about)


def again(t_ns: int, step: int, ms: int = 40, *, rank: int = 0, **about: Any) -> Compiled:
    return compiled(t_ns, step, ms, rank=rank, **{"is_recompilation": True, "changed": CHANGED} | about)


def test_a_recompilation_is_the_tracing_and_lowering_of_its_own_function_and_the_compiling() -> None:
    made = run(
        [
            *steps([100.0] * 20, ranks=1),
            compiled(1, -1, 7, "step", "trace"),
            compiled(2, -1, 3, stage="lower"),
            compiled(3, -1, 90),
            compiled(4, 0, 20, "jit(other)"),
            compiled(5, 9, 5, "step", "trace"),
            compiled(6, 9, 2, "other", "trace"),
            compiled(7, 9, 4, stage="lower"),
            again(8, 9),
        ],
        ranks=1,
    )
    found = compilation(made)
    (one,) = found.again
    assert (one.step, one.function, one.ranks) == (9, "step", (0,))
    assert one.stage_ns == {"trace": 5 * MS, "lower": 4 * MS, "compile": 40 * MS}
    assert one.duration_ns == 49 * MS
    assert one.changed == CHANGED
    assert (found.before_ns, found.first_step_ns) == (100 * MS, 20 * MS)
    assert found.programs == 3
    # Twenty steps of 100 ms, each a millisecond after the one before.
    assert found.training_ns == 2019 * MS
    assert (found.rank, found.cost_ns) == (0, 49 * MS)
    assert found.cost_frac == pytest.approx(49 / 2019)
    assert found.steps == (9,)


def test_a_step_of_an_earlier_compilation_keeps_its_tracing() -> None:
    """A trace that led to nothing in its own step is not charged to a later one."""
    made = run([*steps([100.0] * 9), compiled(1, 4, 30, "step", "trace"), again(2, 6)])
    assert compilation(made).again[0].stage_ns == {"compile": 40 * MS}


def test_the_first_two_steps_settle_and_are_no_storm() -> None:
    made = run([*steps([100.0] * 9), *(again(step, step) for step in range(3))])
    found = compilation(made)
    assert [one.is_warm_up for one in found.again] == [True, True, False]
    assert [one.step for one in found.storm] == [2]
    assert found.cost_ns == 40 * MS


def test_ranks_that_compile_the_same_in_one_step_compile_at_the_same_time() -> None:
    made = run([
        *steps([100.0] * 9),
        again(1, 5, 40, rank=0), again(2, 5, 60, rank=1), again(3, 6, 10, rank=1, changed=("x dim 0: 8 → 7",)),
    ])  # fmt: skip
    found = compilation(made)
    assert [(one.step, one.ranks, one.duration_ns) for one in found.again] == [(5, (0, 1), 60 * MS), (6, (1,), 10 * MS)]
    assert (found.rank, found.cost_ns) == (1, 70 * MS)
    assert [who(made, one) for one in found.again] == ["all", "1"]


def test_a_function_that_compiles_twice_in_one_step_counts_twice() -> None:
    found = compilation(run([*steps([100.0] * 9), again(1, 5), again(2, 5)]))
    assert [one.step for one in found.again] == [5, 5]
    assert found.cost_ns == 80 * MS
    assert found.steps == (5,)


def test_without_an_entry_nothing_is_known_and_without_a_step_no_share_is() -> None:
    assert not compilation(run(steps([100.0] * 9))).is_known
    found = compilation(run([compiled(1, -1, 90)]))
    assert (found.before_ns, found.rank, found.cost_ns) == (90 * MS, -1, 0)
    assert math.isnan(found.cost_frac)


def test_the_reading_says_the_recompilations_first_and_their_share_of_what() -> None:
    made = run([*steps([100.0] * 20, ranks=1), compiled(1, -1, 90), again(2, 9), again(3, 12)], framework="jax")
    said = reading(compilation(made))
    assert said == (
        "2 recompilations in steps 9, 12 took 80.0 ms, 4.0 % of the 2.02 s of training; "
        "90.0 ms of compiling before the first step"
    )
    quiet = run([*steps([100.0] * 20, ranks=1), compiled(1, -1, 90), again(2, 1)], framework="jax")
    assert reading(compilation(quiet)) == (
        "90.0 ms of compiling before the first step; nothing compiled again past warm-up (1 in warm-up)"
    )


def test_what_changed_goes_before_the_reason_and_silence_is_said() -> None:
    made = run([
        *steps([100.0] * 9),
        again(1, 4, reason="a guard"), again(2, 5, reason="a guard", changed=()), again(3, 6, changed=()),
        again(4, 7, is_from_cache=True),
    ])  # fmt: skip
    assert [why_words(one) for one in compilation(made).again] == [
        CHANGED[0], "a guard", "the framework did not say which input changed",
        f"{CHANGED[0]} (read from the compilation cache)",
    ]  # fmt: skip
    assert compilation(made).from_cache == 1


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("jit(step)", "step"), ("step", "step"), ("pmap(<lambda>)", "<lambda>"),
        ("forward (model.py:12)", "forward (model.py:12)"),
        ("the training step", "the training step"), ("jit(f(x))", "f(x)"), ("(odd", "(odd"),
    ],
)  # fmt: skip
def test_a_program_is_called_after_its_function(name: str, function: str) -> None:
    assert function_of(name) == function


INNER, OUTER = "OutputGraph.call_user_compiler (dynamo_timed)", "_compile.compile_inner (dynamo_timed)"


def test_a_trace_counts_the_functions_compiled_in_each_step_and_their_time_once() -> None:
    spans = [
        host(0, 40, OUTER), host(10, 30, INNER), host(50, 60, "Torch-Compiled Region: 0/0"),
        host(100, 130, OUTER), host(130, 135, OUTER), host(160, 170, "_backward_impl (dynamo_timed)"),
        host(300, 310, OUTER),
    ]  # fmt: skip
    made = run(windows=[made_window(spans, steps=((0, 100), (100, 200)), rank=1)], ranks=2)
    found = traced_compilation(made)
    assert found == (
        TracedCompilation(1, -1, 1, 10), TracedCompilation(1, 0, 1, 40), TracedCompilation(1, 1, 2, 45),
    )  # fmt: skip
    assert traced_reading(found).startswith("rank 1 compiled 4 functions in 95 ns while it was traced, in steps 0–1; ")


def test_a_trace_in_which_compiled_code_only_runs_shows_no_compilation() -> None:
    spans = [host(0, 40, "Torch-Compiled Region: 0/0"), host(50, 60, "TorchDynamo Cache Lookup")]
    assert traced_compilation(run(windows=[made_window(spans, steps=((0, 100),))])) == ()
