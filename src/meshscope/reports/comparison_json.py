"""The comparison in ``analyze --json``: what the table of the text report and the screen says, in full precision."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from meshscope.analysis.comparison import Row, comparison
from meshscope.reports.scaling_json import scaling_json
from meshscope.run import Run

_WHOLE = ("median_ns", "peak_bytes", "compile_ns")
_FLOATS = ("samples_per_s", "speedup", "efficiency_frac", "exposed_frac", "profiler_cost_frac")


def comparison_json(runs: Sequence[Run]) -> dict[str, Any] | None:
    """Over the recordings; None where there are only traces, which nobody planned to compare."""
    recorded = tuple(run for run in runs if run.experiment.strategy)
    if not recorded:
        return None
    found = comparison(recorded)
    return {
        "leader": found.leader or None,
        "verdict": found.verdict,
        "footnotes": list(found.footnotes),
        "strategies": [_strategy(row) for row in found.rows],
        **scaling_json(recorded, found.rows),
    }


def _strategy(row: Row) -> dict[str, Any]:
    numbers = {name: getattr(row, name) for name in (*_FLOATS, *_WHOLE)} | {"spread": row.samples_per_s_spread}
    finite = {name: value for name, value in numbers.items() if math.isfinite(value)}
    said = {
        "strategy": row.strategy,
        "is_baseline": row.is_baseline,
        "ranked": row.is_ranked,
        "not_ranked_why": row.not_ranked_why or None,
        **({"simulated": True} if row.is_simulated else {}),
        "parallel_lines": row.parallel_lines,
        "shares": row.share,
    }
    said |= {name: round(value) if name in _WHOLE else value for name, value in finite.items()}
    return said | ({"peak_how": row.peak_how} if "peak_bytes" in finite else {})
