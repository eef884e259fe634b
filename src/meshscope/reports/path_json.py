"""``critical_path`` in ``analyze --json``: the chain that took the steps' time, and what replays of it say."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from meshscope.analysis.critical_path import CriticalPath, critical_paths, doubts
from meshscope.run import Run

MOST = 20


def path_json(run: Run) -> tuple[dict[str, Any], tuple[tuple[str, str], ...]]:
    """A row for each round of windows, and what cannot be said."""
    return {"critical_path": [_path(one) for one in critical_paths(run)]}, doubts(run)


def _path(found: CriticalPath) -> dict[str, Any]:
    said = asdict(replace(found, legs=()))
    del said["untold"], said["legs"]
    said["by_rank"] = {str(rank): ns for rank, ns in found.by_rank.items()}
    return said | {"works": said["works"][:MOST], "switches": found.switches}
