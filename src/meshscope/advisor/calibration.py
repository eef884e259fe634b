"""From one recording on a machine to the factors by which it differs from the cost tables, to predict others on it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from meshscope.advisor.cluster import Cluster
from meshscope.advisor.coverage import NotCovered
from meshscope.advisor.cpu_costs import cpu_costs
from meshscope.advisor.cpu_ranks import is_cpu
from meshscope.advisor.cpu_steps import CpuStep, cpu_step
from meshscope.advisor.fitting import Fitted, Observed, fitted
from meshscope.advisor.multipliers import Multipliers, Provenance
from meshscope.advisor.readings import ATTENTION, CLASSES, MATMUL, MEMORY_BOUND, Readings, readings
from meshscope.advisor.recorded import Asked, recorded
from meshscope.advisor.timing import timing
from meshscope.analysis.phase_names import BACKWARD, FORWARD, OPTIMIZER
from meshscope.run import Run

CPU_PRIORS = {
    "matmul": 3.0, "attention": 3.0, "memory_bound": 2.0, "launch": 1.0, "collective_bandwidth": 3.0,
    "collective_latency": 1.0, "contention": 0.3, "step_tail": 2.0,
}  # fmt: skip
"""How far a machine may be from what is assumed of a CPU, as a share: what is measured soon says more than these."""

PRIORS = {
    "matmul": 0.15, "attention": 0.2, "memory_bound": 0.15, "launch": 0.5, "collective_bandwidth": 0.3,
    "collective_latency": 0.5, "contention": 0.15, "step_tail": 0.5,
}  # fmt: skip
"""Of accelerators, whose cost tables are of the same product."""

_OTHER_FRAC, _OTHER_CPU_FRAC = 0.05, 0.1
"""What a prediction of another strategy is off even where the recording itself is met: its own operators were not
measured, and on a CPU there are more of them."""
_SHORT_FRAC = 0.02
_MOVED = 0.05
_LEAST_SHARE = 0.01
"""Of a step: parts below this tell more of the clock than of the machine."""


@dataclass(frozen=True)
class Calibration:
    """``residuals`` maps each observation to measured over predicted, less one, with the factors in place."""

    multipliers: Multipliers
    asked: Asked
    measured: Readings
    residuals: dict[str, float]


def calibration(run: Run, cluster: Cluster) -> Calibration:
    """``cluster`` is what the recording ran on (see `recorded`). Raises NotCovered where it cannot be calibrated on."""
    asked, measured = recorded(run), readings(run)
    if not measured.steps:
        raise NotCovered("it has no step past warm-up that no profiler touched")
    if not measured.is_profiled:
        raise NotCovered("no step of it was profiled, so nothing says what it is made of")
    found = factors(asked, measured, cluster)
    told = Provenance(
        recording=run.name,
        made_at=_made_at(run),
        machine=run.experiment.host or cluster.device.name,
        strategy=run.experiment.base_strategy,
        steps=measured.steps,
        residual_frac=_residual_frac(found, measured, _OTHER_CPU_FRAC if is_cpu(cluster) else _OTHER_FRAC),
    )
    return Calibration(replace(found.multipliers, provenance=told), asked, measured, found.residuals)


def factors(asked: Asked, measured: Readings, cluster: Cluster) -> Fitted:
    """The most likely ones for what was measured. Raises NotCovered for a question that the model does not cover."""
    return _on_cpu(asked, measured, cluster) if is_cpu(cluster) else _on_devices(asked, measured, cluster)


def _made_at(run: Run) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(run.experiment.t0_unix_ns / 1e9, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _residual_frac(found: Fitted, measured: Readings, other_frac: float) -> float:
    """Half of what 90 % of the recording's own steps spread, what the fit leaves of the step, and what other strategies
    are off beyond that; independent, so their squares add up."""
    spread = (measured.high_s - measured.low_s) / 2 / measured.step_s
    parts = (spread, found.residuals.get("step", 0.0), other_frac)
    return math.sqrt(sum(part**2 for part in parts))


def cpu_terms(step: CpuStep) -> dict[str, float]:
    """What of a predicted step of CPU ranks can be measured, by name."""
    back = sum(seconds for (phase, part), seconds in step.by_part.items() if phase == BACKWARD and part != "launch")
    slowed = 1.0 + (step.contended_s / back if back else 0.0)
    parts = {
        f"{phase} {part}": step.by_part.get((phase, part), 0.0) * (slowed if phase == BACKWARD else 1.0)
        for phase in (FORWARD, BACKWARD)
        for part in ("matmul", "attention", "memory_bound")
    }
    parts["backward memory_bound"] += step.by_part.get((BACKWARD, "stream"), 0.0) * slowed
    tail = step.by_part.get((OPTIMIZER, "stream"), 0.0)
    return parts | {
        "optimizer": tail,
        "idle": step.launch_s,
        "exposed": step.exposed_s,
        "step": step.step_s,
        "transfer": sum(seconds for _, _, seconds in step.transfers),
    }


def _on_cpu(asked: Asked, measured: Readings, cluster: Cluster) -> Fitted:
    compute = asked.candidate.numerics.compute

    def predict(multipliers: Multipliers) -> Mapping[str, float]:
        costs = cpu_costs(cluster, compute, multipliers)
        step = cpu_step(asked.architecture, asked.candidate, costs)
        # A transfer beside compute takes longer, and so it was measured.
        hidden = _hidden_frac(measured)
        terms = cpu_terms(step)
        return terms | {"transfer": terms["transfer"] * (1 + (costs.contention - 1) * hidden)}

    return fitted(predict, _cpu_observed(measured), CPU_PRIORS)


def _hidden_frac(measured: Readings) -> float:
    """Of the time of transfers, the share beside compute."""
    weights = [(one.times * one.transfer_s, one.hidden_frac) for one in measured.transfers]
    total = sum(weight for weight, _ in weights)
    return sum(weight * frac for weight, frac in weights) / total if total else 0.0


def _cpu_observed(measured: Readings) -> tuple[Observed, ...]:
    added_s = max(0.0, measured.span_s - measured.step_s)
    # The profiler costs time per operator, none of it in a kernel: it stands between them.
    idle_s = max(measured.idle_s - added_s, 0.3 * measured.idle_s)
    names = {MATMUL: "matmul", ATTENTION: "attention", MEMORY_BOUND: "memory_bound"}
    parts = [
        Observed(f"{phase} {name}", measured.seconds(kind, phase), 0.1)
        for phase in (FORWARD, BACKWARD)
        for kind, name in names.items()
    ]
    parts += [
        Observed("optimizer", measured.seconds(MEMORY_BOUND, OPTIMIZER), 0.1),
        Observed("idle", idle_s, 0.3),
        Observed("exposed", measured.exposed_s, 0.3),
        Observed("transfer", sum(one.times * one.transfer_s for one in measured.transfers), 0.15),
        Observed("step", measured.step_s, 0.02),
    ]
    return tuple(one for one in parts if one.seconds > _LEAST_SHARE * measured.step_s)


def _on_devices(asked: Asked, measured: Readings, cluster: Cluster) -> Fitted:
    alone = _by_class(asked, cluster)

    def predict(multipliers: Multipliers) -> Mapping[str, float]:
        told = timing(asked.architecture, asked.candidate, cluster, multipliers)
        classes = {name: seconds * multipliers.factors[name] for name, seconds in alone.items()}
        return classes | {
            "step": told.step_s.value,
            "compute": told.compute_s,
            "exposed": told.exposed_s,
            "hidden": told.hidden_s,
            "idle": told.idle_s + told.bubble_s,
        }

    parts = (
        Observed("step", measured.step_s, _SHORT_FRAC),
        Observed("compute", measured.compute_s, 0.05),
        *(Observed(name, measured.seconds(name), 0.1) for name in alone),
        Observed("exposed", measured.exposed_s, 0.2),
        Observed("hidden", measured.hidden_s, 0.2),
        Observed("idle", measured.idle_s, 0.3),
    )
    return fitted(predict, tuple(one for one in parts if one.seconds > _LEAST_SHARE * measured.step_s), PRIORS)


def _by_class(asked: Asked, cluster: Cluster) -> dict[str, float]:
    """Predicted seconds of compute by what bounds them, each as far as its factor moves all compute."""
    found = {}
    for name in CLASSES:
        changed = [Multipliers(**{name: factor}) for factor in (1 + _MOVED, 1 - _MOVED)]  # type: ignore[arg-type]
        slow, quick = (timing(asked.architecture, asked.candidate, cluster, one).compute_s for one in changed)
        found[name] = max(0.0, (slow - quick) / 2 / _MOVED)
    return found
