"""Watching: the watch of a script run by hand."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from types import ModuleType

import pytest

Import = Callable[[str], ModuleType]


def watched(watch: object) -> float:
    with watch.step(3):  # type: ignore[attr-defined]
        batch = watch.batch(lambda: [1, 2])  # type: ignore[attr-defined]
        return watch.loss(sum(batch) / 2)  # type: ignore[attr-defined,no-any-return]


def test_the_first_rank_prints_a_line_per_step(
    workload: Import, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RANK", raising=False)
    assert watched(workload("watching").Watch()) == 1.5
    assert re.fullmatch(r"step 3: loss 1\.5000, \d+\.\d ms\n", capsys.readouterr().out)


def test_other_ranks_print_nothing(
    workload: Import, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "1")
    watch = workload("watching").Watch()
    assert watched(watch) == 1.5
    with watch.compiling("the step"):
        pass
    assert capsys.readouterr().out == ""


def test_a_step_that_fails_is_not_reported_as_done(
    workload: Import, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RANK", raising=False)
    watch = workload("watching").Watch()
    with pytest.raises(KeyError), watch.step(0):
        raise KeyError
    assert capsys.readouterr().out == ""


def test_the_last_rank_speaks_where_it_alone_has_a_loss(
    workload: Import, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    for rank, said in (("0", ""), ("1", r"step 3: loss 1\.5000, \d+\.\d ms\n")):
        monkeypatch.setenv("RANK", rank)
        assert watched(workload("watching").Watch(speaker=-1)) == 1.5
        assert re.fullmatch(said, capsys.readouterr().out)


def test_a_rank_without_a_loss_is_told_that_it_is_none(workload: Import, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    assert math.isnan(workload("watching").Watch().loss(None))
