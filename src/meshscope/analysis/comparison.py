"""Strategies side by side: one row each, and the verdict in one sentence with its numbers."""

from __future__ import annotations

from dataclasses import dataclass

from meshscope.analysis.breakdown import Breakdown
from meshscope.analysis.progress import Progress
from meshscope.run import Run


@dataclass(frozen=True)
class Row:
    """One strategy. Floats are NaN where not known; shares are of the mean complete step over all ranks.

    ``share`` maps compute, hidden, exposed, copy, idle to fractions of one step's span; compute here is compute
    that hides no collective, so that the five add up to 1. ``speedup`` is throughput over the
    framework's single-device run, ``efficiency_frac`` is that over the ranks; ``is_ranked`` is false for a run on
    another kind of device than the others (``not_ranked_why`` says so), for a baseline, and without throughput.
    """

    strategy: str
    title: str
    framework: str
    device_kind: str
    is_baseline: bool
    progress: Progress
    samples_per_s: float
    samples_per_s_spread: float
    tokens_per_s: float
    median_ns: float
    spread_ns: float
    speedup: float
    efficiency_frac: float
    share: dict[str, float]
    per_step: Breakdown | None
    exposed_frac: float
    profiled_steps: int
    profiled_ranks: int
    dropped_events: int
    peak_bytes: float
    peak_how: str
    compile_ns: float
    parallel_lines: int
    profiler_cost_frac: float
    is_ranked: bool = True
    not_ranked_why: str = ""


@dataclass(frozen=True)
class Comparison:
    """Rows in the order of the runs. ``leader`` is a strategy name, "" while fewer than one can be ranked.

    ``verdict`` is one sentence with numbers; ``footnotes`` say what the numbers stand on (ranks sharing cores, …).
    """

    rows: tuple[Row, ...]
    leader: str
    verdict: str
    footnotes: tuple[str, ...]


def comparison(runs: tuple[Run, ...]) -> Comparison:
    raise NotImplementedError
