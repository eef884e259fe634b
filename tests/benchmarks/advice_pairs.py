"""How far the ratio of two predicted steps is off, over pairs of published runs that differ in their layout alone.

Run by hand: python tests/benchmarks/advice_pairs.py FILE.csv (a table of published runs). It prints, per source and
over all, the median and the 90th percentile of |predicted ratio / measured ratio − 1|, and how many orders are right.
"""

from __future__ import annotations

import csv
import math
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

from meshscope.advisor.candidate import Candidate
from meshscope.advisor.coverage import NotCovered
from meshscope.advisor.plausibility import is_impossible, measured_step_s
from meshscope.advisor.published import published
from meshscope.advisor.timing import timing

_ALIKE = ("source_key", "model", "gpu", "n_gpus", "seq_len", "precision", "compile", "software_notes")

Run = tuple[Candidate, float, float]
"""A layout, and its predicted and measured seconds per token."""


def runs(rows: Sequence[Mapping[str, str]]) -> dict[tuple[str, ...], list[Run]]:
    """Of dense models, those that differ in their layout alone together."""
    found: dict[tuple[str, ...], list[Run]] = defaultdict(list)
    for row in rows:
        measured_s = measured_step_s(row)
        if not measured_s or is_impossible(row):
            continue
        try:
            asked = published(row)
            if asked.architecture.is_mixture:
                continue
            step_s = timing(asked.architecture, asked.candidate, asked.cluster).step_s.value
        except NotCovered:
            continue
        tokens = asked.candidate.tokens_per_step
        found[tuple(row.get(name, "") for name in _ALIKE)].append(
            (asked.candidate, step_s / tokens, measured_s / tokens)
        )
    return found


def pairs(found: Mapping[tuple[str, ...], list[Run]]) -> Iterator[tuple[str, float, float]]:
    """Source, and the logarithms of the predicted and the measured ratio."""
    for alike, group in found.items():
        for one, other in combinations(group, 2):
            if replace(one[0], strategy="") != replace(other[0], strategy=""):
                yield alike[0], math.log(one[1] / other[1]), math.log(one[2] / other[2])


def _quantile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def main(path: str) -> None:
    with Path(path).open(encoding="utf-8", newline="") as file:
        found = list(pairs(runs(list(csv.DictReader(file)))))
    by_source: dict[str, list[float]] = defaultdict(list)
    for source, predicted, measured in found:
        by_source[source].append(abs(math.expm1(predicted - measured)))
    everything = [off for each in by_source.values() for off in each]
    for source, off in [*by_source.items(), ("all", everything)]:
        print(f"{source:20} {len(off):5} pairs  median {_quantile(off, 0.5):6.1%}  p90 {_quantile(off, 0.9):6.1%}")
    for least in (0.0, 0.02, 0.05, 0.1):
        told = [(one > 0) == (other > 0) for _, one, other in found if abs(one) > least and abs(other) > 0.01]
        print(f"predicted to differ by more than {least:.0%}: {sum(told)} of {len(told)} orders right")


if __name__ == "__main__":
    main(sys.argv[1])
