"""Short phrases that several panels use, always of the same shape."""

from __future__ import annotations

import math
from collections.abc import Sequence

from meshscope.analysis.progress import Progress
from meshscope.ui.panel import Fresh
from meshscope.units import NS_PER_S, UNKNOWN, counted, percent, ranges

RUNNING = ("launching", "importing", "compiling", "training", "warming profiler", "profiling", "stopping profiler",
           "ending", "attached")  # fmt: skip

_GLYPHS = {"waiting": ("○", "faint"), "done": ("✓", "good"), "failed": ("✗", "bad"), "lost": ("✗", "bad"),
           "stopped": ("■", "warn")}  # fmt: skip


def glyph(state: str) -> tuple[str, str]:
    """The sign of a state and its role."""
    return _GLYPHS.get(state, ("◐", "accent"))


def doing(progress: Progress) -> str:
    """What a strategy does now, in a few words."""
    return _uncounted(progress) if progress.is_uncounted else _counted(progress)


def _counted(progress: Progress) -> str:
    step = f"step {progress.step}/{progress.planned}" if progress.planned else f"step {progress.step}"
    match progress.state:
        case "training":
            return step
        case "profiling" | "warming profiler":
            return f"{step}, profiling"
        case "stopping profiler":
            return f"{step}, stopping the profiler…"
        case "launching" | "importing" | "compiling" | "ending":
            return f"{progress.state}…"
        case "done":
            return counted(progress.step, "step")
        case _:
            return progress.state


def _uncounted(progress: Progress) -> str:
    """Of a job that was attached to, whose steps nobody counts."""
    match progress.state:
        case "profiling" | "warming profiler":
            return "profiling…"
        case "stopping profiler":
            return "writes its trace…"
        case "done":
            return "detached"
        case _:
            return progress.state


def doing_briefly(progress: Progress) -> str:
    """``doing`` in at most twelve cells."""
    match progress.state:
        case "profiling" | "warming profiler":
            return "profiling…"
        case "stopping profiler":
            return "stops trace…"
        case _:
            return doing(progress)


def grouped(count: int) -> str:
    """A count with its thousands set apart: ``14 245``."""
    return f"{count:,}".replace(",", " ")


def found_word(findings: int) -> str:
    """``findings(2)``: the word for the key that leads to them."""
    return f"findings({findings})" if findings else "findings"


def steps_of(values: Sequence[int]) -> str:
    """``steps 40–41``, at most the last three ranges; "" for none."""
    if not values:
        return ""
    return f"step{'s' if len(set(values)) > 1 else ''} {ranges(values, most=3)}"


def clock_time(span_ns: float) -> str:
    """Minutes and seconds as a clock shows them: ``1:05``, ``1:00:07``."""
    seconds = max(int(span_ns // NS_PER_S), 0)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


def age(span_ns: float) -> str:
    """How long ago, coarse enough not to flicker."""
    seconds = int(span_ns // NS_PER_S)
    if seconds < 2:
        return "now"
    if seconds < 120:
        return f"{seconds} s ago"
    return f"{seconds // 60} min ago" if seconds < 7200 else f"{seconds // 3600} h ago"


def freshness(fresh: Fresh, now_unix_ns: int, width: int) -> str:
    """``steps 40–41 · 12 s ago · profiler costs 1.2 %``, in fewer words where ``width`` cells are too few."""
    full = " · ".join(_freshness(fresh, now_unix_ns, "profiler costs"))
    if len(full) <= width:
        return full
    words = _freshness(fresh, now_unix_ns, "cost")
    while len(words) > 1 and len(" · ".join(words)) > width:
        words.pop()
    return " · ".join(words)


def _freshness(fresh: Fresh, now_unix_ns: int, cost: str) -> list[str]:
    words = [fresh.of] if fresh.of else []
    if fresh.at_unix_ns is not None:
        words.append(age(now_unix_ns - fresh.at_unix_ns))
    if fresh.cost_frac is not None and not math.isnan(fresh.cost_frac):
        words.append(f"{cost} {percent(fresh.cost_frac)}")
    return words


def spread(half: float, mean: str, size: int, sign: str = "± ") -> str:
    """A spread as it stands beside its mean, with as many decimals, in ``size`` cells after a sign.

    Blank where it is not known.
    """
    if math.isnan(half):
        return " " * (size + len(sign))
    return f"{sign}{half:<{size}.{len(mean.partition('.')[2])}f}"


def times(value: float) -> str:
    """A factor with one decimal: ``3.4``."""
    return UNKNOWN if math.isnan(value) else f"{value:.1f}"


def whole_percent(fraction: float) -> str:
    return UNKNOWN if math.isnan(fraction) else f"{fraction * 100:.0f} %"
