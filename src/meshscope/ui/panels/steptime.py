"""Step time and throughput over the run, with the profiled steps marked."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from textual.strip import Strip

from meshscope.analysis.steps import Steps, steps
from meshscope.ui.marks.cells import Line, Piece, ends, strips
from meshscope.ui.marks.chart import Columns, area, columns, marks
from meshscope.ui.marks.sparkline import sparkline
from meshscope.ui.panel import Frame, Fresh, Panel, note
from meshscope.ui.scene import Scene
from meshscope.units import NS_PER_MS, NS_PER_S, duration, milliseconds, percent, rate

_GUTTER = 6


@dataclass(frozen=True, eq=False)
class Pace:
    """``samples_per_s`` is each step's own throughput, NaN for profiled ones, in the order of ``steps.number``."""

    steps: Steps = field(default_factory=Steps)
    samples_per_s: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    fresh: Fresh = Fresh()
    phase: str = ""


def question(scene: Scene) -> Pace:
    """The pace of the run that is looked at."""
    run = scene.run
    if run is None:
        return Pace()
    found = steps(run)
    seconds = found.duration_ns / NS_PER_S
    batch = float(run.experiment.global_batch) or math.nan
    throughput = np.divide(batch, seconds, out=np.full(len(seconds), math.nan), where=seconds > 0)
    of = f"{found.measured} of {found.count} steps measured" if found.count else ""
    fresh = Fresh(of=of, cost_frac=found.profiler_cost_frac)
    return Pace(found, np.where(found.is_profiled, math.nan, throughput), fresh, run.phases[-1].phase if run.phases else "")


def draw(pace: Pace, frame: Frame) -> list[Strip]:
    found = pace.steps
    if not len(found.number):
        return note(_empty(pace), frame)
    width = max(frame.width - _GUTTER, 1)
    given = columns(found.number, found.duration_ns / NS_PER_MS, found.is_profiled, planned=found.planned, width=width)
    room = max(frame.height - 5, 1)
    lines: list[Line] = [_summary(found, frame)]
    chart = area(given, room, frame.look, top=_top(found, given), label=_label, gutter=_GUTTER, role="compute",
                 marked_role="profiled")  # fmt: skip
    lines += chart
    lines.append(_axis(given, found))
    lines.append(_throughput(pace, width, frame))
    lines.append(_under(found, frame))
    return strips(lines, frame.width, frame.height, frame.look)


def _summary(found: Steps, frame: Frame) -> list[Piece]:
    figures: list[Piece] = [
        (f" {milliseconds(found.median_ns)}", "strong"),
        (" ms median  ", "quiet"),
        (milliseconds(found.p95_ns), "text"),
        (" p95  ", "quiet"),
        (milliseconds(found.first_ns), "text"),
        (" first", "quiet"),
    ]
    compiled: list[Piece] = []
    if not math.isnan(found.compile_ns):
        compiled = [(duration(found.compile_ns), "text"), (" compiling", "quiet")]
    return ends(figures, compiled, frame.width) if frame.width >= 60 else figures


def _top(found: Steps, given: Columns) -> float:
    """Just above the slower ordinary steps: the first step and other giants end in an arrow instead."""
    ordinary = found.p95_ns / NS_PER_MS
    tallest = float(np.nanmax(given.value)) if not np.isnan(given.value).all() else 1.0
    wanted = tallest if math.isnan(ordinary) else min(tallest, ordinary * 1.5)
    return _round_up(max(wanted, 1e-3))


def _round_up(value: float) -> float:
    """The next of 1, 1.5, 2, 3, 4, 5, 6, 8 times a power of ten, so that the axis seldom moves."""
    power = 10.0 ** math.floor(math.log10(value))
    return next((step * power for step in (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0) if value <= step * power), 10 * power)


def _label(value: float) -> str:
    return f"{value:g}"


def _axis(given: Columns, found: Steps) -> list[Piece]:
    if found.profiled:
        return marks(given, _GUTTER, "profiled")
    return []


def _throughput(pace: Pace, width: int, frame: Frame) -> list[Piece]:
    """Samples per second of every step, from its slowest to its fastest ordinary one."""
    known = pace.samples_per_s[~np.isnan(pace.samples_per_s)]
    if not len(known):
        return []
    figure = f" {rate(pace.steps.samples_per_s)} samples/s"
    room = max(width - len(figure), 8)
    high = float(np.quantile(known, 0.98))
    line = sparkline(pace.samples_per_s, room, frame.look, low=0.0, high=high, role="gauge")
    return [(" " * _GUTTER, "text"), *line, (figure, "text")]


def _under(found: Steps, frame: Frame) -> list[Piece]:
    pieces: list[Piece] = [(" " * _GUTTER, "text"), (f"{rate(found.tokens_per_s)}", "text"), (" tokens/s", "quiet")]
    if not math.isnan(found.loss_last):
        pieces += [("  loss ", "quiet"), (f"{found.loss_last:.3f}", "text")]
    if found.profiled and frame.width >= 60:
        pieces += [("  ▴ profiled, ", "profiled"), (f"{percent(found.profiled_slowdown_frac)} slower", "quiet")]
    if not math.isnan(found.data_wait_frac) and frame.width >= 60:
        pieces += [("  waits for data ", "quiet"), (percent(found.data_wait_frac), "text")]
    return pieces


def _empty(pace: Pace) -> str:
    if pace.phase:
        return f"The first step has not ended yet ({pace.phase}). A bar for each step appears here."
    return "A bar for each step appears here, with the profiled ones marked."


PANEL = Panel(
    name="steptime",
    title="step time, ms",
    number=4,
    promise="A bar for each step, with the profiled ones marked, and the throughput below.",
    question=question,
    draw=draw,
    fresh=lambda pace: pace.fresh,
)
