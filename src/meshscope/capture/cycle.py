"""Asks ranks for windows as the policy of ``windows`` says, by what their journals tell."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from pathlib import Path

from meshscope.capture import windows
from meshscope.capture.request import Windows
from meshscope.capture.windows import Training
from meshscope.experiment import Experiment
from meshscope.recording import control
from meshscope.recording.control import Ask
from meshscope.recording.entries import Entry, Log, StepDone, TraceWritten, WindowAsked
from meshscope.recording.journal import Journal

_WARMING_UP = 2
_REMEMBERED = 200


@dataclass
class Cycle:
    """The windows of one recording. Steps are timed on the first rank: all ranks keep its pace."""

    recording: Path
    policy: Windows
    experiment: Experiment
    journal: Journal
    training: Training = field(init=False)
    _first_start_ns: int = -1
    _profiled_ns: dict[int, int] = field(default_factory=dict)
    _held_ns: dict[int, int] = field(default_factory=dict)
    _is_key_waiting: bool = False
    _is_cost_stale: bool = False

    def __post_init__(self) -> None:
        self.training = Training(planned=self.experiment.planned_steps)

    def open(self) -> None:
        """Ask for what can be asked for before the ranks start."""
        ahead = windows.ahead if self.experiment.nodes > 1 else windows.opening
        for window in ahead(self.policy, self.training.planned):
            self._ask(window)

    def take(self, entries: list[Entry], asks: list[Ask]) -> None:
        """Fold what ranks wrote and watchers asked for; ask the ranks for at most one window."""
        slow: Ask | None = None
        for entry in entries:
            if isinstance(entry, TraceWritten):
                held_ns = entry.start_cost_ns + entry.stop_ns
                self._held_ns[entry.first_step] = max(held_ns, self._held_ns.get(entry.first_step, 0))
                self._is_cost_stale = True
            elif isinstance(entry, StepDone):
                slow = self._step(entry) or slow
        self._is_key_waiting |= any(ask.what == "profile" for ask in asks)
        self._decide(slow)

    def _decide(self, slow: Ask | None) -> None:
        window = windows.by_key(self.policy, self.training) if self._is_key_waiting else None
        if window:
            self._is_key_waiting = False
        elif slow and self.experiment.nodes == 1:
            window = slow
            self._change(slow_asked_ns=self.training.training_ns)
        elif self.experiment.nodes == 1:
            window = windows.due(self.policy, self.training)
        if window:
            self._ask(window)

    def _step(self, entry: StepDone) -> Ask | None:
        """Fold one step; the window it asks for by being slow."""
        self._change(step=max(self.training.step, entry.step))
        if entry.rank != self.experiment.own_ranks.start:
            return None
        if self._first_start_ns < 0:
            self._first_start_ns = entry.start_ns
        self._change(training_ns=entry.end_ns - self._first_start_ns)
        duration_ns = entry.end_ns - entry.start_ns
        slow = None
        if entry.is_profiled:
            self._profiled_ns[entry.step] = duration_ns
        elif entry.step >= _WARMING_UP and not entry.is_compiling:
            slow = windows.by_slow_step(self.policy, self.training, duration_ns)
            self._change(durations_ns=(*self.training.durations_ns, duration_ns)[-_REMEMBERED:])
        self._count_costs(entry.step)
        return slow

    def _count_costs(self, step: int) -> None:
        """What each finished window cost: holding the ranks, and its steps beyond their usual length."""
        usual_ns = self.training.step_ns
        over = [window for window in self.training.windows if window.end_step <= step]
        if math.isnan(usual_ns) or not (self._is_cost_stale or len(over) > len(self.training.costs_ns)):
            return
        self._is_cost_stale = False
        self._change(costs_ns=tuple(self._cost_ns(window, usual_ns) for window in over))

    def _cost_ns(self, window: Ask, usual_ns: float) -> int:
        # The step after the window waits for the rank that stops last: that may count twice, never too little.
        steps = range(window.first_step - window.warmup, window.end_step + 1)
        longer_ns = sum(max(0, self._profiled_ns[step] - usual_ns) for step in steps if step in self._profiled_ns)
        return round(self._held_ns.get(window.first_step, 0) + longer_ns)

    def _ask(self, window: Ask) -> None:
        control.ask(self.recording, window)
        first, end, now_ns = window.first_step, window.end_step, self.journal.now_ns()
        self.journal.append(WindowAsked(t_ns=now_ns, first_step=first, end_step=end, reason=window.reason))
        if window.reason == "slow step":
            text = f"A step was slower than mean + 3σ of those before it; steps {first}–{end - 1} are profiled for it."
            self.journal.append(Log(t_ns=now_ns, level="info", text=text))
        self._change(windows=(*self.training.windows, window))

    def _change(self, **changes: object) -> None:
        self.training = dataclasses.replace(self.training, **changes)  # type: ignore[arg-type]
