"""Strategies side by side: one row each, and the verdict in one sentence with its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from meshscope.analysis.figures import Figures, paced
from meshscope.analysis.overlap import overlap
from meshscope.analysis.standing import Row, standing
from meshscope.analysis.traced import sentence, traced
from meshscope.analysis.unequal import apart, equals, size_words
from meshscope.analysis.verdict import Collectives, footnotes, verdict
from meshscope.analysis.winner import WON, Decision, decide
from meshscope.run import Run

__all__ = ["Comparison", "Row", "comparison"]


@dataclass(frozen=True)
class Comparison:
    """Rows in the order of the runs. ``leader`` is a strategy name, "" while none can be ranked or none surely wins.

    The fastest leads where it wins over one of the others at least (``analysis.winner``), and where it is the only one.

    Where runs differ in ranks or global batch only those of one size are ranked: the leader is that of the one size
    that several have, and "" where there are several such sizes, or none.

    ``verdict`` is one sentence with numbers; ``footnotes`` say what the numbers stand on (ranks sharing cores, …).
    """

    rows: tuple[Row, ...]
    leader: str
    verdict: str
    footnotes: tuple[str, ...]


@dataclass(frozen=True)
class _Ranked:
    """A row with the figures by which it is judged."""

    row: Row
    figures: Figures
    is_traced: bool = False

    @property
    def name(self) -> str:
        return self.row.strategy

    @property
    def step_ns(self) -> float:
        return self.row.median_ns

    @property
    def ranks(self) -> int:
        return self.row.ranks

    @property
    def global_batch(self) -> int:
        return self.row.global_batch

    @property
    def base_strategy(self) -> str:
        return self.row.base_strategy


@dataclass(frozen=True)
class _Judged:
    """Rows of one size in order of throughput, and what is decided of the first against each of the others."""

    rows: tuple[Row, ...]
    decisions: tuple[Decision, ...]

    @property
    def leader(self) -> str:
        has_won = any(one.verdict == WON for one in self.decisions)
        return self.rows[0].strategy if has_won or len(self.rows) == 1 else ""


def comparison(runs: tuple[Run, ...]) -> Comparison:
    """The rows, who leads, and why as far as the numbers say."""
    rows = standing(runs)
    ranked = [_Ranked(row, paced(run)) for run, row in zip(runs, rows, strict=True) if row.is_ranked]
    sizes = [_judged(some) for some in equals(sorted(ranked, key=lambda one: -one.row.samples_per_s))]
    collectives = {run.experiment.strategy: overlap(run) for run in runs}
    return Comparison(
        rows=rows,
        leader=_leader(sizes),
        verdict=_of_attached(runs) or _simulated(rows) + _verdict(sizes, collectives, _unranked(rows)),
        footnotes=footnotes(runs, rows),
    )


def _unranked(rows: tuple[Row, ...]) -> tuple[Row, ...]:
    return tuple(row for row in rows if not row.is_ranked)


def _simulated(rows: tuple[Row, ...]) -> str:
    """What a verdict on predictions alone begins with; beside what was measured no prediction is ranked."""
    return "Simulated, not measured: " if rows and all(row.is_simulated for row in rows) else ""


def _judged(ranked: tuple[_Ranked, ...]) -> _Judged:
    first, *others = ranked
    return _Judged(tuple(one.row for one in ranked), tuple(decide(first, one) for one in others))


def _of_attached(runs: tuple[Run, ...]) -> str:
    """What there is to say of jobs that were attached to: as of traces by themselves, since these are all there is."""
    if not runs or not all(run.experiment.is_attached for run in runs):
        return ""
    told = [run for run in runs if run.windows]
    if not told:
        return "Attached. No trace has been taken yet."
    named = len(runs) > 1
    return " ".join(f"{run.name}: {_lower(sentence(traced(run)))}" if named else sentence(traced(run)) for run in told)


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _leader(sizes: Sequence[_Judged]) -> str:
    several = sizes if len(sizes) == 1 else [some for some in sizes if len(some.rows) > 1]
    return several[0].leader if len(several) == 1 else ""


def _verdict(sizes: Sequence[_Judged], collectives: Collectives, others: tuple[Row, ...]) -> str:
    """One verdict for each size that several runs have."""
    if not sizes:
        return verdict((), (), collectives, others)
    if len(sizes) == 1:
        return verdict(sizes[0].rows, sizes[0].decisions, collectives)
    said = [
        f"With {size_words(some.rows[0])}: {verdict(some.rows, some.decisions, collectives)}"
        for some in sizes
        if len(some.rows) > 1
    ]
    return " ".join([*said, apart([some.rows[0].strategy for some in sizes if len(some.rows) == 1])]).strip()
