"""What came back of a question: the advice, and everything that is said of it."""

from __future__ import annotations

from dataclasses import dataclass

from meshscope.advisor.forecast import Fit
from meshscope.advisor.naming import layout_name, settings
from meshscope.advisor.pareto import front
from meshscope.advisor.ranking import Advice, Ranked, advice
from meshscope.advisor.rule import Rule
from meshscope.advisor.rules import rules
from meshscope.advisor.sensitivity import Sensitivity, sensitivities
from meshscope.advisor.why import against_choice, why
from meshscope.ui.advise.form import Form, question


@dataclass(frozen=True, eq=False)
class Answer:
    """``rows`` are the candidates in the order they are shown: what fits, what is too close to say, what does not.

    ``why`` are sentences, the most important first; ``front`` are the candidates that none other beats in both time
    and memory. ``notes`` say what the question left open, ``asked`` is what it was made from.
    """

    advice: Advice
    rows: tuple[Ranked, ...]
    why: tuple[str, ...]
    rules: tuple[Rule, ...]
    front: tuple[Ranked, ...]
    notes: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()

    def against(self, row: Ranked) -> str:
        """Why a row was not chosen; "" for the choice."""
        return against_choice(self.advice, row)


def answer(form: Form) -> Answer:
    """May take seconds: to be asked in a thread. Raises InputError for words that ask nothing."""
    asked = question(form)
    return told(advice(asked.question), asked.notes, form.asked)


def told(found: Advice, notes: tuple[str, ...] = (), asked: tuple[str, ...] = ()) -> Answer:
    """All there is to say of an advice."""
    return Answer(
        advice=found,
        rows=(*found.ranked, *found.close, *found.refused),
        why=why(found),
        rules=rules(found),
        front=front((*found.ranked, *found.settings)),
        notes=(*notes, *_untold(found)),
        asked=asked,
    )


def _untold(found: Advice) -> tuple[str, ...]:
    """Reasons why some candidates have no forecast, each with how many."""
    return tuple(f"No forecast of {count}: {reason}." for reason, count in sorted(found.cannot_say.items()))


def flips(found: Answer) -> tuple[Sensitivity, ...]:
    """What would flip the choice; asks the question anew several times, so it takes several times as long."""
    return sensitivities(found.advice)


def name(row: Ranked) -> str:
    return layout_name(row.candidate)


def told_settings(row: Ranked) -> str:
    return settings(row.candidate)


def fits(row: Ranked) -> tuple[str, str]:
    """The verdict in a word that tells it without a colour, and its role."""
    return {Fit.FITS: ("yes", "good"), Fit.TOO_CLOSE: ("close", "warn"), Fit.DOES_NOT: ("no", "bad")}[row.memory.fit]
