"""Where a rank stands: what every watch needs to know."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from meshscope.capture.workers.rank_journal import RankJournal
from meshscope.experiment import Experiment


@dataclass(frozen=True)
class Post:
    """``local_rank`` is the rank's device on this host; ``options`` are the workload's own.

    ``own_samples`` are those of this rank in one step where the workload says so, 0 where another rank counts them;
    −1 for its share of the batch.
    """

    recording: Path
    experiment: Experiment
    journal: RankJournal
    options: Any
    rank: int
    local_rank: int
    check_every: int
    own_samples: int = -1

    @property
    def ranks(self) -> range:
        """The ranks of this process: its own, or one per device."""
        return range(self.rank, self.rank + 1) if self.experiment.framework == "torch" else self.experiment.own_ranks

    @property
    def samples(self) -> int:
        """Samples this process trains on in one step."""
        if self.own_samples >= 0:
            return self.own_samples
        return self.experiment.global_batch * len(self.ranks) // self.experiment.ranks

    @property
    def tokens(self) -> int:
        """Tokens in those samples; −1 where the workload has no sequence length."""
        length = self.experiment.sequence_length
        return self.samples * length if length else -1

    def is_check(self, step: int) -> bool:
        return self.check_every > 0 and step % self.check_every == 0

    def memory_step(self) -> int:
        """The step at which memory is told apart: the second, since the first one makes the optimizer's state."""
        return min(1, max(0, self.experiment.planned_steps - 1))
