"""A against B: the verdict on the step time, what else changed, and how sure each of it is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from meshscope.analysis import likeness
from meshscope.analysis.difference import BETWEEN_LOG, CONFIDENCE, Estimate, Side, sides, step_time, waiting
from meshscope.analysis.figures import PARTS, Figures
from meshscope.analysis.noise import t_quantile
from meshscope.analysis.sameness import is_one
from meshscope.analysis.simulation import predicted
from meshscope.analysis.work_changes import WorkChange, names_differ, work_changes
from meshscope.units import counted, milliseconds

FASTER, SLOWER, SAME, UNSURE = "faster", "slower", "no difference", "cannot say"
TWICE = "the same recording twice"
USEFUL_FRAC = 0.5
FEWEST_PROFILED = 3
_SHOWN_FRAC = 0.0005
"""What is less is 0.0 % as it is written."""

_SCATTER = "profiled steps scatter too much"
_SAME_BYTES = {"exact": 0.005, "compiler": 0.005, "measured": 0.02, "derived": 0.05}


@dataclass(frozen=True)
class Quantity:
    """``metric`` of a step, with its unit (``ns``, ``per_s``, ``bytes``); NaN where not known.

    ``change``, ``low`` and ``high`` are fractions of ``a``. ``verdict``: more, less, no difference or cannot say
    (``why``).
    """

    metric: str
    unit: str
    a: float
    b: float
    change: float
    low: float
    high: float
    verdict: str
    why: str = ""


@dataclass(frozen=True)
class Change:
    """One pair. ``verdict``: faster, slower, no difference or cannot say; ``why`` in words, with what it rests on.

    ``differs`` lists options, versions and machines that are not the same on both sides, ``basis`` what the figures
    rest on. ``is_same``: both sides are one recording, so whatever it holds did not change.
    """

    strategy: str
    a_title: str
    b_title: str
    verdict: str
    why: str
    quantities: tuple[Quantity, ...]
    works: tuple[WorkChange, ...]
    profiled_steps: tuple[int, int]
    differs: tuple[str, ...]
    basis: tuple[str, ...]
    is_same: bool = False

    @property
    def title(self) -> str:
        """The strategy, or both names where they differ."""
        both = self.a_title if self.a_title == self.b_title else f"{self.a_title} → {self.b_title}"
        return self.strategy or both

    @property
    def sentence(self) -> str:
        """The verdict as one sentence."""
        if self.verdict == UNSURE:
            return f"{self.title}: cannot say whether B is faster or slower: {self.why}."
        return f"{self.title}: {'' if self.verdict == SAME else 'B is '}{self.verdict}: {self.why}."


def change(a: Sequence[Figures], b: Sequence[Figures]) -> Change:
    """Of one strategy or trace; several Figures on a side are repeats of the same thing."""
    before, after, is_quiet = sides(a, b)
    found = judgement(a, b)
    told = Change(
        strategy=a[0].strategy if a[0].strategy == b[0].strategy else "",
        a_title=a[0].title,
        b_title=b[0].title,
        verdict=found.verdict,
        why=found.why,
        quantities=_quantities(a, b, found, _refusal(a, b) or _unmeasured(a, b)),
        works=work_changes(a, b),
        profiled_steps=(_profiled(a), _profiled(b)),
        differs=likeness.changed(a, b),
        basis=(*(_basis(before, after, is_quiet=is_quiet) if found.step is not None else ()), *names_differ(a, b)),
    )
    return _unchanged(told) if is_one(a, b) else told


def _unchanged(told: Change) -> Change:
    """Of one recording twice: nothing changed, whatever its steps scatter and however few there are."""
    quantities = tuple(replace(found, change=0.0, low=0.0, high=0.0, verdict=SAME, why="") for found in told.quantities)
    works = tuple(replace(work, how="") for work in told.works)
    return replace(told, verdict=SAME, why=TWICE, quantities=quantities, works=works, basis=(), is_same=True)


@dataclass(frozen=True)
class Judgement:
    """``verdict``: faster, slower, no difference or cannot say of B; why, and the step time that it rests on.

    ``step`` is None where nothing can be said of the step time. ``is_crowded``: other programs used the cores.
    """

    step: Estimate | None
    verdict: str
    why: str
    is_crowded: bool = False


def judgement(a: Sequence[Figures], b: Sequence[Figures], *, called: tuple[str, str] = ("A", "B")) -> Judgement:
    """The verdict on the step time alone; ``called`` is what the sides are called where the reason names one."""
    before, after, _ = sides(a, b)
    if not (why := _refusal(a, b)) and _are_predicted(a, b):
        return _of_predictions(a, b)
    why = why or likeness.unsure(before, after, called=called)
    return Judgement(None, UNSURE, why) if why else _judged(before, after, called)


def _of_predictions(a: Sequence[Figures], b: Sequence[Figures]) -> Judgement:
    """By the intervals of the predictions: apart, or nobody can say. No step was measured that could scatter."""
    old, new = (_median([ns for run in side for ns in run.step_ns]) for side in (a, b))
    (old_low, old_high), (new_low, new_high) = (_reach(side) for side in (a, b))
    if not old_low or not new_low:
        return Judgement(None, UNSURE, "both are simulated, and how far off a prediction may be is not told")
    intervals = f"{predicted(old_low, old_high)} and {predicted(new_low, new_high)}"
    step = Estimate(old, new, new / old - 1, math.nan, math.nan)
    if new_low <= old_high and old_low <= new_high:
        return Judgement(step, UNSURE, f"both are simulated, and what is predicted overlaps: {intervals}")
    said = f"a step is predicted {_longer(step.change)} ({intervals}, 90 % each; nothing was measured)"
    return Judgement(step, SLOWER if new > old else FASTER, said)


def _unmeasured(a: Sequence[Figures], b: Sequence[Figures]) -> str:
    """Why nothing but the step time of two predictions can be set against each other; "" where they were measured."""
    return "both are simulated, and the prediction has no interval of it" if _are_predicted(a, b) else ""


def _are_predicted(a: Sequence[Figures], b: Sequence[Figures]) -> bool:
    return all(run.simulated_by for run in (*a, *b))


def _reach(side: Sequence[Figures]) -> tuple[int, int]:
    """Of several predictions of one thing all that any of them holds for possible."""
    return min(run.predicted_ns[0] for run in side), max(run.predicted_ns[1] for run in side)


def _refusal(a: Sequence[Figures], b: Sequence[Figures]) -> str:
    """Why the sides are not of one job; "" where they are, as far as both say."""
    return next((why for x in a for y in b if (why := likeness.other(x, y))), "") or _unlike_repeats(a, b)


def _unlike_repeats(a: Sequence[Figures], b: Sequence[Figures]) -> str:
    for name, side in (("A", a), ("B", b)):
        for run in side[1:]:
            why = likeness.other(side[0], run)
            if why or run.options != side[0].options:
                return f"the repeats of {name} are not of one thing: {why or 'other options'}"
    return ""


def _judged(a: Side, b: Side, called: tuple[str, str]) -> Judgement:
    """By the steps' length; by their waiting where that shows what the length alone does not."""
    step, crowd = step_time(a, b), likeness.crowd(a, b, called=called)
    span = f"a step is {_longer(step.change)} ({_signed(step.low)} … {_signed(step.high)})"
    if step.direction and not crowd:
        return Judgement(step, SLOWER if step.direction > 0 else FASTER, span)
    for name, wait in waiting(a, b).items():
        if wait.direction * step.change > 0 and not (crowd and name == "idle"):
            return _by_waiting(step, name, wait)
    if crowd:
        return Judgement(replace(step, low=math.nan, high=math.nan), UNSURE, crowd, is_crowded=True)
    smallest = f"less than {step.resolution * 100:.0f} % would not show"
    if step.resolution > USEFUL_FRAC:
        return Judgement(step, UNSURE, f"the steps scatter so much that {smallest}")
    return Judgement(step, SAME if is_level(step.change, step.resolution) else UNSURE, f"{span}: {smallest}")


