"""A pipeline's stages in the text report: how much of a step each computes, receives beside no work, and neither."""

from __future__ import annotations

from meshscope.analysis.pipeline import Pipeline, Stage, pipeline
from meshscope.analysis.pipeline_words import pipeline_words, uneven_words
from meshscope.reports.columns import table, wrapped
from meshscope.run import Run
from meshscope.units import counted, milliseconds, percent, ratio

MOST_STAGES = 16


def pipeline_lines(run: Run) -> list[str]:
    """Nothing of a run that is no pipeline."""
    found = pipeline(run)
    if found is None:
        return []
    lines = wrapped(f"pipeline: {pipeline_words(found)}", hanging="  ")
    return lines + (_stages(found) if found.ranks else [])


def _stages(found: Pipeline) -> list[str]:
    rows = [_row(one) for one in found.ranks[:MOST_STAGES]]
    lines = table(("rank", "step ms", "computes", "receives", "rest"), rows, indent="    ")
    if len(found.ranks) > MOST_STAGES:
        lines.append(f"    … {counted(len(found.ranks) - MOST_STAGES, 'more stage')}")
    uneven = uneven_words(found)
    return lines + (wrapped(uneven, indent="    ", hanging="  ") if uneven else [])


def _row(one: Stage) -> tuple[str, ...]:
    parts = (percent(ratio(part, one.step_ns)) for part in (one.compute_ns, one.wait_ns, one.rest_ns))
    return (str(one.rank), milliseconds(one.step_ns), *parts)
