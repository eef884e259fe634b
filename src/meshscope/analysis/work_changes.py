"""Kernels, operators and collectives that changed from A to B, by their effect on a step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from meshscope.analysis.difference import BETWEEN_LOG, CONFIDENCE
from meshscope.analysis.figures import Figures
from meshscope.analysis.noise import t_quantile
from meshscope.analysis.works import Work

FEWEST = 3
LEAST_FRAC = 0.001
NAMES = {"torch": "PyTorch", "jax": "JAX"}


@dataclass(frozen=True)
class Seen:
    """One side of a work, per step and rank; means over the profiled steps. ``mean_ns`` is of one call."""

    count: float
    total_ns: float
    mean_ns: float


@dataclass(frozen=True)
class WorkChange:
    """``how``: new, gone, more calls, fewer calls, slower, faster, or "" where nothing shows.

    New, gone, more and fewer are said where every profiled step of one side differs so from every one of the other:
    some steps do more than others (a check, a first step). Slower and faster are said where each side has ``FEWEST``
    profiled steps or more and the interval ``effect_low_ns`` … ``effect_high_ns`` (NaN otherwise) leaves out zero.
    ``effect_ns`` is what it adds to the work of a step of a rank; it may run beside other work, so that it is no
    change of the step's length. Less than ``LEAST_FRAC`` of a step is no change.
    """

    kind: str
    name: str
    how: str
    a: Seen | None
    b: Seen | None
    effect_ns: float
    effect_low_ns: float
    effect_high_ns: float


def work_changes(a: Sequence[Figures], b: Sequence[Figures]) -> tuple[WorkChange, ...]:
    """By effect, largest first. Empty where a side has no trace, or only one of them has complete steps.

    Between frameworks collectives alone, which go by what they do: see :func:`names_differ`.
    """
    if not all(run.works.steps for run in (*a, *b)):
        return ()
    if len({run.works.has_steps for run in (*a, *b)}) > 1:
        return ()
    before, after = _by_name(a), _by_name(b)
    spans_ns = [ns for run in a for ns in run.parts_ns["span"]]
    least_ns = LEAST_FRAC * float(np.mean(spans_ns)) if spans_ns else 0.0
    floor = BETWEEN_LOG.get(a[0].device_kind, max(BETWEEN_LOG.values()))
    left_ns = [max(run.works_left_ns for run in side) for side in (a, b)]
    keys, rows = {*before, *after}, []
    if names_differ(a, b):
        keys = {(kind, name) for kind, name in keys if kind == "collective"}
    for kind, name in keys:
        old, new = before.get((kind, name)), after.get((kind, name))
        row = _row(kind, name, old, new, floor)
        # What is missing among the largest may be among those that were left out.
        hidden_ns = left_ns[1] if new is None else left_ns[0] if old is None else 0.0
        if abs(row.effect_ns) > hidden_ns:
            rows.append(row if abs(row.effect_ns) >= least_ns else replace(row, how=""))
    return tuple(sorted(rows, key=lambda row: (-abs(row.effect_ns), row.kind, row.name)))


def names_differ(a: Sequence[Figures], b: Sequence[Figures]) -> tuple[str, ...]:
    """Why kernels are not matched by name: two frameworks call the same work differently. Empty where they are."""
    known = [dict.fromkeys(run.framework for run in side if run.framework) for side in (a, b)]
    if not all(known) or known[0].keys() & known[1].keys():
        return ()
    called = " and ".join(NAMES.get(name, name) for side in known for name in side)
    return (f"{called} name the same kernels differently: all of their time is compute above; only collectives match.",)


def _by_name(runs: Sequence[Figures]) -> dict[tuple[str, str], Work]:
    """The works of all repeats, step after step; a run that lacks one did it zero times."""
    names = {(work.kind, work.name) for run in runs for work in run.works.works}
    found = {}
    for key in names:
        count: list[float] = []
        total_ns: list[float] = []
        for run in runs:
            zeros = (0.0,) * len(run.works.steps)
            mine = next((work for work in run.works.works if (work.kind, work.name) == key), None)
            count += mine.count if mine else zeros
            total_ns += mine.total_ns if mine else zeros
        found[key] = Work(*key, tuple(count), tuple(total_ns))
    return found


def _row(kind: str, name: str, a: Work | None, b: Work | None, floor: float) -> WorkChange:
    old, new = _seen(a), _seen(b)
    effect_ns = (new.total_ns if new else 0.0) - (old.total_ns if old else 0.0)
    half_ns = _half_width_ns(a, b, floor)
    return WorkChange(
        kind=kind,
        name=name,
        how=_calls(a, b) or ("slower" if effect_ns > half_ns else "faster" if effect_ns < -half_ns else ""),
        a=old,
        b=new,
        effect_ns=effect_ns,
        effect_low_ns=effect_ns - half_ns,
        effect_high_ns=effect_ns + half_ns,
    )


def _seen(work: Work | None) -> Seen | None:
    if work is None:
        return None
    count, total_ns = float(np.mean(work.count)), float(np.mean(work.total_ns))
    return Seen(count, total_ns, total_ns / count if count else math.nan)


def _calls(a: Work | None, b: Work | None) -> str:
    """What every step of one side has and none of the other; "" where steps of both are alike."""
    old, new = (work.count if work else (0.0,) for work in (a, b))
    if min(new) > max(old):
        return "more calls" if max(old) else "new"
    if max(new) < min(old):
        return "fewer calls" if max(new) else "gone"
    return ""


def _half_width_ns(a: Work | None, b: Work | None, floor: float) -> float:
    """Of the difference of two means over steps (Welch), beside the noise between runs; NaN with too few steps."""
    if a is None or b is None or min(len(a.total_ns), len(b.total_ns)) < FEWEST:
        return math.nan
    sizes = [len(work.total_ns) for work in (a, b)]
    own = [float(np.var(work.total_ns, ddof=1)) / size for work, size in zip((a, b), sizes, strict=True)]
    between = sum((floor * float(np.mean(work.total_ns))) ** 2 for work in (a, b))
    freedom = sum(own) ** 2 / sum(v**2 / (n - 1) for v, n in zip(own, sizes, strict=True)) if sum(own) else math.inf
    return t_quantile(CONFIDENCE, max(freedom, 2.0)) * math.sqrt(sum(own) + between)