def is_level(change: float, half: float) -> bool:
    """Whether a change that may be none is "no difference": its interval is useful, and it does not fill half of it.

    What nearly shows is not denied: of −23 % where −33 % would show nobody can say.
    """
    return half <= USEFUL_FRAC and abs(change) <= half / 2


def _by_waiting(step: Estimate, name: str, wait: Estimate) -> Judgement:
    """Of the step's own interval, what the waiting leaves: it cannot have become less longer than its waits."""
    is_more = wait.direction > 0
    took = f"{milliseconds(abs(wait.b - wait.a))} ms {'longer' if is_more else 'less'}"
    waits = f"waits {took} for its data" if name == "data" else f"leaves the cores idle {took}"
    known = replace(step, low=max(step.low, wait.low)) if is_more else replace(step, high=min(step.high, wait.high))
    return Judgement(known, SLOWER if is_more else FASTER, f"a step {waits} and is {_longer(step.change)}")


def _longer(frac: float) -> str:
    if abs(frac) < _SHOWN_FRAC:
        return "as long"
    return f"{abs(frac) * 100:.1f} % {'longer' if frac >= 0 else 'shorter'}"


def _signed(frac: float) -> str:
    return f"{'+' if frac >= 0 else '−'}{abs(frac) * 100:.1f} %"


def _quantities(a: Sequence[Figures], b: Sequence[Figures], found: Judgement, refusal: str) -> tuple[Quantity, ...]:
    told = {FASTER: "less", SLOWER: "more"}.get(found.verdict, found.verdict)
    known = found.step
    if known is None:
        old, new = (_median([ns for run in side for ns in run.step_ns]) for side in (a, b))
        known = Estimate(old, new, new / old - 1, math.nan, math.nan)
    why = found.why if told == UNSURE else ""
    step = Quantity("step_time", "ns", known.a, known.b, known.change, known.low, known.high, told, why)
    parts = [_part(name, a, b, refusal) for name in PARTS if name != "span"]
    return (step, _throughput(a, b, step), *parts, _memory(a, b, refusal))


