"""The curves of a sweep in the text report: a table each."""

from __future__ import annotations

from collections.abc import Sequence

from meshscope.analysis.scaling import BATCH, Curve, Point, scaling
from meshscope.analysis.scaling_words import ONE_RUN, measured_by, titled
from meshscope.analysis.standing import Row
from meshscope.reports.columns import table, wrapped
from meshscope.run import Run
from meshscope.units import milliseconds, percent, rate

_HEADING = ("ranks", "batch", "ms/step", "samples/s", "±", "×")


def scaling_lines(runs: Sequence[Run], rows: Sequence[Row]) -> list[str]:
    """Nothing where nothing was swept."""
    curves = scaling(runs, rows)
    lines = [line for curve in curves for line in ("", *_curve(curve))]
    return [*lines, *wrapped(ONE_RUN, indent="")] if curves else []


def _curve(curve: Curve) -> list[str]:
    has_efficiency = curve.kind != BATCH
    heading = (*_HEADING, "efficiency") if has_efficiency else _HEADING
    lines = wrapped(f"{titled(curve)} ({measured_by(curve)}):", indent="")
    lines += table(heading, [_row(point, has_efficiency=has_efficiency) for point in curve.points])
    for name, why in curve.left_out:
        lines += wrapped(f"without {name}: {why}", hanging="  ")
    return lines


def _row(point: Point, *, has_efficiency: bool) -> tuple[str, ...]:
    cells = (
        str(point.ranks),
        str(point.global_batch),
        milliseconds(point.median_ns),
        rate(point.samples_per_s),
        rate(point.samples_per_s_spread),
        f"{point.speedup:.2f}",
    )
    return (*cells, percent(point.efficiency_frac)) if has_efficiency else cells
