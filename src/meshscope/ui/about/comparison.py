"""The strategies side by side, in words and as a table."""

from __future__ import annotations

from meshscope.analysis.comparison import Comparison, Row
from meshscope.ui.panel import Help
from meshscope.ui.sheet import Sheet, sheet, whole

HELP = Help(
    "One line per strategy. Times and throughput come from steps that no profiler touched, past warm-up; the bar and "
    "exposed come from the profiled ones.",
    columns=(
        ("strategy", "▸ looked at · ✓ done · ◐ running · ○ waiting · ✗ failed · ■ stopped · † not ranked, see below"),
        ("samples/s", "throughput over all ranks, ± half the interquartile range"),
        ("ms/step", "median step time, ± half the interquartile range"),
        ("×1", "throughput over that of the same framework on one device"),
        ("eff", "×1 divided by the number of ranks"),
        ("where a step goes", "the mean profiled step, mean over ranks; the five shares add up to one step "
         "(where it goes, step split: the same in less room)"),
        ("exposed", "communication beside no compute, as a share of that step"),
        ("peak/rank", "most memory that any one rank held"),
        ("compile", "compiling before and within the first step, the slowest rank"),
        ("profiler", "time that profiling added, as a share of the training time"),
        ("lines", "lines of the script that make it parallel"),
    ),
    states=(
        ("–", "not known (yet): no such step, or nothing recorded it"),
        ("not profiled", "no trace of a step, so no bar"),
    ),
    keys=(("↑ ↓", "look at another strategy"),),
)  # fmt: skip

_COLUMNS = (
    "strategy", "framework", "state", "ranked", "not_ranked_why", "is_baseline", "samples_per_s",
    "samples_per_s_spread", "tokens_per_s", "median_ns", "spread_ns", "speedup", "efficiency_frac", "exposed_frac",
    "share_compute_frac", "share_hidden_frac", "share_exposed_frac", "share_copy_frac", "share_idle_frac",
    "peak_bytes", "peak_how", "compile_ns", "profiler_cost_frac", "parallel_lines", "measured_steps", "profiled_steps",
)  # fmt: skip
_SHARES = ("compute", "hidden", "exposed", "copy", "idle")


def strategies(found: Comparison, order: tuple[str, ...]) -> Sheet:
    """A row per strategy in the order of the screen; of one that has not started its name and state only."""
    by_name = {row.strategy: row for row in found.rows}
    rows = [_row(by_name[name]) if name in by_name else _waiting(name) for name in order]
    about = {"leader": found.leader or None, "verdict": found.verdict or None}
    return sheet(_COLUMNS, rows, about=about)


def _waiting(name: str) -> list[object]:
    return [name, None, "waiting", *[None] * (len(_COLUMNS) - 3)]


def _row(row: Row) -> list[object]:
    return [
        row.strategy, row.framework, row.progress.state, row.is_ranked, row.not_ranked_why or None, row.is_baseline,
        row.samples_per_s, row.samples_per_s_spread, row.tokens_per_s, whole(row.median_ns), whole(row.spread_ns),
        row.speedup, row.efficiency_frac, row.exposed_frac, *(row.share.get(name) for name in _SHARES),
        whole(row.peak_bytes), row.peak_how or None, whole(row.compile_ns), row.profiler_cost_frac,
        row.parallel_lines or None, row.measured_steps, row.profiled_steps,
    ]  # fmt: skip
