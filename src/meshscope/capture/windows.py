"""When every rank profiles. Pure: what is known goes in, the next window comes out.

A window is asked for a few steps ahead, so that every rank reads it in time: they profile the same steps, and the
collectives between them are seen whole.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from dataclasses import dataclass

from meshscope.capture.request import Windows
from meshscope.recording.control import Ask

_LEAD_STEPS = 3
_LEAD_NS = 500_000_000
_SECOND_AT_FRAC = 0.6
_REST_STEPS = 3
_MOST_AHEAD = 1000
_APART_STEPS = 12  # Throughput is measured on unprofiled steps, so most steps are to be such.
_CYCLE_SHARE_FRAC = 0.75  # The rest of the budget is for slow steps, which come when they come.
_SLOW_SIGMAS = 3.0
_SLOW_NEEDS = 12
_SLOW_LOOKS_BACK = 40
_SLOW_REST_NS = 30_000_000_000


@dataclass(frozen=True)
class Training:
    """What the supervisor knows of a run. ``step`` is the newest step that any rank finished, −1 before the first.

    ``durations_ns`` are those of unprofiled steps, oldest first, past the first two (they warm up). ``costs_ns`` has
    one entry per window that is over. ``training_ns`` is the time since the first step began, ``slow_asked_ns`` when
    on that clock a slow step last asked for a window. ``planned`` is 0 where the length is not known.
    """

    planned: int
    step: int = -1
    durations_ns: tuple[int, ...] = ()
    costs_ns: tuple[int, ...] = ()
    training_ns: int = 0
    windows: tuple[Ask, ...] = ()
    slow_asked_ns: int = -_SLOW_REST_NS

    @property
    def step_ns(self) -> float:
        """A typical unprofiled step; NaN while none is known."""
        return statistics.median(self.durations_ns) if self.durations_ns else math.nan


def opening(policy: Windows, planned: int) -> tuple[Ask, ...]:
    """Windows that stand before the run starts: the first, and in a fixed cycle the one after it.

    In a short run the first is moved forward if need be, so that some steps stay unprofiled.
    """
    if not policy.active:
        return ()
    first = min(policy.first, planned - policy.active) if planned else policy.first
    if first < 1:
        return ()
    window = _window(policy, first, "cycle", has_memory=True)
    if policy.wait is None:
        return (window,)
    second = _window(policy, window.end_step + policy.wait + policy.warmup, "cycle")
    return (window,) if second.end_step >= planned else (window, second)


def ahead(policy: Windows, planned: int) -> tuple[Ask, ...]:
    """Every window of a run on several nodes, whose supervisors must ask for the same ones without a word between them.

    In a fixed cycle all of it; else the first, and one in the later part of the run where that is apart from it.
    """
    found = list(opening(policy, planned))
    if not found or not planned:
        return tuple(found)
    while policy.wait is not None and len(found) < _MOST_AHEAD:
        window = _window(policy, found[-1].end_step + policy.wait + policy.warmup, "cycle")
        if window.end_step > planned:
            return tuple(found)
        found.append(window)
    later = _window(policy, round(planned * _SECOND_AT_FRAC), "cycle")
    is_apart = later.first_step - later.warmup > found[-1].end_step + _REST_STEPS and later.end_step <= planned
    return (*found, later) if policy.wait is None and is_apart else tuple(found)


def due(policy: Windows, training: Training) -> Ask | None:
    """The next window of the cycle, if it is time to ask for it and none is on its way."""
    if not policy.active or math.isnan(training.step_ns):
        return None
    if policy.wait is None:
        has_room = _is_affordable(policy.budget_frac * _CYCLE_SHARE_FRAC, training)
        return _window_at(policy, training, "cycle", apart=_APART_STEPS) if has_room else _second(policy, training)
    last_end = max((window.end_step for window in training.windows), default=0)
    if last_end > training.step:
        return None
    return _window_at(policy, training, "cycle", first=last_end + policy.wait + policy.warmup)


def _second(policy: Windows, training: Training) -> Ask | None:
    """A second window in the later part of a run of known length, if it is affordable once the run is over.

    Two windows tell whether one is typical. A quarter of the budget stays as a margin for what it really costs.
    """
    first = round(training.planned * _SECOND_AT_FRAC)
    if not training.planned or len(training.windows) != 1 or training.step + 1 < first - policy.warmup - _LEAD_STEPS:
        return None
    whole = dataclasses.replace(training, training_ns=round(training.planned * training.step_ns))
    has_room = _is_affordable(policy.budget_frac * _CYCLE_SHARE_FRAC, whole)
    return _window_at(policy, training, "cycle", first=first, apart=_REST_STEPS) if has_room else None


def _is_affordable(budget_frac: float, training: Training) -> bool:
    """Whether one more window, as dear as the last one, stays within the budget; those on their way count as well."""
    if not training.costs_ns:
        return False
    coming = len(training.windows) - len(training.costs_ns) + 1
    return sum(training.costs_ns) + coming * training.costs_ns[-1] <= budget_frac * training.training_ns


def by_key(policy: Windows, training: Training) -> Ask | None:
    """One extra window as soon as every rank can have read of it; None while another one is on its way."""
    return _window_at(dataclasses.replace(policy, active=max(1, policy.active)), training, "key")


def by_slow_step(policy: Windows, training: Training, newest_ns: int) -> Ask | None:
    """A window because an unprofiled step took ``newest_ns``, longer than mean + 3σ of those before it.

    At most one in half a minute, and within the budget: on a shared machine a step in a hundred is that slow.
    """
    before = training.durations_ns[-_SLOW_LOOKS_BACK:]
    is_resting = training.training_ns - training.slow_asked_ns < _SLOW_REST_NS
    if not policy.active or is_resting or len(before) < _SLOW_NEEDS:
        return None
    if not _is_affordable(policy.budget_frac, training):
        return None
    if newest_ns <= statistics.fmean(before) + _SLOW_SIGMAS * statistics.pstdev(before):
        return None
    return _window_at(policy, training, "slow step")


def soonest(policy: Windows, training: Training) -> int:
    """The first step that a window asked for now can have: reading and warm-up need steps, and time, ahead of it."""
    step_ns = training.step_ns
    in_time = 0 if math.isnan(step_ns) or step_ns <= 0 else math.ceil(_LEAD_NS / step_ns)
    return training.step + 1 + policy.warmup + max(_LEAD_STEPS, in_time)


def _window_at(policy: Windows, training: Training, reason: str, *, first: int = 0, apart: int = 0) -> Ask | None:
    """The window if it ends within the run and keeps ``apart`` steps from others; at least one, to tell them apart."""
    window = _window(policy, max(first, soonest(policy, training)), reason)
    if training.planned and window.end_step > training.planned:
        return None
    is_taken = any(
        window.first_step - window.warmup <= other.end_step + apart
        and other.first_step - other.warmup <= window.end_step + apart
        for other in training.windows
    )
    return None if is_taken else window


def _window(policy: Windows, first: int, reason: str, *, has_memory: bool = False) -> Ask:
    return Ask(
        what="window",
        first_step=first,
        end_step=first + policy.active,
        warmup=min(policy.warmup, first),
        has_memory=has_memory,
        reason=reason,
    )
