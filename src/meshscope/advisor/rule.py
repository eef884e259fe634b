"""One rule of thumb, and what it says of a case."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from meshscope.advisor.balance import Balance
from meshscope.advisor.candidate import Candidate
from meshscope.advisor.question import Question
from meshscope.advisor.ranking import Advice, Ranked


@dataclass(frozen=True)
class Case:
    """What rules are asked about."""

    advice: Advice
    balance: Balance

    @property
    def question(self) -> Question:
        return self.advice.question

    @property
    def choice(self) -> Ranked | None:
        return self.advice.choice

    @property
    def parameters(self) -> float:
        return float(self.question.architecture.parameters)

    @property
    def memory_bytes(self) -> float:
        return self.question.cluster.device.memory_bytes


@dataclass(frozen=True)
class Saying:
    """What a rule says of a case. ``threshold`` is its arithmetic for this model and fabric; ``holds`` whether its
    condition is met here; ``chooses`` what it would have ("" for nothing in particular), which a candidate is when
    ``is_met`` says so. ``source`` is who goes by it."""

    title: str
    threshold: str
    holds: bool
    source: str
    chooses: str = ""
    is_met: Callable[[Candidate], bool] | None = None


@dataclass(frozen=True)
class Rule:
    """A saying beside the computed choice. ``agrees`` is None where the rule chooses nothing here; ``why`` has the
    figures where it does not agree."""

    title: str
    threshold: str
    holds: bool
    chooses: str
    agrees: bool | None
    why: str
    source: str
