"""A loss that is no number any more is said below the steps."""

from __future__ import annotations

import math
from collections.abc import Callable

from meshscope.experiment import Experiment
from meshscope.recording.entries import StepDone
from meshscope.run import Run
from meshscope.run.ledger import fold
from meshscope.ui.panel import Frame
from meshscope.ui.panels.steptime import PANEL
from meshscope.ui.scene import Scene


def shown(of: Run, width: int = 100) -> str:
    given = PANEL.question(Scene(None, (of,), selected=of.name))
    return "\n".join(strip.text for strip in PANEL.draw(given, Frame(width, 14, selected=of.name)))


def told(loss: Callable[[int], float]) -> Run:
    """Six steps of 0.1 s on one rank."""
    head = Experiment(
        t0_unix_ns=1, strategy="ddp", title="DDP", framework="torch", ranks=1, device_kind="cpu", model="tiny"
    )
    ends_ns = [(number + 1) * 100_000_000 for number in range(6)]
    return fold(
        head,
        [
            StepDone(t_ns=end_ns, rank=0, step=number, start_ns=end_ns - 90_000_000, end_ns=end_ns, samples=8,
                     loss=loss(number))
            for number, end_ns in enumerate(ends_ns)
        ],
    )  # fmt: skip


def test_the_step_since_which_the_loss_is_lost_stands_where_the_loss_stood() -> None:
    finite = shown(told(lambda number: 5.0 - number))
    assert "loss 0.000" in finite
    assert "not finite" not in finite
    assert "loss not finite since step 3" in shown(told(lambda number: math.nan if number >= 3 else 1.0))
    assert "loss not finite since step 0" in shown(told(lambda _: math.inf))
    assert "not finite" not in shown(told(lambda number: math.nan if number == 3 else 1.0))
