"""Whether a run became stable, in a footnote of the comparison."""

from __future__ import annotations

from drawn import run, steps

from meshscope.analysis.comparison import comparison
from meshscope.analysis.settling import settling
from meshscope.recording.entries import Settled


def said(**about: object) -> str:
    known = {"t_ns": 1, "steps": 60, "counted": 50, "interval_frac": 0.012, "is_reached": True} | about
    return settling(run([Settled(**known)], planned_steps=400, stable_frac=0.02))  # type: ignore[arg-type]


def test_it_says_after_how_many_steps_and_how_wide_the_interval_is() -> None:
    assert said() == (
        "ddp's step time is stable after 60 of at most 400 steps: the 95 % interval of its median is 1.2 % of it wide, "
        "over 50 unprofiled steps."
    )
    assert said(steps=400, interval_frac=0.041, is_reached=False) == (
        "ddp's step time is not stable after 400 steps: the 95 % interval of its median is 4.1 % of it wide, "
        "over 50 unprofiled steps, and not below 2.0 %."
    )
    assert said(steps=9, counted=6, interval_frac=None, is_reached=False).endswith(
        "6 unprofiled steps past warm-up of 9 are too few to tell."
    )


def test_it_is_a_footnote_of_runs_that_were_asked_to() -> None:
    whole = run([*steps([99.0] * 9), Settled(t_ns=10**9, steps=9, counted=7, interval_frac=0.0, is_reached=True)])
    assert any("stable after 9" in note for note in comparison((whole,)).footnotes)
    assert not any("stable" in note for note in comparison((run(steps([99.0] * 9)),)).footnotes)
