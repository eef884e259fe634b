"""Draws recordings/simulated-8-h100-1.3b anew, from the constants as they are now: ``python .assets/simulated.py``.

DDP against FSDP on eight H100, 1.3 billion parameters: a step of each as it is predicted, for whoever has no such
machine. The time that it is said to be of stays, so that only what is predicted otherwise changes.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from meshscope.advisor.ranking import advice
from meshscope.advisor.request import Request, posed
from meshscope.advisor.simulated import write
from meshscope.advisor.simulated_steps import simulated

FOLDER = Path(__file__).parents[1] / "recordings" / "simulated-8-h100-1.3b"
NOW_UNIX_NS = 1_767_225_600_000_000_000


def draw(folder: Path = FOLDER) -> None:
    """Each strategy with its best settings at one batch, in the numerics that both are usually trained in."""
    asked = posed(Request("1.3b", "8xH100", strategies=("=ddp", "=fsdp")))
    found = advice(asked.question).ranked
    chosen = [next(each for each in found if each.candidate.strategy == name) for name in ("ddp", "fsdp")]
    shutil.rmtree(folder, ignore_errors=True)
    write(folder, [simulated(asked.question, each) for each in chosen], now_unix_ns=NOW_UNIX_NS)


if __name__ == "__main__":
    draw()
