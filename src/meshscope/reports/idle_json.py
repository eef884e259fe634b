"""``idle`` and ``launches`` in ``analyze --json``: why devices did nothing, and how the host fed them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from meshscope.analysis.idle import Idle, doubts, idle
from meshscope.analysis.launches import launches
from meshscope.run import Run


def idle_json(run: Run) -> tuple[dict[str, Any], tuple[tuple[str, str], ...]]:
    """Both lists, a row for each rank that has something to say; and what cannot be said."""
    found = idle(run)
    said = {
        "idle": [_idle(one) for one in found if not one.why],
        "launches": [asdict(one) for one in launches(run)],
    }
    return said, doubts(found)


def _idle(found: Idle) -> dict[str, Any]:
    said = asdict(found)
    del said["why"]
    if found.longest is None:
        del said["longest"]
    return said | {"host_late_ns": found.host_late_ns}
