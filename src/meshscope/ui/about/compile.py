"""What compiled again, in words and as a table."""

from __future__ import annotations

from collections.abc import Sequence

from meshscope.analysis.compilation import STAGES, Recompilation
from meshscope.analysis.traced_compilation import TracedCompilation
from meshscope.ui.panel import Help
from meshscope.ui.sheet import Sheet, sheet
from meshscope.units import ranges

HELP = Help(
    "Functions that were compiled again after the first time, by step; all ranks wait for the slowest. Of traces: "
    "what each step compiled.",
    columns=(
        ("step", "the step that it held up"),
        ("took", "of the rank that took longest"),
        ("function", "what was compiled"),
        ("rank", "who compiled it; all: every rank, or one process for all of them"),
        ("what changed", "the input that was not as before, else the framework's own reason"),
        ("of it", "tracing, lowering and compiling, where the framework tells them apart"),
    ),
    states=(
        ("in warm-up", "in the first two steps, where programs still settle: not counted as a problem"),
        ("not in a trace", "only a run that meshscope starts records the shapes"),
    ),
)

_COLUMNS = ("step", "function", "ranks", "count", "duration_ns", *(f"{stage}_ns" for stage in STAGES), "changed",
            "reason", "is_from_cache", "is_warm_up")  # fmt: skip


def compilations(again: Sequence[Recompilation], traced: Sequence[TracedCompilation]) -> Sheet:
    """A row per function and step that compiled again; of traces alone one per rank and step."""
    rows: list[list[object]] = [
        [one.step, one.function, ranges(one.ranks), 1, one.duration_ns, *map(one.stage_ns.get, STAGES),
         "\n".join(one.changed) or None, one.reason or None, one.is_from_cache, one.is_warm_up]
        for one in again
    ]  # fmt: skip
    rows += [
        [one.step if one.step >= 0 else None, None, str(one.rank), one.count, one.duration_ns, *[None] * 7]
        for one in traced
    ]
    return sheet(_COLUMNS, rows)
