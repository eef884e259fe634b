"""How throughput grows with ranks, and with the batch: the curves of a sweep.

Strong scaling keeps the global batch and divides it among more ranks; weak scaling keeps the batch of each rank, so
that the global batch grows with them. They answer different questions, so no curve mixes them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from meshscope.analysis.standing import Row, standing
from meshscope.run import Run
from meshscope.units import ratio

STRONG, WEAK, BATCH = "strong", "weak", "batch"
_SIZES = ("batch", "devices")
_AXES = ("tensor", "stages", "context", "experts")
_RUNNING = "has not ended yet"

Pair = tuple[Run, Row]


@dataclass(frozen=True)
class Point:
    """One run of a curve. ``speedup`` is throughput over that of the curve's first point.

    ``efficiency_frac`` is throughput per rank over that of the first point: 1 where throughput grows as ranks do. NaN
    on a curve over batches, whose ranks stay.
    """

    name: str
    ranks: int
    global_batch: int
    median_ns: float
    samples_per_s: float
    samples_per_s_spread: float
    speedup: float
    efficiency_frac: float


@dataclass(frozen=True)
class Curve:
    """Runs of one strategy that differ in one thing, from the smallest on.

    ``kind`` is STRONG (``fixed`` is the global batch), WEAK (``fixed`` samples a rank) or BATCH (``fixed`` ranks).
    ``left_out`` pairs the names of runs that belong here with the reason why they are no points.
    """

    strategy: str
    kind: str
    fixed: int
    points: tuple[Point, ...]
    left_out: tuple[tuple[str, str], ...] = ()


def scaling(runs: Iterable[Run], rows: Sequence[Row] = ()) -> tuple[Curve, ...]:
    """Every curve of at least two points; () where nothing was swept. ``rows`` are the standing, where it is known."""
    runs = tuple(runs)
    families: dict[object, list[Pair]] = {}
    for run, row in zip(runs, rows or standing(runs), strict=True):
        if run.experiment.strategy and not row.is_baseline and run.experiment.global_batch and run.experiment.ranks:
            families.setdefault(_family(run, row), []).append((run, row))
    return tuple(curve for family in families.values() for curve in _curves(family))


def _family(run: Run, row: Row) -> object:
    """What runs have in common that differ in nothing but ranks and batch."""
    here = run.experiment
    # An axis over all ranks has their number: it grows with them, and is no other way of dividing the work.
    sizes = {name for name in _AXES if here.options.get(name) == here.ranks} | set(_SIZES)
    options = tuple(sorted((name, str(value)) for name, value in here.options.items() if name not in sizes))
    return here.base_strategy, here.framework, row.device_kind, here.model, here.host, options, tuple(here.faults)


def _curves(family: list[Pair]) -> list[Curve]:
    kinds: tuple[tuple[str, Callable[[Run], int], Callable[[Run], int]], ...] = (
        (STRONG, lambda run: run.experiment.global_batch, lambda run: run.experiment.ranks),
        (WEAK, _batch_per_rank, lambda run: run.experiment.ranks),
        (BATCH, lambda run: run.experiment.ranks, lambda run: run.experiment.global_batch),
    )
    found = []
    for kind, fixed_of, varying in kinds:
        groups: dict[int, list[Pair]] = {}
        for run, row in family:
            if (fixed := fixed_of(run)) > 0:
                groups.setdefault(fixed, []).append((run, row))
        for fixed, some in sorted(groups.items()):
            by_size = sorted(some, key=lambda pair: varying(pair[0]))
            if len({varying(run) for run, _ in some}) > 1 and (curve := _curve(kind, fixed, by_size)):
                found.append(curve)
    return found


def _batch_per_rank(run: Run) -> int:
    """0 where the batch does not divide among the ranks, which then have no batch in common."""
    each, rest = divmod(run.experiment.global_batch, run.experiment.ranks)
    return 0 if rest else each


def _curve(kind: str, fixed: int, pairs: list[Pair]) -> Curve | None:
    whys = [(run.name, _why_not(run, row)) for run, row in pairs]
    known = [pair for pair, (_, why) in zip(pairs, whys, strict=True) if not why]
    if len(known) < 2:
        return None
    first = known[0]
    points = tuple(_point(kind, first, pair) for pair in known)
    return Curve(first[0].experiment.base_strategy, kind, fixed, points, tuple(one for one in whys if one[1]))


def _why_not(run: Run, row: Row) -> str:
    if run.ended is None and not run.is_lost:
        return _RUNNING
    # That others ran without a fault, or elsewhere, keeps nothing from its own family.
    is_measured = 0 < row.samples_per_s < math.inf
    has_failed = run.is_lost or (run.ended is not None and run.ended.outcome == "failed")
    return row.not_ranked_why if has_failed or not is_measured else ""


def _point(kind: str, first: Pair, pair: Pair) -> Point:
    (run, row), (first_run, first_row) = pair, first
    here = run.experiment
    speedup = ratio(row.samples_per_s, first_row.samples_per_s)
    return Point(
        name=run.name,
        ranks=here.ranks,
        global_batch=here.global_batch,
        median_ns=row.median_ns,
        samples_per_s=row.samples_per_s,
        samples_per_s_spread=row.samples_per_s_spread,
        speedup=speedup,
        efficiency_frac=math.nan if kind == BATCH else speedup * first_run.experiment.ranks / here.ranks,
    )
