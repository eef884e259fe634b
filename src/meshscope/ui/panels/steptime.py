"""Step time and throughput over the run, with the profiled steps marked."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from textual.strip import Strip

from meshscope.analysis.steps import Steps, steps
from meshscope.run import Run
from meshscope.ui.about import steptime as about
from meshscope.ui.marks.axis import across
from meshscope.ui.marks.cells import Line, Piece, cells, clip, ends, right, strips
from meshscope.ui.marks.chart import Columns, area, columns, marks
from meshscope.ui.marks.cited import Cited
from meshscope.ui.marks.dots import dotted
from meshscope.ui.marks.sparkline import skyline
from meshscope.ui.panel import UNSTATED, Frame, Fresh, Panel, note
from meshscope.ui.scene import Scene
from meshscope.ui.words import spread
from meshscope.units import NS_PER_MS, NS_PER_S, counted, duration, milliseconds, percent, rate

_UNCOUNTED = "uncounted"
_GUTTER = 6
_THROUGHPUT = " samples/s of the same steps"
_WITH_AXIS, _ROOMY, _TALL_LOSS = 10, 18, 3
"""From how many lines on steps are numbered, and the loss is drawn in so many of them."""


@dataclass(frozen=True, eq=False)
class Pace:
    """``samples_per_s`` is each step's own throughput, NaN for profiled ones, in the order of ``steps.number``."""

    steps: Steps = field(default_factory=Steps)
    samples_per_s: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    fresh: Fresh = UNSTATED
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
    of = f"{found.measured} of {counted(found.count, 'step')} measured" if found.count else ""
    of = f"{counted(found.count, 'step')}, predicted" if found.count and run.is_simulated else of
    fresh = Fresh(of=of, cost_frac=found.profiler_cost_frac)
    return Pace(found, np.where(found.is_profiled, math.nan, throughput), fresh, _phase(run))


