"""``operations``, ``scopes`` and ``phases`` in ``analyze --json``: which kernels take the time, and for what."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from meshscope.analysis import phases as of_phases
from meshscope.analysis import scopes as of_scopes
from meshscope.analysis.operations import operations
from meshscope.run import Run

MOST = 20
"""The longest this many of each list; ``of`` says how many there are."""


def operations_json(run: Run) -> tuple[dict[str, Any], tuple[tuple[str, str], ...]]:
    """The three keys, and what cannot be said."""
    found = operations(run)
    said = {
        "operations": {"of": len(found), "top": [asdict(one) for one in found[:MOST]]},
        "scopes": [
            asdict(one) | {"of": len(one.scopes), "scopes": [asdict(scope) for scope in one.scopes[:MOST]]}
            for one in of_scopes.scopes(run)
        ],
        "phases": [asdict(one) for one in of_phases.phases(run)],
    }
    return said, (*of_scopes.doubts(run), *of_phases.doubts(run))
