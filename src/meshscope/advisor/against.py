"""Prediction beside measurement for one recording: where the model was wrong, and in which term."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace

from meshscope.advisor.cluster import Cluster
from meshscope.advisor.figures import Figure
from meshscope.advisor.forecast import Forecast, MemoryForecast, TimeForecast
from meshscope.advisor.forecasting import forecast
from meshscope.advisor.hardware import cluster as cluster_of
from meshscope.advisor.multipliers import NEUTRAL, Multipliers, Provenance
from meshscope.advisor.readings import Readings, readings
from meshscope.advisor.recorded import Asked, recorded
from meshscope.run import Run

COMPUTE, EXPOSED, IDLE = "compute", "exposed communication", "idle"
WITH_BUBBLE = "bubble and exposed communication"

_MEMORY = ("parameters", "gradients", "optimizer")
"""Categories that are there all the time: of others a forecast says what the peak holds, a measurement the most."""


@dataclass(frozen=True)
class Side:
    """One term, predicted and measured, in seconds or bytes; NaN where one of them does not tell.

    ``times`` are how often it happens in a step, predicted and measured; 0 where nobody counts.
    """

    name: str
    predicted: float
    measured: float
    times: tuple[float, float] = (0.0, 0.0)

    @property
    def error(self) -> float:
        """Predicted less measured."""
        return self.predicted - self.measured


@dataclass(frozen=True)
class Against:
    """``step`` is predicted, ``measured`` the recording's. ``terms`` make up the step and ``measured.span_s`` (of
    profiled steps, which the profiler makes longer); ``collectives`` are by name, their time whether hidden or not;
    ``memory`` are categories, ``peak`` the peak of what is allocated. ``cannot_say`` has the reasons for what is
    missing. ``calibrated`` says what the prediction was calibrated on, with empty words where on nothing.
    """

    name: str
    asked: Asked
    cluster: Cluster
    measured: Readings
    calibrated: Provenance
    step: Figure | None
    terms: tuple[Side, ...] = ()
    collectives: tuple[Side, ...] = ()
    memory: tuple[Side, ...] = ()
    peak: Figure | None = None
    cannot_say: tuple[str, ...] = ()

    @property
    def error_frac(self) -> float:
        """Of the step: predicted over measured, less one; NaN without either."""
        return math.nan if self.step is None else self.step.value / self.measured.step_s - 1

    @property
    def is_inside(self) -> bool:
        """Whether the measured step lies within the interval of the prediction."""
        return self.step is not None and self.step.low <= self.measured.step_s <= self.step.high

    @property
    def worst(self) -> Side | None:
        """The term of the step that is off by the most seconds."""
        known = [side for side in self.terms if math.isfinite(side.error)]
        return max(known, key=lambda side: abs(side.error), default=None)

    @property
    def peak_error_frac(self) -> float:
        known = self.peak is not None and math.isfinite(self.measured.peak_bytes) and self.measured.peak_bytes > 0
        return self.peak.value / self.measured.peak_bytes - 1 if known and self.peak is not None else math.nan


def against(run: Run, cluster: Cluster | None = None, multipliers: Multipliers = NEUTRAL) -> Against:
    """``cluster`` is what it ran on; None: what the recording says. Raises NotCovered for a recording of which the
    model cannot tell what was trained, InputError for a device that nobody described.
    """
    asked, measured = recorded(run), readings(run)
    on = cluster or ran_on(asked)
    found = forecast(asked.architecture, asked.candidate, on, multipliers)
    told = [*found.cannot_say]
    if not measured.steps:
        told.append("time: the recording has no step past warm-up that no profiler touched")
    if not measured.is_profiled:
        told.append("terms: no step of the recording was profiled")
    return Against(
        name=run.name,
        asked=asked,
        cluster=on,
        measured=measured,
        calibrated=multipliers.provenance,
        step=found.time.step_s if found.time and measured.steps else None,
        terms=_terms(found.time, measured, asked) if found.time and measured.is_profiled else (),
        collectives=_collectives(found.time, measured) if found.time and measured.is_profiled else (),
        memory=_memory(found.memory, measured, asked) if found.memory else (),
        peak=found.memory.allocated if found.memory else None,
        cannot_say=tuple(told),
    )


def ran_on(asked: Asked) -> Cluster:
    """The devices of a recording. Raises InputError for one that nobody described."""
    each, name = asked.devices // asked.nodes, asked.device_name or asked.device_kind
    found = cluster_of(f"{asked.nodes}x{each}x{name}" if asked.nodes > 1 else f"{asked.devices}x{name}")
    return replace(found, cores_per_rank=asked.cores / each) if asked.cores else found


def predicted(asked: Asked, cluster: Cluster, multipliers: Multipliers = NEUTRAL) -> Forecast:
    """Of the same question on other devices or with other factors."""
    return forecast(asked.architecture, asked.candidate, cluster, multipliers)


def _terms(told: TimeForecast, measured: Readings, asked: Asked) -> tuple[Side, ...]:
    """What the step is made of. A trace shows a pipeline's bubble as waiting for a message, so both stand together."""
    is_pipeline = asked.candidate.pipeline > 1
    exposed = told.exposed_s + (told.bubble_s if is_pipeline else 0.0)
    idle = told.idle_s + (0.0 if is_pipeline else told.bubble_s)
    return (
        Side(COMPUTE, told.compute_s, measured.compute_s),
        Side(WITH_BUBBLE if is_pipeline else EXPOSED, exposed, measured.exposed_s),
        Side(IDLE, idle, measured.idle_s),
    )


def _collectives(told: TimeForecast, measured: Readings) -> tuple[Side, ...]:
    """By name, seconds of a step; what only one of both knows has NaN on the other side."""
    found: dict[str, list[float]] = defaultdict(lambda: [math.nan, math.nan, 0.0, 0.0])
    for term in told.terms:
        if term.name in _NAMES:
            _add(found[_NAMES[term.name]], 0, term.times * term.figure.value, term.times)
    for one in measured.transfers:
        _add(found[_NAMES.get(one.kind, one.kind)], 1, one.times * one.transfer_s, one.times)
    return tuple(Side(name, row[0], row[1], (row[2], row[3])) for name, row in found.items())


_NAMES = {
    name: name for name in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send", "permute")
} | {"recv": "send", "send_recv": "send"}


def _add(row: list[float], at: int, seconds: float, times: float) -> None:
    row[at] = seconds if math.isnan(row[at]) else row[at] + seconds
    row[at + 2] += times


def _memory(told: MemoryForecast, measured: Readings, asked: Asked) -> tuple[Side, ...]:
    """What is held is measured by whose tensors it is: DDP's buckets hold gradients, beside these or in their place."""
    held = {name: figure.value for name, figure in told.categories.items()}
    laid = asked.candidate
    if laid.zero_stage < 2 and laid.data > 1 and laid.framework == "torch" and "gradients" in held:
        held["gradients"] += held.get("communication", 0.0)
    return tuple(Side(name, held[name], measured.memory.get(name, math.nan)) for name in _MEMORY if name in held)
