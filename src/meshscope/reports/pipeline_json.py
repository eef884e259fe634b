"""A pipeline's bubble in ``analyze --json``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from meshscope.analysis.pipeline import Pipeline, Stage, pipeline
from meshscope.run import Run


def pipeline_json(run: Run) -> dict[str, Any]:
    """The part ``pipeline``; absent of a run that is none. Shares are of a step; ``ranks`` have traced steps."""
    found = pipeline(run)
    return {} if found is None else {"pipeline": _pipeline(found)}


def _pipeline(found: Pipeline) -> dict[str, Any]:
    said: dict[str, Any] = {
        "schedule": found.schedule,
        "stages": found.stages,
        "micro_batches": found.micro_batches,
        "chunks": found.chunks,
        "ideal_wait_frac": found.ideal_frac,
        "ranks": [_stage(one) for one in found.ranks],
    }
    longest = found.longest
    if longest is not None:
        said["wait_frac"] = found.wait_frac
    if longest is not None and found.is_whole:
        excess = {"excess_frac": found.excess_frac, "mean_compute_ns": round(found.mean_ns)}
        said["longest"] = {"rank": longest.rank, **excess}
        said["is_uneven"] = found.is_uneven
    return said


def _stage(one: Stage) -> dict[str, Any]:
    return asdict(one) | {"wait_frac": one.wait_frac}
