"""The curves of a sweep on the screen of strategies, above the notes, as far as there is room."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from meshscope.run import Run
from meshscope.ui.look import Depth, Look
from meshscope.ui.marks.cells import strips
from meshscope.ui.scene import Scene
from meshscope.ui.strategies.answer import question
from meshscope.ui.strategies.drawing import drawn
from meshscope.ui.strategies.state import State

sys.path.insert(0, str(Path(__file__).parent.parent / "analysis" / "support"))
from drawn import run, steps

from meshscope.recording.entries import Ended


def swept(ranks: int, step_ms: float) -> Run:
    made = steps([step_ms - (ranks - 1)] * 14, ranks=ranks, samples=8 // ranks)
    about = {"workload": "ddp", "ranks": ranks, "global_batch": 8}
    return run([*made, Ended(t_ns=10**12, outcome="done")], strategy=f"ddp ranks {ranks}", **about)


def shown(*runs: Run, width: int, height: int = 30) -> str:
    look = Look(is_ascii=False, depth=Depth.NONE)
    lines = drawn(question(Scene(None, runs)), State(), (width, height), look).lines
    return "\n".join(strip.text.rstrip() for strip in strips(list(lines), width, height, look))


@pytest.mark.parametrize("width", [80, 160])
def test_a_sweep_shows_its_curves(width: int) -> None:
    text = " ".join(shown(swept(1, 80), swept(2, 50), width=width).split())
    assert "▪ strong scaling of ddp, global batch 8: 1 rank 100 % · 2 ranks 80 %" in text
    assert "Each point is one run" in text
    assert "they are not ranked against each other" in text


def test_what_is_no_sweep_shows_none() -> None:
    text = shown(swept(1, 80), width=160)
    assert "scaling" not in text
    assert "one run: how far" not in text
