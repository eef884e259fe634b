"""Which way to train: every candidate that deserves it computed, those that fit in order of time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from meshscope.advisor.candidate import Candidate
from meshscope.advisor.forecast import Fit, Forecast, MemoryForecast, TimeForecast
from meshscope.advisor.forecasting import memory_alone, timed
from meshscope.advisor.naming import layout_key
from meshscope.advisor.question import Question
from meshscope.advisor.shortlist import Group, Shortlist, first_of_each, shortlist

MOST_TIMED = 64
_TRIES = 10
"""Settings of one layout whose memory is computed before it is given up."""
_LEADERS, _FOLLOWERS = 10, 24
"""Layouts of which the three, or two, most promising settings are computed: the estimate that orders them is a rough
one. Against computing everything the fastest found was 0 to 2.4 % slower (five cases, 7 B to 70 B, 16 to 128 GPUs).
"""
_REFINED = 4
_BUCKETS_MIB = (5, 10, 50, 100, 200)
_PREFETCH = (2, 3)
AS_FAST_FRAC = 0.05
"""Of the fastest step: what is slower by less is as fast, half of what predictions of two layouts can be told apart by,
and the plainest of them is chosen."""
_GAIN_FRAC = 0.005
"""A setting other than the framework's own has to save so much of a step."""
PAIR_FRAC = 0.11
"""What the ratio of two predicted steps is off in nine of ten pairs of dense runs that differ in their layout alone, in
one table of published runs (tests/benchmarks/advice_pairs.py). What is common to both (the device's speed, the
software) cancels, so that two predictions can be told apart although their own intervals overlap."""
_KEPT = ("none", "selective", "full")


@dataclass(frozen=True)
class Ranked:
    """``is_tied``: it is behind the fastest by less than predictions of two layouts are off against each other, so that
    nobody can tell which is faster."""

    candidate: Candidate
    forecast: Forecast
    is_tied: bool = False

    @property
    def memory(self) -> MemoryForecast:
        """Only of candidates whose memory is covered: others are never ranked."""
        if self.forecast.memory is None:
            raise LookupError("a candidate without a forecast of its memory")
        return self.forecast.memory

    @property
    def time(self) -> TimeForecast | None:
        return self.forecast.time

    @property
    def step_s(self) -> float:
        """Infinite where the time is not covered."""
        return self.time.step_s.value if self.time else float("inf")


@dataclass(frozen=True)
class Counts:
    """Candidates: all that are ``legal``, those ``too_large`` by a lower bound, those whose memory was ``weighed`` and
    those whose step was ``timed``; the others were behind by an estimate."""

    legal: int
    too_large: int
    weighed: int
    timed: int


@dataclass(frozen=True)
class Advice:
    """``ranked`` fit, each layout with its best settings: the choice first, then by time. ``settings`` are the other
    settings that were computed. ``close`` is too close to say; ``refused`` does not fit, one of each strategy that no
    other row has. ``cannot_say`` counts the reasons why candidates have no forecast."""

    question: Question
    ranked: tuple[Ranked, ...]
    settings: tuple[Ranked, ...]
    close: tuple[Ranked, ...]
    refused: tuple[Ranked, ...]
    counts: Counts
    cannot_say: dict[str, int]

    @property
    def choice(self) -> Ranked | None:
        return self.ranked[0] if self.ranked else None

    @property
    def fastest(self) -> Ranked | None:
        return min(self.ranked, key=lambda each: each.step_s, default=None)

    @property
    def tied(self) -> tuple[Ranked, ...]:
        """Those that nobody can tell from the fastest, the choice left out."""
        return tuple(each for each in self.ranked[1:] if each.is_tied)

    @property
    def every(self) -> tuple[Ranked, ...]:
        """All that was computed and may fit."""
        return (*self.ranked, *self.settings, *self.close)


