"""What is said below the bars: why the choice is what it is, the rules of the field, what would flip it."""

from __future__ import annotations

from collections.abc import Sequence

from meshscope.advisor.rule import Rule
from meshscope.advisor.sensitivity import Sensitivity
from meshscope.ui.advise.answer import Answer, name, told_settings
from meshscope.ui.advise.state import State
from meshscope.ui.marks.cells import Line, wrapped
from meshscope.units import NS_PER_S, duration, printable

_MOST = 8


def why(answer: Answer, state: State, width: int) -> list[Line]:
    """The sentences; before them why the candidate that is looked at was not chosen, where it was not."""
    row = answer.rows[state.chosen] if state.chosen < len(answer.rows) else None
    lines: list[Line] = []
    if row is not None and row is not answer.advice.choice and answer.advice.choice is not None:
        chosen = printable(name(answer.advice.choice))
        lines += _wrapped(f"Not chosen: {answer.against(row)}. The choice is {chosen}:", width, "warn")
    # The first of them, the choice itself, stands at the head of the screen.
    lines += [line for sentence in answer.why[1:] for line in _wrapped(sentence, width, "text")]
    return lines + [line for note in answer.notes for line in _wrapped(f"– {note}", width, "quiet")]


def rules(found: Sequence[Rule], width: int) -> list[Line]:
    """Each with its threshold here, and whether the computed choice follows it."""
    if not found:
        return [[("No rule of thumb has anything to say here.", "quiet")]]
    return [line for rule in found for line in _rule(rule, width)]


def _rule(rule: Rule, width: int) -> list[Line]:
    sign, role, word = {
        True: ("✓", "good", "the choice follows it"),
        False: ("≠", "warn", "the choice is another"),
        None: ("·", "quiet", "chooses nothing here"),
    }[rule.agrees]
    lines: list[Line] = []
    for at, text in enumerate(wrapped(printable(f"{rule.title}: {rule.threshold}"), max(width - 2, 1), _MOST)):
        lines.append([(f"{sign} " if not at else "  ", role), (text, "text")])
    says = f"It would have {rule.chooses}; {word}" if rule.chooses else word.capitalize()
    because = f": {rule.why}" if rule.why else ""
    return lines + [[("  ", "text"), *line] for line in _wrapped(f"{says}{because}.", max(width - 2, 1), role)]


def flips(found: Sequence[Sensitivity] | None, width: int, *, seconds: float | None) -> list[Line]:
    """What would be chosen if one thing changed; ``seconds`` is how long that has been asked for, None where not."""
    if found is None:
        text = "enter or f asks what would flip the choice: a slower network, another batch, less memory."
        if seconds is not None:
            text = f"Asking the same question with one thing changed… {seconds:.0f} s"
        return _wrapped(text, width, "quiet")
    if not found:
        return _wrapped("There is no choice that could flip.", width, "quiet")
    return [line for one in found for line in _flip(one, width)]


def _flip(one: Sensitivity, width: int) -> list[Line]:
    sign, role = ("≠", "warn") if one.flips else ("=", "quiet")
    then = "nothing would fit"
    if one.choice is not None:
        took = f", {duration(one.choice.step_s * NS_PER_S)} a step" if one.choice.time is not None else ""
        then = f"{printable(name(one.choice))}, {told_settings(one.choice)}{took}"
    said = f"{one.change}: {'then ' if one.flips else 'still '}{then}"
    return [
        [(f"{sign} " if not at else "  ", role), (text, "text")]
        for at, text in enumerate(wrapped(printable(said), max(width - 2, 1), _MOST))
    ]


def _wrapped(text: str, width: int, role: str) -> list[Line]:
    return [[(line, role)] for line in wrapped(printable(text), max(width, 1), _MOST)]
