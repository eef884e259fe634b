"""Around an optimizer's ``step`` while a window is open, from the outside."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import torch


class Around:
    """``passed`` is called when the step has returned.

    An optimizer's hooks run inside torch's record of the step, which a profiler that is stopped there would never see
    end.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, passed: Callable[[], None]) -> None:
        self.is_due = False
        self.is_of_use = True
        self._optimizer = optimizer
        self._before = optimizer.__dict__.get("step")
        inner = optimizer.step

        @functools.wraps(inner)
        def step(_: torch.optim.Optimizer, *arguments: Any, **named: Any) -> Any:
            result = inner(*arguments, **named)
            passed()
            return result

        # A method, as schedulers that wrap it in turn expect.
        self._own = types.MethodType(step, optimizer)
        optimizer.__dict__["step"] = self._own

    def leave(self) -> None:
        if self._optimizer.__dict__.get("step") is not self._own:
            return  # A scheduler has wrapped it meanwhile: it stays, and does nothing any more.
        if self._before is None:
            del self._optimizer.__dict__["step"]
        else:
            self._optimizer.__dict__["step"] = self._before
