"""DeepSpeed's engine, followed: an update is one, however often it steps the optimizer within."""

from __future__ import annotations

import sys
import types

import pytest

from meshscope.capture.workers import own_engine


class _Optimizer:
    def __init__(self, heard: list[str]) -> None:
        self.heard = heard

    def step(self) -> None:
        self.heard.append("step")


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> type:
    """A class as DeepSpeed's engine is: two micro-batches an update, and a step for each of two parameter groups."""

    class Engine:
        def __init__(self, heard: list[str]) -> None:
            self.optimizer, self.micro_steps = _Optimizer(heard), 0

        def step(self) -> None:
            self.micro_steps += 1
            if self.micro_steps % 2 == 0:
                self._take_model_step({"lr": 1})

        def _take_model_step(self, lr_kwargs: dict[str, int]) -> dict[str, int]:
            for _ in range(2):
                self.optimizer.step()
            return lr_kwargs

    module = types.ModuleType("deepspeed.runtime.engine")
    module.DeepSpeedEngine = Engine  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return Engine


def test_an_update_is_told_once_around_all_steps_of_its_optimizer(engine: type) -> None:
    heard: list[str] = []
    assert own_engine.follow(lambda: heard.append("updates"), lambda: heard.append("updated"))
    one = engine(heard)
    for _ in range(4):
        one.step()
    assert heard == ["updates", "step", "step", "updated"] * 2
    assert one._take_model_step({"lr": 2}) == {"lr": 2}


def test_an_update_that_fails_fails_as_ever_and_is_none(engine: type) -> None:
    heard: list[str] = []
    own_engine.follow(lambda: None, lambda: heard.append("updated"))
    one = engine(heard)
    one.optimizer = None
    with pytest.raises(AttributeError):
        one._take_model_step({})
    assert heard == []


def test_an_engine_that_is_not_as_known_is_left_alone(engine: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(engine, "_take_model_step")
    assert not own_engine.follow(lambda: None, lambda: None)
    assert not hasattr(engine, "_take_model_step")