def advice(question: Question, *, most_timed: int = MOST_TIMED, strategies: frozenset[str] | None = None) -> Advice:
    """The answer. Nothing of it is measured.

    Of each of ``strategies`` (None: of every one) something is computed however little it promises.
    """
    listed = shortlist(question)
    weighed = _Weighed(question)
    wanted = _Wanted(most_timed, strategies)
    chosen = list(_weighed(listed, weighed, wanted))
    found = [weighed.timed(each) for each in chosen]
    found += _refined(found, weighed)
    fits = [each for each in found if each.memory.fit is Fit.FITS and each.time is not None]
    best, others = _best_of_layouts(fits)
    apart_frac = told_apart_frac(question)
    ranked = _ordered(best, apart_frac)
    close = _best_of_layouts([each for each in found if each.memory.fit is Fit.TOO_CLOSE and each.time])[0]
    counts = Counts(listed.legal, listed.too_large, weighed.weighed, len(found))
    refused = _refused(listed, weighed, [*ranked, *close], wanted)
    near = _tied(close, best, apart_frac)
    return Advice(question, ranked, others, near, refused, counts, dict(weighed.cannot_say))


class _Weighed:
    """Forecasts of one question, counted."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self.cannot_say: Counter[str] = Counter()
        self.weighed = 0

    def __call__(self, candidate: Candidate) -> Ranked | None:
        self.weighed += 1
        found = memory_alone(self._question.architecture, candidate, self._question.cluster)
        self.cannot_say.update(found.cannot_say)
        return Ranked(candidate, found) if found.memory else None

    def timed(self, ranked: Ranked) -> Ranked:
        asked = self._question
        found = timed(ranked.forecast, asked.architecture, ranked.candidate, asked.cluster, asked.multipliers)
        self.cannot_say.update(found.cannot_say)
        return replace(ranked, forecast=found)


@dataclass(frozen=True)
class _Wanted:
    """So many are timed, and something of each of these strategies."""

    most: int
    strategies: frozenset[str] | None

    def firsts(self, groups: Iterable[Group]) -> list[Group]:
        return [
            group for group in first_of_each(groups) if self.strategies is None or group.strategy in self.strategies
        ]


def _weighed(listed: Shortlist, weighed: _Weighed, wanted: _Wanted) -> Iterator[Ranked]:
    """Of each layout the most promising settings that fit (or else are too close to say): layouts by promise, and the
    first of each strategy in any case."""
    firsts = {id(group) for group in wanted.firsts(listed.groups)}
    taken = 0
    for place, group in enumerate(listed.groups):
        if taken >= wanted.most and id(group) not in firsts:
            continue
        found = _promising(group, weighed, wanted=3 if place < _LEADERS else 2 if place < _FOLLOWERS else 1)
        taken += len(found)
        yield from found


def _promising(group: Group, weighed: _Weighed, *, wanted: int) -> list[Ranked]:
    close: list[Ranked] = []
    fits: list[Ranked] = []
    for candidate in group.candidates[:_TRIES]:
        found = weighed(candidate)
        if found and found.memory.fit is Fit.FITS:
            fits.append(found)
        if found and found.memory.fit is Fit.TOO_CLOSE:
            close.append(found)
        if len(fits) == wanted:
            break
    return [*close[:1], *fits] if close or fits else _smallest_that_fits(group, weighed)


def _smallest_that_fits(group: Group, weighed: _Weighed) -> list[Ranked]:
    """Where the fast settings do not fit, the one that needs least does perhaps."""
    found = weighed(group.smallest)
    return [found] if found and found.memory.fit is not Fit.DOES_NOT else []


def _refined(found: Sequence[Ranked], weighed: _Weighed) -> list[Ranked]:
    """The leaders again with other bucket sizes and prefetch depths, as far as those save something and fit."""
    leaders = sorted((each for each in found if each.memory.fit is Fit.FITS and each.time), key=lambda one: one.step_s)
    better = []
    for leader in leaders[:_REFINED]:
        tried = [weighed.timed(each) for each in map(weighed, _variants(leader.candidate)) if each]
        able = [each for each in tried if each.memory.fit is Fit.FITS and each.time]
        first = min(able, key=lambda each: each.step_s, default=leader)
        if first.step_s < leader.step_s * (1 - _GAIN_FRAC):
            better.append(first)
    return better


def _variants(candidate: Candidate) -> Iterator[Candidate]:
    if candidate.framework != "torch" or candidate.data == 1:
        return
    if candidate.strategy == "ddp":
        yield from (replace(candidate, bucket_bytes=size * 2**20) for size in _BUCKETS_MIB)
    if candidate.zero_stage == 3:
        yield from (replace(candidate, prefetch=depth) for depth in _PREFETCH)


def _best_of_layouts(found: Iterable[Ranked]) -> tuple[list[Ranked], tuple[Ranked, ...]]:
    """Of each layout the fastest settings, and apart from them the others."""
    best: dict[tuple[str, ...], Ranked] = {}
    ordered = sorted(found, key=_order)
    for each in ordered:
        best.setdefault(layout_key(each.candidate), each)
    first = {id(each) for each in best.values()}
    return list(best.values()), tuple(each for each in ordered if id(each) not in first)


def _order(ranked: Ranked) -> tuple[float, float]:
    return ranked.step_s, ranked.memory.used.value


def _ordered(best: Sequence[Ranked], apart_frac: float) -> tuple[Ranked, ...]:
    """The choice, then the others by time, each told apart from the fastest or not."""
    if not best:
        return ()
    fastest = min(best, key=_order)
    as_fast = [each for each in best if each.step_s <= fastest.step_s * (1 + AS_FAST_FRAC)]
    choice = min(as_fast, key=plainness)
    others = sorted((each for each in best if each is not choice), key=_order)
    return _tied([choice, *others], best, apart_frac)


def told_apart_frac(question: Question) -> float:
    """From which share of a step on two layouts can be told apart: the calibration's residual, else `PAIR_FRAC`; twice
    that for mixtures of experts, of whose layouts too few were published alike."""
    own = question.multipliers.provenance.residual_frac
    return own or PAIR_FRAC * (2 if question.architecture.is_mixture else 1)


def _tied(found: Sequence[Ranked], best: Sequence[Ranked], apart_frac: float) -> tuple[Ranked, ...]:
    fastest = min(best, key=_order, default=None)
    if fastest is None:
        return tuple(found)
    most_s = fastest.step_s * (1 + apart_frac)
    return tuple(replace(each, is_tied=each.step_s <= most_s) for each in found)


def plainness(ranked: Ranked) -> tuple[float, ...]:
    """Of what does as well people take what has the fewest kinds of parallelism, shards least, keeps activations."""
    candidate = ranked.candidate
    degrees = (candidate.tensor, candidate.pipeline, candidate.context, candidate.expert, candidate.data)
    kinds = sum(degree > 1 for degree in degrees) + (candidate.replicate > 1 and candidate.shard > 1)
    cuts = sum(degree > 1 for degree in degrees[:-1])
    return (kinds, cuts, candidate.zero_stage, candidate.virtual, _KEPT.index(candidate.checkpointing), ranked.step_s)


def _refused(listed: Shortlist, weighed: _Weighed, shown: Sequence[Ranked], wanted: _Wanted) -> tuple[Ranked, ...]:
    """One of each strategy that nothing shown has: the settings and the layout that need least."""
    seen = {each.candidate.strategy for each in shown}
    groups = sorted((*listed.groups, *listed.hopeless), key=lambda group: group.smallest_bytes)
    absent = [group for group in wanted.firsts(groups) if group.strategy not in seen]
    found = [weighed(group.smallest) for group in absent]
    return tuple(each for each in found if each is not None and each.memory.fit is Fit.DOES_NOT)
