"""Prediction beside measurement: each term as two bars under one scale, and the one that is most off named first."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from meshscope.advisor.against import Against, Side
from meshscope.ui.look import Look
from meshscope.ui.marks.bars import length
from meshscope.ui.marks.cells import Line, Piece, left, right, wrapped
from meshscope.units import NS_PER_S, UNKNOWN, counted, duration, percent, printable, ratio, size

_NAME, _FIGURE = 16, 10
_LEAST_BAR = 4
_INKS = {"compute": "compute", "idle": "idle"}
_MOST = 6


def beside(found: Against, width: int, look: Look) -> list[Line]:
    """All there is to say, in as many lines as it takes."""
    lines = [*_text(_headline(found), width, "strong"), *_worst(found, width), *_text(_basis(found), width, "quiet")]
    lines += _section("of a profiled step", found.terms, width, look, is_time=True)
    lines += _section("collectives, hidden or not", found.collectives, width, look, is_time=True)
    lines += _section("memory of the rank that has most", _remembered(found), width, look, is_time=False)
    untold = [line for why in found.cannot_say for line in _text(f"cannot say {why}", width, "warn")]
    return lines + ([[], *untold] if untold else [])


def _headline(found: Against) -> str:
    step, measured = found.step, found.measured
    if step is None:
        return f"{found.name}: there is no step to set the prediction beside."
    off = found.error_frac
    said = f"{found.name}: {_s(step.value)} predicted ({_s(step.low)} to {_s(step.high)}), {_s(measured.step_s)} "
    said += (
        f"measured ({_s(measured.low_s)} to {_s(measured.high_s)} in 90 of 100 of {counted(measured.steps, 'step')})"
    )
    where = "within" if found.is_inside else "outside"
    return f"{said}: {percent(abs(off))} too {'long' if off > 0 else 'short'}, {where} the prediction's interval."


def _worst(found: Against, width: int) -> list[Line]:
    worst = found.worst
    if worst is None:
        return []
    way = "too much" if worst.error > 0 else "too little"
    share = percent(abs(ratio(worst.error, found.measured.span_s)))
    said = f"Most off: {worst.name}, {_s(abs(worst.error))} {way} ({share} of the profiled step)."
    return _text(said, width, "warn")


def _basis(found: Against) -> str:
    told = found.calibrated
    if not told.strategy:
        return "Calibrated on nothing: the cost tables as they are."
    return f"Calibrated on {told.strategy} of {told.made_at} on {told.machine}: {counted(told.steps, 'step')}."


def _remembered(found: Against) -> tuple[Side, ...]:
    peak = found.peak
    known = peak is not None and math.isfinite(found.measured.peak_bytes) and found.measured.peak_bytes > 0
    return (*found.memory, *([Side("peak", peak.value, found.measured.peak_bytes)] if known and peak else []))


def _section(title: str, sides: Sequence[Side], width: int, look: Look, *, is_time: bool) -> list[Line]:
    if not sides:
        return []
    known = [value for side in sides for value in (side.predicted, side.measured) if not math.isnan(value)]
    most = max(known, default=0.0)
    head = f"{left(title, max(width - 2 * _FIGURE, _NAME))}{right('', _FIGURE)}{right('off by', _FIGURE)}"
    return [
        [],
        [(head, "quiet")],
        *(line for side in sides for line in _pair(side, most, width, look, is_time=is_time)),
    ]


def _pair(side: Side, most: float, width: int, look: Look, *, is_time: bool) -> list[Line]:
    """The prediction above, the measurement below."""
    bar = max(width - _NAME - 11 - 2 * _FIGURE, _LEAST_BAR)
    ink = _INKS.get(side.name, "exposed" if is_time else "activations")
    write = _s if is_time else size
    off = UNKNOWN if math.isnan(side.error) else f"{'+' if side.error > 0 else '−'}{write(abs(side.error))}"
    role = "quiet" if math.isnan(side.error) else "warn" if abs(ratio(side.error, most)) > 0.1 else "text"
    bars = [
        length(ratio(value, most), bar, role_of, look)
        for value, role_of in ((side.predicted, "quiet"), (side.measured, ink))
    ]
    first = _row(left(printable(side.name), _NAME), "predicted", side.predicted, bars[0], write)
    second = _row(" " * _NAME, "measured", side.measured, bars[1], write)
    return [first, [*second, (right(off, _FIGURE), role)]]


def _row(name: str, which: str, value: float, bar: Line, write: Callable[[float], str]) -> list[Piece]:
    figure = UNKNOWN if math.isnan(value) else write(value)
    return [(name, "strong"), (f" {which:<9} ", "quiet"), *bar, (right(figure, _FIGURE), "text")]


def _s(seconds: float) -> str:
    return duration(seconds * NS_PER_S)


def _text(text: str, width: int, role: str) -> list[Line]:
    return [[(line, role)] for line in wrapped(printable(text), max(width, 1), _MOST)]
