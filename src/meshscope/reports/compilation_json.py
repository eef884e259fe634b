"""``compilation`` in ``analyze --json``: what was compiled when, what changed, and what it cost."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from meshscope.analysis.compilation import NOT_SAID, Compilation, Recompilation, compilation
from meshscope.analysis.traced_compilation import NO_SHAPES, traced_compilation
from meshscope.run import Run


def compilation_json(run: Run) -> tuple[dict[str, Any], tuple[tuple[str, str], ...]]:
    """From the journal; ``traced`` from traces alone, where no journal tells. No key where neither shows any."""
    found = compilation(run)
    if found.is_known:
        return {"compilation": _told(found)}, _unsaid(found)
    traced = traced_compilation(run)
    if traced:
        return {"compilation": {"traced": [asdict(one) for one in traced]}}, (("compilation", NO_SHAPES),)
    return {}, ()


def _told(found: Compilation) -> dict[str, Any]:
    return {
        "before_first_step_ns": round(found.before_ns),
        "first_step_ns": round(found.first_step_ns),
        "programs": found.programs,
        "from_cache": found.from_cache,
        "recompilations": [_recompilation(one) for one in found.again],
        "recompiling_steps": list(found.steps),
        "rank": found.rank if found.rank >= 0 else None,
        "cost_ns": found.cost_ns,
        "cost_frac": found.cost_frac,
        "training_ns": found.training_ns,
    }


def _recompilation(one: Recompilation) -> dict[str, Any]:
    return asdict(one) | {"ranks": list(one.ranks), "changed": list(one.changed), "reason": one.reason or None}


def _unsaid(found: Compilation) -> tuple[tuple[str, str], ...]:
    return (("compilation.changed", NOT_SAID),) if any(not one.why for one in found.again) else ()
