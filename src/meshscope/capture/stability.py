"""``--until-stable``: when a run has taken steps enough, and how all its ranks end at the same one.

The supervisor decides; ranks are never asked and start no collective for it. A rank may begin the steps below a
*horizon* and no others: it waits there until the supervisor has moved the horizon on or has said that the run ends.
The supervisor moves it in time, while every rank is still well before it, so that nobody waits; and it ends a run only
*at* the horizon, which by construction no rank has passed. A stop told only in time could come late at one rank and
not at another, and then those that go on would wait for the others in a collective for ever.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from meshscope.experiment import Experiment
from meshscope.recording import control
from meshscope.recording.control import Ask
from meshscope.recording.entries import Entry, Settled, StepDone
from meshscope.recording.journal import Journal
from meshscope.resampling import median_interval_frac

FEWEST = 12
"""Fewer steps than these say nothing of how far steps scatter; ``compare`` asks for as many."""

_WARM_UP_STEPS = 2
_FIRST_HORIZON = 32
_LEAD_STEPS = 8
_LEAD_NS = 1_500_000_000
_GROWTH = 1.1


@dataclass
class _Step:
    ranks: int = 0
    start_ns: int = 0
    end_ns: int = 0
    is_counted: bool = True


@dataclass
class StepTimes:
    """How long the run's steps took, as ``analysis.steps`` has it: past warm-up, unprofiled, of all ranks together."""

    newest: int = -1
    _ranks: set[int] = field(default_factory=set)
    _steps: dict[int, _Step] = field(default_factory=dict)

    def add(self, entry: StepDone) -> None:
        self.newest = max(self.newest, entry.step)
        self._ranks.add(entry.rank)
        step = self._steps.setdefault(entry.step, _Step(start_ns=entry.start_ns))
        step.ranks += 1
        step.start_ns, step.end_ns = min(step.start_ns, entry.start_ns), max(step.end_ns, entry.end_ns)
        step.is_counted &= not (entry.is_profiled or entry.is_compiling)

    def measured_ns(self) -> list[float]:
        """In the order of the steps; a step begins where the one before it ended on the last rank."""
        found: list[float] = []
        done = {number: step for number, step in self._steps.items() if step.ranks == len(self._ranks)}
        first = min(done, default=0)
        for number in sorted(done):
            step, before = done[number], done.get(number - 1)
            begin_ns = max(step.start_ns, before.end_ns) if before else step.start_ns
            if step.is_counted and number >= first + _WARM_UP_STEPS and step.end_ns > begin_ns:
                found.append(float(step.end_ns - begin_ns))
        return found


@dataclass
class Stability:
    """Moves the horizon of one recording, and ends the run there once its median step time is known well enough."""

    recording: Path
    experiment: Experiment
    journal: Journal
    horizon: int = 0
    is_over: bool = False
    times: StepTimes = field(default_factory=StepTimes)
    _lead_steps: int = _LEAD_STEPS
    _lead_is_of: int = -1

    @property
    def is_asked(self) -> bool:
        return self.experiment.stable_frac > 0

    def open(self) -> None:
        """The first horizon stands before a rank can look for it."""
        if self.is_asked:
            self._move(min(_FIRST_HORIZON, self.experiment.planned_steps))

    def take(self, entries: list[Entry], windows: tuple[Ask, ...]) -> None:
        """Fold what ranks wrote; move the horizon or end the run where the ranks come near it."""
        if not self.is_asked or self.is_over:
            return
        for entry in entries:
            if isinstance(entry, StepDone):
                self.times.add(entry)
        if self.horizon >= self.experiment.planned_steps:
            self._say_if_unsettled()
        elif self.times.newest + 1 >= self.horizon - self._lead():
            self._decide(windows)

    def _lead(self) -> int:
        """How far before the horizon ranks are to know what comes; worked out anew once for each horizon."""
        if self._lead_is_of != self.horizon and len(known := self.times.measured_ns()) >= FEWEST:
            self._lead_steps = max(_LEAD_STEPS, math.ceil(_LEAD_NS / float(np.median(known))))
            self._lead_is_of = self.horizon
        return self._lead_steps

    def _decide(self, windows: tuple[Ask, ...]) -> None:
        known = self.times.measured_ns()
        frac = median_interval_frac(np.array(known)) if len(known) >= FEWEST else math.inf
        is_profiling = any(w.first_step - w.warmup <= self.horizon <= w.end_step for w in windows)
        if frac <= self.experiment.stable_frac and not is_profiling:
            self._end(self.horizon, len(known), frac)
            return
        further = max(self.horizon + 2 * self._lead(), math.ceil(self.horizon * _GROWTH))
        self._move(min(further, self.experiment.planned_steps))

    def _move(self, horizon: int) -> None:
        self.horizon = horizon
        control.ask(self.recording, Ask(what="until", end_step=horizon))

    def _end(self, step: int, counted: int, frac: float) -> None:
        self.is_over = True
        control.ask(self.recording, Ask(what="end", end_step=step))
        self._tell(step, counted, frac, is_reached=True)

    def _say_if_unsettled(self) -> None:
        """The limit ends the run: whether its steps were settled by then is told once all of them are done."""
        planned = self.experiment.planned_steps
        if self.times.newest + 1 < planned:
            return
        known = self.times.measured_ns()
        frac = median_interval_frac(np.array(known)) if len(known) >= FEWEST else math.inf
        self.is_over = True
        self._tell(planned, len(known), frac, is_reached=frac <= self.experiment.stable_frac)

    def _tell(self, steps: int, counted: int, frac: float, *, is_reached: bool) -> None:
        self.journal.append(
            Settled(
                t_ns=self.journal.now_ns(),
                steps=steps,
                counted=counted,
                interval_frac=frac if math.isfinite(frac) else None,
                is_reached=is_reached,
            )
        )
