"""Strategies side by side: one row each, and the verdict in one sentence with its numbers."""

from __future__ import annotations

from dataclasses import dataclass

from meshscope.analysis.overlap import overlap
from meshscope.analysis.standing import Row, standing
from meshscope.analysis.traced import sentence, traced
from meshscope.analysis.unequal import apart, equals, size_words
from meshscope.analysis.verdict import Collectives, footnotes, verdict
from meshscope.run import Run

__all__ = ["Comparison", "Row", "comparison"]


@dataclass(frozen=True)
class Comparison:
    """Rows in the order of the runs. ``leader`` is a strategy name, "" while fewer than one can be ranked.

    Where runs differ in ranks or global batch only those of one size are ranked: the leader is that of the one size
    that several have, and "" where there are several such sizes, or none.

    ``verdict`` is one sentence with numbers; ``footnotes`` say what the numbers stand on (ranks sharing cores, …).
    """

    rows: tuple[Row, ...]
    leader: str
    verdict: str
    footnotes: tuple[str, ...]


def comparison(runs: tuple[Run, ...]) -> Comparison:
    """The rows, who leads, and why as far as the numbers say."""
    rows = standing(runs)
    ranked = tuple(sorted((row for row in rows if row.is_ranked), key=lambda row: -row.samples_per_s))
    collectives = {run.experiment.strategy: overlap(run) for run in runs}
    return Comparison(
        rows=rows,
        leader=_leader(ranked),
        verdict=_of_attached(runs) or _verdict(ranked, collectives, tuple(row for row in rows if not row.is_ranked)),
        footnotes=footnotes(runs, rows),
    )


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


def _leader(ranked: tuple[Row, ...]) -> str:
    sizes = equals(ranked)
    several = sizes if len(sizes) == 1 else [rows for rows in sizes if len(rows) > 1]
    return several[0][0].strategy if len(several) == 1 else ""


def _verdict(ranked: tuple[Row, ...], collectives: Collectives, others: tuple[Row, ...]) -> str:
    """One verdict for each size that several runs have."""
    sizes = equals(ranked)
    if len(sizes) < 2:
        return verdict(ranked, collectives, others)
    said = [f"With {size_words(rows[0])}: {verdict(rows, collectives)}" for rows in sizes if len(rows) > 1]
    return " ".join([*said, apart([rows[0].strategy for rows in sizes if len(rows) == 1])]).strip()
