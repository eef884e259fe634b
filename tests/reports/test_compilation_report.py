"""What the reports say of compilation: what changed, and of traces alone that the shapes are not in them."""

from __future__ import annotations

import json
from typing import Any

from drawn import run, steps
from made_spans import host
from made_spans import window as made_window

from meshscope.recording.entries import Compiled
from meshscope.reports.analysis_json import analysis_json
from meshscope.reports.text import report
from meshscope.run import Run

MS = 1_000_000


def compiled(t_ns: int, step: int, ms: int, stage: str = "compile", **about: Any) -> Compiled:
    name = "step" if stage == "trace" else "jit(step)"
    return Compiled(t_ns=t_ns, rank=0, name=name, stage=stage, duration_ns=ms * MS, step=step, **about)


def recompiling(count: int = 2) -> Run:
    """Forty steps of 100 ms; every third from step 3 on compiles again in 10 + 40 ms, for one row less each time."""
    entries: list[Any] = [*steps([100.0] * 40, ranks=1), compiled(1, -1, 500)]
    for number in range(count):
        step, at = 3 + 3 * number, 10 + 10 * number
        changed = (f"tokens int32[{20 - number},128] → int32[{19 - number},128]",)
        entries += [compiled(at, step, 10, "trace"), compiled(at + 1, step, 40, is_recompilation=True, changed=changed)]
    return run(entries, framework="jax", strategy="pjit")


def told(of: Run) -> dict[str, Any]:
    (recording,) = json.loads(analysis_json([of]))["recordings"]
    return recording


def text(of: Run) -> str:
    return " ".join(report([of], encoding="utf-8").split())


def test_the_json_tells_each_recompilation_and_what_they_cost_together() -> None:
    said = told(recompiling())["compilation"]
    assert said["recompilations"][1] == {
        "step": 6, "function": "step", "ranks": [0], "duration_ns": 50 * MS,
        "stage_ns": {"trace": 10 * MS, "compile": 40 * MS}, "changed": ["tokens int32[19,128] → int32[18,128]"],
        "is_from_cache": False, "is_warm_up": False,
    }  # fmt: skip
    assert said["recompiling_steps"] == [3, 6]
    assert (said["before_first_step_ns"], said["programs"], said["cost_ns"]) == (500 * MS, 3, 100 * MS)
    # Forty steps of 100 ms, each a millisecond after the one before.
    assert (said["training_ns"], said["rank"]) == (4039 * MS, 0)


def test_the_text_says_step_function_time_and_what_changed() -> None:
    said = text(recompiling())
    assert "compilation: 2 recompilations in steps 3, 6 took 100 ms, 2.5 % of the 4.04 s of training; 500 ms of" in said
    assert "step 6, all ranks: step 50.0 ms (trace 10.0 ms, compile 40.0 ms): tokens int32[19,128] →" in said


def test_of_many_recompilations_the_longest_are_listed_and_the_rest_counted() -> None:
    assert "… 7 shorter recompilations" in text(recompiling(12))


def test_an_untold_change_is_no_empty_cell_but_said() -> None:
    silent = run([*steps([100.0] * 9), compiled(1, 5, 40, is_recompilation=True)], framework="jax")
    assert "step 5, all ranks: step 40.0 ms: the framework did not say which input changed" in text(silent)
    assert {
        "what": "compilation.changed", "why": "the framework did not say which input changed",
    } in told(silent)["cannot_say"]  # fmt: skip


def test_a_trace_alone_tells_how_often_and_how_long_and_that_shapes_are_not_in_it() -> None:
    spans = [host(0, 40, "_compile.compile_inner (dynamo_timed)")]
    alone = run(windows=[made_window(spans, steps=((0, 100),))], strategy="", ranks=1)
    said = told(alone)
    assert said["compilation"] == {"traced": [{"rank": 0, "step": 0, "count": 1, "duration_ns": 40}]}
    assert "compilation" in {doubt["what"] for doubt in said["cannot_say"]}
    assert "compilation: rank 0 compiled 1 function in 40 ns while it was traced, in step 0; a trace does not" in text(
        alone
    )


def test_a_run_that_compiled_nothing_has_neither_a_key_nor_a_line() -> None:
    quiet = run(steps([100.0] * 9))
    assert "compilation" not in told(quiet)
    assert "compilation:" not in text(quiet)


def test_a_name_from_a_journal_steers_no_terminal() -> None:
    evil = compiled(1, 5, 40, is_recompilation=True, changed=("\x1b[31mx int32[1] → int32[2]",))
    assert "\x1b" not in report([run([*steps([100.0] * 9), evil])], encoding="utf-8")
