"""All that is said to a question: the ranking, the reason, the rules, what would flip it, and time against memory."""

from __future__ import annotations

import re
from dataclasses import dataclass

from meshscope.advisor.naming import layout_name
from meshscope.advisor.pareto import front
from meshscope.advisor.ranking import Advice, Ranked, advice
from meshscope.advisor.request import Posed
from meshscope.advisor.rule import Rule
from meshscope.advisor.rules import rules
from meshscope.advisor.sensitivity import Sensitivity, sensitivities
from meshscope.advisor.why import why
from meshscope.errors import InputError


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


def numbered(found: Answer, which: str) -> int:
    """The row that a number or a name means: ``3``, ``fsdp 8``, ``tp8×pp4``, or a strategy, the best of it.

    InputError: there is none.
    """
    if not found.rows:
        raise InputError(found.why[0], hint="Ask for more devices, a smaller batch or another model.")
    if which.strip().isdecimal():
        number = int(which)
        if 1 <= number <= len(found.rows):
            return number
        raise InputError(f"There is no candidate {number}.", hint=f"They are numbered from 1 to {len(found.rows)}.")
    asked = _squeezed(which)
    names = [(_squeezed(layout_name(each.candidate)), each.candidate.strategy) for each in found.rows]
    found_at = [at for at, (name, strategy) in enumerate(names, start=1) if asked in (name, strategy)]
    if not found_at:
        known = ", ".join(dict.fromkeys(layout_name(each.candidate) for each in found.rows[:6]))
        raise InputError(f"No candidate is called {which!r}.", hint=f"Give a number, or a name such as {known}.")
    return found_at[0]


def _squeezed(name: str) -> str:
    return re.sub(r"[\s:]+", "", name.lower().replace("*", "×").replace("x", "×"))
