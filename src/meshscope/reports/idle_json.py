"""``idle`` and ``launches`` in ``analyze --json``: why devices did nothing, and how the host fed them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from meshscope.analysis.idle import Idle, doubts, idle
from meshscope.analysis.idle_shares import RankIdle, idle_shares
from meshscope.analysis.launches import launches
from meshscope.run import Run


def idle_json(run: Run) -> tuple[dict[str, Any], tuple[tuple[str, str], ...]]:
    """Both lists, a row for each rank that has something to say; and what cannot be said.

    Rows are over whole windows; ``per_step`` is the mean complete step, where the rank has one.
    """
    found = idle(run)
    means = {one.rank: one for one in idle_shares(run).ranks if one.steps}
    said = {
        "idle": [_idle(one, means.get(one.rank)) for one in found if not one.why],
        "launches": [asdict(one) for one in launches(run)],
    }
    return said, doubts(found)


def _idle(found: Idle, mean: RankIdle | None) -> dict[str, Any]:
    said = asdict(found)
    del said["why"]
    if found.longest is None:
        del said["longest"]
    said |= {"host_late_ns": found.host_late_ns}
    if mean is None:
        return said
    causes = {cause: round(ns) for cause, ns in mean.causes.items()}
    of_step = {"steps": mean.steps, "span_ns": round(mean.span_ns), "idle_ns": round(mean.idle_ns), "causes": causes}
    return said | {"per_step": of_step}
