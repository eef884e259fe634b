"""Prediction beside measurement, as text."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from meshscope.advisor.against import Against, Side
from meshscope.reports.columns import table, wrapped
from meshscope.units import NS_PER_S, UNKNOWN, Unit, counted, duration, percent, printable, size, size_unit, time_unit


def against_text(found: Against) -> str:
    """A paragraph, then a table of each kind of term that is known."""
    lines = [*wrapped(_headline(found), indent=""), *wrapped(_basis(found), indent="")]
    lines += _section("of a profiled step", found.terms, _time_unit, share_of=found.measured.span_s)
    lines += _section("collectives, hidden or not", found.collectives, _time_unit)
    lines += _section("memory of the rank that has most", found.memory, _size_unit)
    lines += _worst(found)
    for reason in found.cannot_say:
        lines += wrapped(f"cannot say: {printable(reason)}", indent="", hanging="  ")
    return "\n".join(lines)


def _headline(found: Against) -> str:
    asked = found.asked
    what = f"{printable(found.name)} ({printable(asked.architecture.name)}, {_ranks(found)})"
    if found.step is None:
        return f"{what}: no step to compare"
    step, measured = found.step, found.measured
    off = found.error_frac
    said = f"{what}: {_s(step.value)} predicted ({_s(step.low)} to {_s(step.high)}), {_s(measured.step_s)} measured"
    said += f" ({_s(measured.low_s)} to {_s(measured.high_s)} in 90 of 100 of its {counted(measured.steps, 'step')})"
    where = "within" if found.is_inside else "outside"
    return f"{said}: {percent(abs(off))} too {'long' if off > 0 else 'short'}, {where} the prediction's interval"


def _ranks(found: Against) -> str:
    return f"{found.asked.devices} × {printable(found.cluster.device.name)}"


def _basis(found: Against) -> str:
    told = found.calibrated
    if not told.strategy:
        return "Calibrated on nothing: the cost tables as they are."
    who = f"{printable(told.strategy)} of {told.made_at} on {printable(told.machine)}"
    return f"Calibrated on {who}: {counted(told.steps, 'step')}."


def _s(seconds: float) -> str:
    return duration(seconds * NS_PER_S)


Units = Callable[[Sequence[float]], tuple[Unit, float]]


def _time_unit(values: Sequence[float]) -> tuple[Unit, float]:
    return time_unit([value * NS_PER_S for value in values]), NS_PER_S


def _size_unit(values: Sequence[float]) -> tuple[Unit, float]:
    return size_unit(values), 1.0


def _section(title: str, sides: Sequence[Side], unit_of: Units, *, share_of: float = math.nan) -> list[str]:
    if not sides:
        return []
    unit, scale = unit_of([value for side in sides for value in (side.predicted, side.measured)])
    is_counted = any(any(side.times) for side in sides)
    heading = [title, f"predicted {unit.name}", f"measured {unit.name}", f"off by {unit.name}"]
    heading += ["of the step"] if math.isfinite(share_of) else []
    heading += ["times"] if is_counted else []
    rows = [_row(side, unit, scale, share_of, is_counted=is_counted) for side in sides]
    return ["", *table(heading, rows, indent="")]


def _row(side: Side, unit: Unit, scale: float, share_of: float, *, is_counted: bool) -> list[str]:
    cells = [printable(side.name)]
    cells += [unit.figure(value * scale) for value in (side.predicted, side.measured)]
    cells.append(
        UNKNOWN if math.isnan(side.error) else f"{'+' if side.error > 0 else ''}{unit.figure(side.error * scale)}"
    )
    cells += [_signed(side.error / share_of)] if math.isfinite(share_of) else []
    cells += [f"{_times(side.times[0])}, {_times(side.times[1])}"] if is_counted else []
    return cells


def _times(value: float) -> str:
    return f"{value:.4g}" if value else UNKNOWN


def _signed(fraction: float) -> str:
    return UNKNOWN if math.isnan(fraction) else f"{'+' if fraction > 0 else ''}{percent(fraction)}"


def _worst(found: Against) -> list[str]:
    lines = []
    worst = found.worst
    if worst is not None and found.measured.span_s:
        share = percent(abs(worst.error) / found.measured.span_s)
        how = "too long" if worst.error > 0 else "too short"
        said = f"Most wrong: {worst.name}, {_s(abs(worst.error))} {how}, {share} of the profiled step."
        lines += ["", *wrapped(said, indent="")]
        added = found.measured.span_s / found.measured.step_s - 1 if found.measured.step_s else math.nan
        if added > 0.02:
            note = f"The profiler made those steps {percent(added)} longer than others, which the prediction is of."
            lines += wrapped(note, indent="")
    if math.isfinite(found.peak_error_frac) and found.peak is not None:
        off = found.peak_error_frac
        said = f"Peak: {size(found.peak.value)} predicted, {size(found.measured.peak_bytes)} measured"
        lines += wrapped(f"{said}: {_signed(off)} of the measured.", indent="")
    return lines
