"""Step time and throughput over the run, in words and as a table."""

from __future__ import annotations

import math

from meshscope.analysis.steps import Steps
from meshscope.samples import Floats
from meshscope.ui.panel import Help
from meshscope.ui.sheet import Sheet, sheet, whole

HELP = Help(
    "A bar per step (several share a column in a long run), from the journal of all ranks: a step lasts from the end "
    "of the step before it to its own, on the last rank. Below it the throughput of the same steps.",
    columns=(
        ("median", "ms, over steps past warm-up that were not profiled"),
        ("p95", "ms: 95 % of those steps are no longer"),
        ("first", "ms of the first step, its compiling included"),
        ("compiling", "before and within the first step, the slowest rank"),
        ("profiled", "▴ marks steps under the profiler; they are in no mean"),
        ("samples/s", "global batch over step time; drawn from the 5th percentile of all steps to the most"),
        ("tokens/s", "the same in tokens"),
        ("loss", "of the newest step, mean over ranks that tell it"),
        ("waits for data", "share of a step spent waiting for its batch"),
        ("profiled steps take", "how much longer, as a share of the median step"),
    ),
    states=(("first step has not ended", "what the run does until then is said in brackets"),),
    keys=(("space", "pause; ← → seek along these steps"),),
)

_NS = ("median_ns", "p95_ns", "spread_ns", "first_ns", "compile_ns", "profiled_median_ns")
_COUNTS = ("count", "planned", "measured", "profiled", "compilations", "recompilations")
_RATES = ("samples_per_s", "samples_per_s_spread", "tokens_per_s", "data_wait_frac", "loss_last",
          "profiled_slowdown_frac", "profiler_cost_frac")  # fmt: skip


def series(found: Steps, samples_per_s: Floats) -> Sheet:
    """A row per finished step; what is over all of them is in ``about``, named as in ``analyze --json``."""
    loss = found.loss.tolist() if len(found.loss) == len(found.number) else [math.nan] * len(found.number)
    rows = zip(
        found.number.tolist(), found.duration_ns.tolist(), found.is_profiled.tolist(), samples_per_s.tolist(), loss,
        strict=True,
    )  # fmt: skip
    about: dict[str, object] = {name: getattr(found, name) for name in _COUNTS}
    about |= {name: whole(getattr(found, name)) for name in _NS}
    about |= {name: getattr(found, name) for name in _RATES}
    return sheet(("step", "duration_ns", "is_profiled", "samples_per_s", "loss"), rows, about=about)