def _median(values: Sequence[float]) -> float:
    return float(np.median(values)) if len(values) else math.nan


def _throughput(a: Sequence[Figures], b: Sequence[Figures], step: Quantity) -> Quantity:
    """Samples per second: the batch over the step time, and so as sure as that."""
    turned = {"more": "less", "less": "more"}.get(step.verdict, step.verdict)
    old = a[0].samples_per_step / step.a * 1e9
    new = b[0].samples_per_step / step.b * 1e9
    change, low, high = (1 / (1 + frac) - 1 for frac in (step.change, step.high, step.low))
    known = Quantity("throughput", "per_s", old, new, change, low, high, turned, step.why)
    if step.verdict != UNSURE and math.isnan(old + new):
        why = "the steps do not say how many samples they took"
        return replace(known, change=math.nan, low=math.nan, high=math.nan, verdict=UNSURE, why=why)
    return known


def _part(name: str, a: Sequence[Figures], b: Sequence[Figures], refusal: str) -> Quantity:
    """A part of the profiled step: Welch's interval over steps, beside the noise between runs."""
    values = [np.array([ns for run in side for ns in run.parts_ns.get(name, ())]) for side in (a, b)]
    old, new = (float(found.mean()) if len(found) else math.nan for found in values)
    if old == new == 0:
        return Quantity(name, "ns", 0.0, 0.0, 0.0, 0.0, 0.0, SAME)
    change = new / old - 1 if old else math.nan
    fewest = min(len(found) for found in values)
    why = refusal
    if not why and fewest < FEWEST_PROFILED:
        why = f"{counted(fewest, 'profiled step')}; {FEWEST_PROFILED} are needed on each side"
    elif not why and not old:
        why = "A has none of it"
    if why:
        return Quantity(name, "ns", old, new, change, math.nan, math.nan, UNSURE, why)
    own = sum(float(np.var(found, ddof=1)) / len(found) for found in values) / old**2
    floor = BETWEEN_LOG.get(a[0].device_kind, max(BETWEEN_LOG.values()))
    half = t_quantile(CONFIDENCE, max(2, 2 * (fewest - 1))) * math.sqrt(own + floor**2 * (1 + (1 + change) ** 2))
    low, high = max(change - half, -1.0), change + half
    told = "more" if low > 0 else "less" if high < 0 else SAME if is_level(change, half) else UNSURE
    return Quantity(name, "ns", old, new, change, low, high, told, _SCATTER if told == UNSURE else "")


def _memory(a: Sequence[Figures], b: Sequence[Figures], refusal: str) -> Quantity:
    """The peak of the fullest rank. It is the same every time, but for what its instrument rounds or misses."""
    old, new = (_peak(side) for side in (a, b))
    hows = {run.peak_how for run in (*a, *b)}
    change = new / old - 1 if old else math.nan
    why = refusal
    if not why and math.isnan(change):
        why = f"{'B' if old > 0 else 'A'} has no peak of memory"
    elif not why and len(hows) > 1:
        why = f"the peaks were come by differently: {', '.join(sorted(hows))}"
    if why:
        return Quantity("memory", "bytes", old, new, change, math.nan, math.nan, UNSURE, why)
    half = _SAME_BYTES.get(next(iter(hows)), max(_SAME_BYTES.values()))
    told = "more" if change > half else "less" if change < -half else SAME
    return Quantity("memory", "bytes", old, new, change, change - half, change + half, told)


def _peak(side: Sequence[Figures]) -> float:
    return float(max((run.peak_bytes for run in side if run.peak_bytes >= 0), default=math.nan))


def _profiled(side: Sequence[Figures]) -> int:
    return sum(len(run.works.steps) for run in side if run.works.has_steps)


def _basis(a: Side, b: Side, *, is_quiet: bool) -> tuple[str, ...]:
    if _are_predicted(a.runs, b.runs):
        return ("Both sides are simulated: predictions with their own intervals, and no step was measured.",)
    of = f"{_counts(a)} (A) and {_counts(b)} (B), unprofiled and past warm-up"
    said = f"Medians over {of}; {CONFIDENCE * 100:.0f} % intervals."
    quiet = "Only steps during which other programs left the cores alone are counted."
    runs = [len(side.runs) for side in (a, b)]
    alone = "One run on each side: how far runs of the same thing differ is assumed, not seen; repeats narrow it."
    faults = likeness.injected(a.runs[0], b.runs[0])
    return (*([faults] if faults else []), said, *([quiet] if is_quiet else []), *([alone] if max(runs) == 1 else []))


def _counts(side: Side) -> str:
    of = "" if side.kept == side.measured else f" of {side.measured}"
    runs = "" if len(side.runs) == 1 else f" in {len(side.runs)} runs"
    return f"{side.kept}{of} steps{runs}"