def draw(pace: Pace, frame: Frame) -> list[Strip]:
    found = pace.steps
    if not len(found.number):
        return note(_empty(pace), frame)
    width = max(frame.width - _GUTTER, 1)
    given = columns(found.number, found.duration_ns / NS_PER_MS, found.is_profiled, planned=found.planned, width=width)
    tall = max(frame.height // 5, 1)
    loss = _loss(found, width, frame) if frame.height >= _ROOMY else []
    axis: list[Line] = [_across(found, width)] if frame.height >= _WITH_AXIS else []
    throughput = _throughput(pace, width, tall, frame)
    if throughput and frame.height >= _WITH_AXIS:
        throughput.insert(0, [(clip(_THROUGHPUT, frame.width), "quiet")])
    room = max(frame.height - 3 - len(axis) - max(len(throughput), tall) - len(loss), 1)
    lines: list[Line] = [_summary(found, frame)]
    chart = area(given, room, frame.look, top=_top(found, given), label=_label, gutter=_GUTTER, role="gauge",
                 marked_role="profiled")  # fmt: skip
    lines += chart
    lines += [_axis(given, found), *axis]
    lines += throughput
    lines += loss
    lines.append(_under(found, frame))
    return strips(lines, frame.width, frame.height, frame.look)


def _across(found: Steps, width: int) -> Line:
    total = max(found.planned, int(found.number.max()) + 1)
    return across(total, width, "step", gutter=_GUTTER, role="faint")


def _loss(found: Steps, width: int, frame: Frame) -> list[Line]:
    """The loss of each step below its column, between its least and its most; nothing where it is not told."""
    given = columns(found.number, found.loss, found.is_profiled, planned=found.planned, width=2 * width).value
    known = given[np.isfinite(given)]
    if not len(known):
        return []
    low, high = float(known.min()), float(known.max())
    lines = dotted(
        np.where(np.isfinite(given), given, math.nan), width, frame.look, low=low, high=high, height=_TALL_LOSS
    )
    labels = [f"{high:.4g}", "loss", f"{low:.4g}"]
    return [[(right(label, _GUTTER - 1) + " ", "quiet"), *line] for label, line in zip(labels, lines, strict=True)]


def _summary(found: Steps, frame: Frame) -> list[Piece]:
    figures = _figures(found, _spread(found, frame))
    if cells(figures) > frame.width:
        figures = _figures(found, "")
    compiled: list[Piece] = []
    if found.compile_ns > 0:
        compiled = [(duration(found.compile_ns), Cited("text", "compile")), (" compiling", "quiet")]
    mark: list[Piece] = [("▴", "profiled"), (" profiled", "quiet")] if found.profiled else []
    last = [*compiled, *([("   ", "text")] if compiled and mark else []), *mark]
    for tail in (last, compiled or mark):
        if frame.width >= 60 and cells(figures) + 2 + cells(tail) <= frame.width:
            return ends(figures, tail, frame.width)
    return figures


def _figures(found: Steps, spread_ms: str) -> list[Piece]:
    return [
        (" ", "text"),
        (milliseconds(found.median_ns), Cited("strong", "step_time")),
        (spread_ms, "quiet"),
        (" ms median  ", "quiet"),
        (milliseconds(found.p95_ns), Cited("text", "step_time.p95")),
        (" p95  ", "quiet"),
        (milliseconds(found.first_ns), Cited("text", "step_time.first")),
        (" first", "quiet"),
    ]


def _spread(found: Steps, frame: Frame) -> str:
    if math.isnan(found.spread_ns):
        return ""
    sign = "+-" if frame.look.is_ascii else "±"
    return f" {spread(found.spread_ns / NS_PER_MS, milliseconds(found.median_ns), 0, sign)}"


def _top(found: Steps, given: Columns) -> float:
    """Just above the slower ordinary steps: the first step and other giants end in an arrow instead."""
    ordinary = found.p95_ns / NS_PER_MS
    tallest = float(np.nanmax(given.value)) if not np.isnan(given.value).all() else 1.0
    wanted = tallest if math.isnan(ordinary) else min(tallest, ordinary * 1.5)
    return _round_up(max(wanted, 1e-3))


def _round_up(value: float) -> float:
    """The next of 1, 1.5, 2, 3, 4, 5, 6, 8 times a power of ten, so that the axis seldom moves."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(
        (step * power for step in (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0) if value <= step * power), 10 * power
    )


def _label(value: float) -> str:
    return f"{value:g}"


def _axis(given: Columns, found: Steps) -> list[Piece]:
    if found.profiled:
        return marks(given, _GUTTER, "profiled")
    return []


def _throughput(pace: Pace, width: int, tall: int, frame: Frame) -> list[Line]:
    """The throughput of the steps in each column of the chart above, between its least and its most."""
    given = columns(
        pace.steps.number, pace.samples_per_s, pace.steps.is_profiled, planned=pace.steps.planned, width=width
    )
    known = given.value[~np.isnan(given.value)]
    if not len(known):
        return []
    # The first steps are slow by nature; the scale is for those that follow.
    # By steps and not by columns, so that it does not hang on how wide the chart is.
    low, high = float(np.nanquantile(pace.samples_per_s, 0.05)), float(known.max())
    so_far = given.value[: int(np.flatnonzero(~np.isnan(given.value))[-1]) + 1]
    bars = skyline(so_far, width, frame.look, low=low, high=high, height=tall)
    marked = {0: high, tall - 1: low} if tall > 1 else {}
    labels = [right(_brief(marked[at]) if at in marked else "", _GUTTER - 1) + " " for at in range(tall)]
    return [[(label, "quiet"), *bar] for label, bar in zip(labels, bars, strict=True)]


def _brief(value: float) -> str:
    """A rate in at most five cells."""
    return rate(value) if value < 9999.5 else f"{value / 1000:.0f}k" if value < 999_500 else f"{value / 1e6:.3g}M"


def _under(found: Steps, frame: Frame) -> list[Piece]:
    figures: list[tuple[str, str, str]] = [
        ("", f"{rate(found.samples_per_s)} samples/s", "throughput"),
    ]
    if not math.isnan(found.tokens_per_s):
        figures.append(("", f"{rate(found.tokens_per_s)} tokens/s", "tokens_per_s"))
    if not math.isnan(found.loss_last):
        figures.append(("loss ", f"{found.loss_last:.3f}", "loss"))
    if not math.isnan(found.data_wait_frac):
        figures.append(("waits for data ", percent(found.data_wait_frac), "data_wait"))
    if found.profiled and not math.isnan(found.profiled_slowdown_frac):
        longer = f"{percent(found.profiled_slowdown_frac)} longer"
        figures.append(("profiled steps take ", longer, "profiled_slowdown"))
    pieces: list[Piece] = [(" ", "text")]
    lost = f"loss not finite since step {found.loss_lost_step}  "
    if found.loss_lost_step >= 0 and cells(pieces) + len(lost) <= frame.width:
        pieces.append((lost, "text"))
    for words, figure, number in figures:
        if cells(pieces) + len(words) + len(figure) <= frame.width:
            pieces += [(words, "quiet"), (figure, Cited("text", number)), ("  ", "text")]
    return pieces


def _phase(run: Run) -> str:
    if run.experiment.is_attached:
        return _UNCOUNTED
    return run.phases[-1].phase if run.phases else ""


def _empty(pace: Pace) -> str:
    if pace.phase == _UNCOUNTED:
        return (
            "Nobody counts the steps of a job that is attached to. Those in its traces are split in the panels beside."
        )
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
    help=about.HELP,
    data=lambda pace: about.series(pace.steps, pace.samples_per_s),
)
