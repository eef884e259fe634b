"""Paths of XLA's operations: which scope and which phase they say, as JAX writes them."""

from __future__ import annotations

import numpy as np
import pytest
from drawn import run
from made_spans import collective, kernel, window

from meshscope.analysis import phases as of_phases
from meshscope.analysis import scopes as of_scopes
from meshscope.analysis.phases import phases
from meshscope.analysis.scopes import scopes
from meshscope.analysis.xla_paths import place
from meshscope.spans import Window

REMAT = "jit(step)/transpose(jvp(Net))/rematted_computation/Dense_0/tanh"


@pytest.mark.parametrize(
    ("path", "scope", "phase"),
    [
        ("jit(step)/jvp(Net)/Dense_0/dot_general", "Net/Dense_0", "forward"),
        ("jit(step)/transpose(jvp(Net))/Dense_0/dot_general", "Net/Dense_0", "backward"),
        ("jit(step)/jvp(Net)/Dense_0/transpose", "Net/Dense_0", "forward"),
        ("jit(f)/jit(main)/shard_map/while/body/closed_call/jvp(Net)/mlp/mul", "Net/mlp", "forward"),
        ("jit(f)/jvp(jit(relu))/max", "", "forward"),
        ("jit(f)/jvp(Net)/vmap(BTNH,BSNH->BNTS)/dot_general", "Net", "forward"),
        ("jit(f)/jvp(vmap(layer))/add", "layer", "forward"),
        ("jit(f)/cond/branch_1_fun/layer/add", "layer", "other"),
        ("jit(f)/layer/while/add", "layer/while", "other"),
        (REMAT, "Net/Dense_0", "backward"),
        ("jit(step)/optimizer/mul", "optimizer", "optimizer"),
        ("jit(step)/jit(apply_updates)/add", "", "optimizer"),
        ("jit(step)/adamw/mul", "adamw", "optimizer"),
        ("jit(adamw)/mul", "", "other"),  # a program of its own says nothing of a step
        ("jit(step)/adaptive_norm/mul", "adaptive_norm", "other"),
        ("jit(step)/shard_map/psum", "", "other"),
        ("x", "", "other"),
        ("jit(f)/a(b/c)/d/mul", "b/c/d", "other"),
        ("jit(f)/((/mul", "", "other"),
    ],
)
def test_a_path_says_its_scope_and_phase(path: str, scope: str, phase: str) -> None:
    assert place(path) == (scope, phase)


FORWARD = "jit(step)/jvp(Net)/Dense_0/dot_general"
BACKWARD = "jit(step)/transpose(jvp(Net))/Dense_0/dot_general"
OPTIMIZER = "jit(step)/optimizer/mul"
SYNCHRONIZED = "jit(step)/psum"


def of_jax(*paths: str, lasts: int = 10) -> Window:
    """A kernel of 10 ns for each path, "" for none, and an all-reduce of 10 ns beside the last of them."""
    spans = [kernel(at * 20, at * 20 + lasts, name=f"fusion.{at}") for at in range(len(paths))]
    reduced = collective(20 * len(paths) - 15, 20 * len(paths) - 5, lane="stream 8")
    made = window([*spans, reduced], framework="jax")
    names = tuple(dict.fromkeys([*filter(None, paths), SYNCHRONIZED]))
    numbers = [names.index(path) if path else -1 for path in paths]
    numbers.append(names.index(SYNCHRONIZED))
    table = made.spans
    object.__setattr__(table, "paths", names)
    object.__setattr__(table, "path", np.array(numbers, dtype=np.int32))
    return made


def test_phases_of_a_step_of_jax() -> None:
    found = {one.name: (one.works, one.busy_ns) for one in phases(run(windows=[of_jax(FORWARD, BACKWARD, OPTIMIZER)]))}
    expected = {"forward": (1, 10), "backward": (1, 10), "optimizer": (1, 10), "other": (1, 10)}
    assert found == expected


def test_an_operation_without_a_path_is_in_no_known_phase_or_scope() -> None:
    made = run(windows=[of_jax(FORWARD, "")])
    assert {one.name: one.works for one in phases(made)} == {"forward": 1, "other": 1, "unknown": 1}
    (named,) = scopes(made)
    assert (named.of_ns, named.outside_ns, named.unknown_ns) == (30, 10, 10)


def test_backward_time_is_in_the_scope_of_its_forward() -> None:
    (named,) = scopes(run(windows=[of_jax(FORWARD, BACKWARD, BACKWARD, OPTIMIZER)]))
    assert named.source == "named scope"
    assert [(one.name, one.works, one.total_ns, one.backward_ns) for one in named.scopes] == [
        ("Net/Dense_0", 3, 30, 20), ("optimizer", 1, 10, 0),
    ]  # fmt: skip
    assert [one.frac for one in named.scopes] == [0.6, 0.2]
    assert (named.of_ns, named.outside_ns, named.unknown_ns) == (50, 10, 0)


@pytest.mark.parametrize(
    ("paths", "of_phase", "of_scope"),
    [
        (("jit(f)/mul",), "jvp, transpose", "no operation stands in a named scope"),
        (("jit(f)/layer/mul",), "jvp, transpose", None),
        ((FORWARD,), None, None),
    ],
)
def test_what_paths_do_not_say_is_not_guessed(
    paths: tuple[str, ...], of_phase: str | None, of_scope: str | None
) -> None:
    made = run(windows=[of_jax(*paths)])
    for found, doubts, why in (
        (phases(made), of_phases.doubts(made), of_phase),
        (scopes(made), of_scopes.doubts(made), of_scope),
    ):
        assert bool(found) is (why is None)
        assert [why in said for _, said in doubts] == ([True] if why else [])  # type: ignore[operator]


def test_a_trace_without_programs_says_so() -> None:
    made = run(windows=[window([kernel(0, 9)], framework="jax")])
    assert (phases(made), scopes(made)) == ((), ())
    assert "no compiled program" in of_phases.doubts(made)[0][1]
    assert of_scopes.doubts(made) == (("scopes", of_phases.doubts(made)[0][1]),)
