"""What one rank does and the others do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from drawn import run
from made_spans import kernel, window

from meshscope.analysis.extra_work import Extra, extra_work
from meshscope.run import Run
from meshscope.spans import Window

STEP = ((0, 100),)


def computed(rank: int, names: Sequence[str], *, shift: int = 0, **about: Any) -> Window:
    """Operations of 10 ns one after the other, in one step, or as many as ``steps`` gives."""
    spans = [kernel(shift + at * 10, shift + at * 10 + 10, name=name) for at, name in enumerate(names)]
    known: dict[str, Any] = {"steps": [(shift, shift + 100)]} | about
    return window(spans, rank=rank, **known)


def of(*windows: Window) -> Run:
    return run(windows=windows)


def test_calls_that_no_other_rank_makes_are_told_with_their_time_and_name() -> None:
    here = of(computed(0, ["gemm", "gemm", "add"]), computed(1, ["gemm", "spin", "spin", "spin", "log", "gemm", "add"]))
    assert extra_work(1, here) == Extra(ns=40, name="spin", calls=3, others=0)
    assert extra_work(0, here) is None


def test_as_many_calls_that_take_longer_are_no_other_work() -> None:
    slow = window([kernel(0, 90, name="gemm")], rank=1, steps=STEP)
    assert extra_work(1, of(computed(0, ["gemm"]), slow)) is None


def test_a_few_calls_more_are_not_and_ten_times_as_many_are() -> None:
    assert extra_work(1, of(computed(0, ["gemm"] * 2), computed(1, ["gemm"] * 3))) is None
    assert extra_work(1, of(computed(0, ["gemm"]), computed(1, ["gemm"] * 10))) == Extra(100, "gemm", 10, 1)


def test_of_all_others_it_is_the_one_that_calls_most() -> None:
    three = (computed(0, ["gemm"]), computed(1, ["spin"] * 5), computed(2, ["spin"] * 4))
    assert extra_work(1, of(*three)) is None


def test_it_has_to_be_so_in_every_window() -> None:
    first = (computed(0, ["gemm"]), computed(1, ["spin"]))

    def later(names: Sequence[str]) -> list[Window]:
        both = (computed(0, ["gemm"], shift=1000), computed(1, names, shift=1000))
        return [replace(one, steps=(7,)) for one in both]

    assert extra_work(1, of(*first, *later(["spin"]))) == Extra(ns=20, name="spin", calls=1, others=0)
    assert extra_work(1, of(*first, *later(["gemm"]))) is None


def test_windows_that_were_cut_hold_other_steps_or_stand_alone_tell_nothing() -> None:
    first, second = computed(0, ["gemm"]), computed(1, ["spin"])
    assert extra_work(1, of(first, second)) is not None
    assert extra_work(1, of(second)) is None
    assert extra_work(1, of(replace(first, is_complete=False), second)) is None
    assert extra_work(1, of(first, replace(second, steps=(0, 1)))) is None
    assert extra_work(1, of(replace(first, steps=()), replace(second, steps=()))) is None
    assert extra_work(2, of(first, second)) is None
