"""All that is said to a question: the ranking, the reason, the rules, what would flip it, and time against memory."""

from __future__ import annotations

from dataclasses import dataclass

from meshscope.advisor.pareto import front
from meshscope.advisor.ranking import Advice, Ranked, advice
from meshscope.advisor.request import Posed
from meshscope.advisor.rule import Rule
from meshscope.advisor.rules import rules
from meshscope.advisor.sensitivity import Sensitivity, sensitivities
from meshscope.advisor.why import why


@dataclass(frozen=True)
class Answer:
    """``front`` are the candidates that none beats in both time and memory."""

    posed: Posed
    advice: Advice
    why: tuple[str, ...]
    rules: tuple[Rule, ...]
    sensitivities: tuple[Sensitivity, ...]
    front: tuple[Ranked, ...]

    @property
    def rows(self) -> tuple[Ranked, ...]:
        """As they are numbered, from 1: what fits, what is too close to say, what does not fit."""
        return (*self.advice.ranked, *self.advice.close, *self.advice.refused)


def answer(posed: Posed, *, with_sensitivities: bool = True) -> Answer:
    """The whole of it. What would flip the choice asks several more questions, and takes as much longer."""
    found = advice(posed.question)
    return Answer(
        posed=posed,
        advice=found,
        why=why(found),
        rules=rules(found),
        sensitivities=sensitivities(found) if with_sensitivities else (),
        front=front((*found.ranked, *found.settings)),
    )
