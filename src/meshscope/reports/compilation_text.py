"""Compilation in the text report: what it took before training got going, and the steps that compiled again."""

from __future__ import annotations

from meshscope.analysis.compilation import Compilation, Recompilation, compilation
from meshscope.analysis.compilation_words import reading, stages, traced_reading, who, why_words
from meshscope.analysis.traced_compilation import traced_compilation
from meshscope.reports.columns import wrapped
from meshscope.run import Run
from meshscope.units import counted, duration

MOST = 5


def compilation_lines(run: Run) -> list[str]:
    """Nothing where nothing compiled."""
    found = compilation(run)
    if found.is_known:
        return [*wrapped(f"compilation: {reading(found)}", hanging="  "), *_again(run, found)]
    traced = traced_compilation(run)
    return wrapped(f"compilation: {traced_reading(traced)}", hanging="  ") if traced else []


def _again(run: Run, found: Compilation) -> list[str]:
    """The ones past warm-up that took longest, in the order of their steps."""
    longest = sorted(found.storm, key=lambda one: -one.duration_ns)[:MOST]
    lines = [
        line
        for one in sorted(longest, key=lambda one: (one.step, one.ranks))
        for line in wrapped(_line(run, one), indent="    ", hanging="  ")
    ]
    rest = len(found.storm) - len(longest)
    return [*lines, f"    … {counted(rest, 'shorter recompilation')}"] if rest else lines


def _line(run: Run, one: Recompilation) -> str:
    """``step 5, all ranks: train_step 412 ms (trace 5.0 ms, compile 407 ms): tokens int32[8,128] → int32[7,128]``."""
    ranks = who(run, one)
    of = "" if max(run.experiment.ranks, 1) == 1 else f", {'all ranks' if ranks == 'all' else f'rank {ranks}'}"
    parts = f" ({stages(one)})" if stages(one) else ""
    return f"step {one.step}{of}: {one.function} {duration(one.duration_ns)}{parts}: {why_words(one)}"
