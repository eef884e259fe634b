"""Steps of a job that was attached to, by what torch marks in every trace."""

from __future__ import annotations

from typing import Any

import numpy as np

from meshscope.experiment import Experiment
from meshscope.run.attached import counted, with_steps
from meshscope.spans import Kind, Window, span_table

SGD, ADAM = "Optimizer.step#SGD.step", "Optimizer.step#Adam.step"


Marks = list[tuple[str, int, int]]


def _window(rank: int, marks: Marks, *, start_ns: int = 0, end_ns: int = 1000, **other: Any) -> Window:
    names = tuple(dict.fromkeys(name for name, _, _ in marks)) or ("aten::mm",)
    rows = marks or [("aten::mm", start_ns, end_ns)]
    spans = span_table(
        start_ns=[start for _, start, _ in rows],
        end_ns=[end for _, _, end in rows],
        name=[names.index(name) for name, _, _ in rows],
        kind=int(Kind.HOST),
        rank=rank,
        names=names,
    )
    about: dict[str, Any] = {"framework": "torch", "source": f"traces/rank{rank}.json", "is_complete": True} | other
    return Window(
        rank=rank,
        device=0,
        rank_from="journal",
        device_kind="cpu",
        start_ns=start_ns,
        end_ns=end_ns,
        steps=(),
        step_ns=np.empty((0, 2), dtype=np.int64),
        spans=spans,
        counts=other.pop("counts", None),  # type: ignore[arg-type]  # nothing here looks at it
        **about,
    )


def _of(*windows: Window) -> tuple[Window, ...]:
    return with_steps(windows, {window.source for window in windows})


def test_a_step_goes_from_the_end_of_one_update_to_the_end_of_the_next() -> None:
    marks = [(SGD, 90, 100), ("aten::mm", 120, 150), (SGD, 190, 200), (SGD, 290, 310), ("aten::mm", 320, 330)]
    (found,) = _of(_window(0, marks))
    assert found.steps == (0, 1)
    assert found.step_ns.tolist() == [[100, 200], [200, 310]]
    assert found.spans.step.tolist() == [-1, 0, 0, 1, -1], "what starts before the first or after the last is in none"
    assert [what for what, _ in found.cannot_say] == ["steps"]


def test_ranks_whose_traces_begin_a_step_apart_number_it_alike() -> None:
    first = _window(0, [(SGD, 90, 100), (SGD, 190, 200), (SGD, 290, 300), (SGD, 390, 400)])
    later = _window(1, [(SGD, 193, 203), (SGD, 292, 302), (SGD, 395, 405), (SGD, 491, 501)], start_ns=150)
    earlier = _window(2, [(SGD, 0, 5), (SGD, 88, 98), (SGD, 187, 197)])
    found = _of(first, later, earlier)
    assert [window.steps for window in found] == [(1, 2, 3), (2, 3, 4), (0, 1)]


def test_later_windows_count_on() -> None:
    early = [_window(rank, [(SGD, 0, 100), (SGD, 150, 200), (SGD, 250, 300)], end_ns=400) for rank in (0, 1)]
    late = [
        _window(rank, [(SGD, 5000, 5100), (SGD, 5150, 5200)], start_ns=4900, end_ns=5300, source=f"late{rank}.json")
        for rank in (0, 1)
    ]
    found = _of(late[1], early[0], late[0], early[1])
    assert [window.steps for window in found] == [(2,), (0, 1), (2,), (0, 1)]


def test_an_optimizer_within_another_makes_no_step_of_its_own() -> None:
    outer = "Optimizer.step#ZeroRedundancyOptimizer.step"
    marks = [(outer, 80, 100), (ADAM, 85, 95), (outer, 180, 200), (ADAM, 185, 195)]
    (found,) = _of(_window(0, marks))
    assert found.step_ns.tolist() == [[100, 200]]


def test_of_two_optimizers_the_one_that_steps_less_often_ends_a_step() -> None:
    marks = [(ADAM, 10, 20), (ADAM, 30, 40), (SGD, 90, 100), (ADAM, 110, 120), (ADAM, 130, 140), (SGD, 190, 200)]
    (found,) = _of(_window(0, marks))
    assert found.step_ns.tolist() == [[100, 200]]


def test_a_trace_without_two_updates_has_no_steps_and_says_why() -> None:
    bare, jax = _of(_window(0, [(SGD, 90, 100)]), _window(1, [], framework="jax", source="x.pb"))
    assert bare.steps == jax.steps == ()
    assert bare.cannot_say[-1][0] == "per_step"
    assert "fewer than two of them lie in it" in bare.cannot_say[-1][1]
    assert "StepTraceAnnotation" in jax.cannot_say[-1][1]


def test_a_rank_whose_host_has_another_clock_is_not_numbered_by_time() -> None:
    marks = [(SGD, 90, 100), (SGD, 190, 200)]
    here, there = _of(_window(0, marks, host="a"), _window(1, marks, host="b"))
    assert here.steps == (0,)
    assert there.steps == ()
    assert "a clock of its own" in there.cannot_say[-1][1]


def test_other_recordings_are_left_as_they_are() -> None:
    window = _window(0, [(SGD, 90, 100), (SGD, 190, 200)])
    assert with_steps((window,), set()) == (window,)


def test_the_same_windows_give_the_same_objects_so_that_answers_are_kept() -> None:
    window = _window(0, [(SGD, 90, 100), (SGD, 190, 200)])
    bare = _window(1, [], source="y.json")
    first, second = _of(window, bare), _of(window, bare)
    assert all(one is other for one, other in zip(first, second, strict=True))


def test_ranks_are_counted_by_the_traces_where_the_head_does_not_tell_them() -> None:
    about = {"strategy": "attached", "title": "", "framework": "jax", "device_kind": "cpu", "model": ""}
    head = Experiment(t0_unix_ns=1, ranks=0, is_attached=True, **about)
    windows = (_window(0, []), _window(1, []), _window(1, []))
    assert counted(head, windows).ranks == 2
