"""``operations``, ``scopes`` and ``phases`` in ``analyze --json``: which kernels take the time, and for what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from meshscope.analysis import phases as of_phases
from meshscope.analysis import scopes as of_scopes
from meshscope.analysis.in_steps import rank_steps, working
from meshscope.analysis.operations import Operation, operations
from meshscope.analysis.phases import Phase
from meshscope.analysis.scopes import Scope, Scopes
from meshscope.run import Run

MOST = 20
"""The longest this many of each list; ``of`` says how many there are."""


def operations_json(run: Run) -> tuple[dict[str, Any], tuple[tuple[str, str], ...]]:
    """The three keys, and what cannot be said."""
    found = operations(run)
    said = {
        "operations": {"of": len(found), **_mean_step(run, found), "top": [_known(one) for one in found[:MOST]]},
        "scopes": [
            _known(one) | {"of": len(one.scopes), "scopes": [_known(scope) for scope in one.scopes[:MOST]]}
            for one in of_scopes.scopes(run)
        ],
        "phases": [_known(one) for one in of_phases.phases(run)],
    }
    return said, (*of_scopes.doubts(run), *of_phases.doubts(run))


def _mean_step(run: Run, found: Sequence[Operation]) -> dict[str, Any]:
    """All device work of the mean complete step, added up over operations, and how many of ranks it is the mean of."""
    steps = rank_steps(working(run))
    return {"per_step_ns": sum(one.per_step_ns or 0.0 for one in found), "rank_steps": steps} if steps else {}


def _known(found: Operation | Scopes | Scope | Phase) -> dict[str, Any]:
    """Without the figures of a mean step where no step is complete."""
    return {
        name: value for name, value in asdict(found).items() if value is not None or not name.startswith("per_step")
    }
