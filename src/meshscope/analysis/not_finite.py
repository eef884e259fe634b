"""From which step on a loss, or the parameters, are no finite numbers.

A loss is told by every step, sums of parameters by every few. What came back is not told: where a scaler of gradients
skips the step of an overflow, say, the newest loss and the newest sums are finite again.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

from meshscope.analysis.flight_words import ranks_words
from meshscope.analysis.parts import per_run
from meshscope.recording.entries import Checked
from meshscope.run import Run


@dataclass(frozen=True)
class NotFinite:
    """The first steps on any rank, None where it is finite, and what ``evidence`` shows it; ``ranks`` are all that it
    concerns."""

    loss_step: int | None = None
    parameters_step: int | None = None
    ranks: tuple[int, ...] = ()
    evidence: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """``parameters are not finite since step 10``."""
        loss, parameters = self.loss_step, self.parameters_step
        if parameters is None:
            return "" if loss is None else f"the loss is not finite since step {loss}"
        before = f"the loss is not finite since step {loss}, " if loss is not None and loss < parameters else ""
        return f"{before}parameters {'' if before else 'are not finite '}since step {parameters}"


@per_run
def not_finite(run: Run) -> NotFinite:
    losses: dict[tuple[int, str], list[int]] = defaultdict(list)
    for lost in run.lost_losses:
        losses[lost.step, lost.value].append(lost.rank)
    by_rank: dict[int, list[Checked]] = defaultdict(list)
    for entry in sorted(run.checks, key=lambda entry: entry.step):
        by_rank[entry.rank].append(entry)
    sums: dict[tuple[int, str, int | None], list[int]] = defaultdict(list)
    for rank, entries in sorted(by_rank.items()):
        if (found := _first(entries)) is not None:
            sums[found].append(rank)
    evidence = [
        f"the loss of {ranks_words(ranks)} is {value} since step {step}"
        for (step, value), ranks in sorted(losses.items())
    ]
    for (step, value, finite_step), ranks in sums.items():
        before = "the first one" if finite_step is None else f"still finite at step {finite_step}"
        evidence.append(
            f"the sum of parameters of {ranks_words(ranks)} is {value} at the check of step {step}, {before}"
        )
    return NotFinite(
        min((step for step, _ in losses), default=None),
        min((step for step, _, _ in sums), default=None),
        tuple(sorted({rank for ranks in (*losses.values(), *sums.values()) for rank in ranks})),
        tuple(evidence),
    )


def _first(entries: list[Checked]) -> tuple[int, str, int | None] | None:
    """Of one rank's checks in order: the first since which none is finite, what it was, the last that was finite."""
    lost: Checked | None = None
    finite: Checked | None = None
    for entry in entries:
        if math.isfinite(entry.parameters):
            lost, finite = None, entry
        elif lost is None:
            lost = entry
    if lost is None:
        return None
    value = "NaN" if math.isnan(lost.parameters) else f"{lost.parameters:g}"
    return lost.step, value, None if finite is None else finite.step
