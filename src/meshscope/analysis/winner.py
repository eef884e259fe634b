"""Whether the faster of two runs wins: the one rule that the comparison's verdict and the strategies' screen go by."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from meshscope.analysis import likeness
from meshscope.analysis.change import SAME, SLOWER, UNSURE, judgement
from meshscope.analysis.figures import Figures

WON, LEVEL, UNKNOWN, PROFILED = "won", "level", "unknown", "profiled"
"""``profiled``: both are native traces, whose steps can be set against each other only as they were profiled."""

_ALIKE_FRAC = 0.01


class Paced(Protocol):
    """A run with its step time in ns, and the figures that a verdict on it rests on."""

    @property
    def name(self) -> str: ...
    @property
    def is_traced(self) -> bool: ...
    @property
    def step_ns(self) -> float: ...
    @property
    def figures(self) -> Figures: ...


@dataclass(frozen=True)
class Decision:
    """``verdict`` is one of WON, LEVEL, UNKNOWN (``why``) and PROFILED.

    ``least_frac`` is the smallest difference that would have shown, as a fraction; NaN where not known.
    ``is_crowded``: not known because other programs used the cores.
    """

    verdict: str
    why: str = ""
    least_frac: float = math.nan
    is_crowded: bool = False


def decide(fast: Paced, slow: Paced) -> Decision:
    """Of two runs of which ``fast`` has the higher throughput; as ``compare`` judges them, so that all say the same."""
    if fast.is_traced or slow.is_traced:
        why = likeness.other(fast.figures, slow.figures)
        return Decision(UNKNOWN, why) if why else Decision(PROFILED)
    found = judgement([fast.figures], [slow.figures], called=(fast.name, slow.name))
    if found.step is None or found.verdict == UNSURE:
        return Decision(UNKNOWN, found.why, is_crowded=found.is_crowded)
    if why := _other_samples(fast, slow) or _otherwise(fast, slow, found.verdict):
        return Decision(UNKNOWN, why)
    return Decision(LEVEL if found.verdict == SAME else WON, least_frac=found.step.resolution)


def _otherwise(fast: Paced, slow: Paced, verdict: str) -> str:
    """What speaks against the verdict on the steps' length; "" where nothing does."""
    if verdict not in (SAME, SLOWER):
        return f"{slow.name} has the shorter steps, {fast.name} takes more samples per second"
    if verdict == SLOWER and round(slow.step_ns) <= round(fast.step_ns):
        # The verdict counts the steps during which nobody else used the cores, where there are enough of them.
        return "all their steps say otherwise than those during which no other program ran"
    return ""


def _other_samples(fast: Paced, slow: Paced) -> str:
    """Step times say who is faster only where a step of both takes as many samples; "" there, and where not known."""
    one, other = fast.figures.samples_per_step, slow.figures.samples_per_step
    if not abs(one - other) > _ALIKE_FRAC * max(one, other):
        return ""
    return f"a step of {fast.name} takes {one:.0f} samples, one of {slow.name} {other:.0f}"


def nobody(fast: str, slow: str, found: Decision) -> str:
    """The sentence for an UNKNOWN decision: that no winner of the two can be named, and why."""
    if found.is_crowded:
        return f"{fast} is ahead, but {found.why}: no winner can be named."
    return f"No winner of {fast} and {slow}: {found.why}."
