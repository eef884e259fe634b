"""One candidate, term by term: the arithmetic of its memory and of its step, as text and as JSON."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from meshscope.advisor.answer import Answer
from meshscope.advisor.figures import Figure
from meshscope.advisor.forecast import MemoryForecast, Term, TimeForecast
from meshscope.advisor.memory import terms as memory_terms
from meshscope.advisor.naming import layout_name, settings
from meshscope.advisor.ranking import Ranked
from meshscope.advisor.why import against_choice, group_name
from meshscope.reports.advice_json import candidate_values, encoded, terms_values
from meshscope.reports.columns import encodable, table, wrapped
from meshscope.units import NS_PER_S, duration, percent, printable, rate, ratio, reach, size


@dataclass(frozen=True)
class Explained:
    """One of the rows of an answer, by its number from 1."""

    answer: Answer
    number: int

    @property
    def ranked(self) -> Ranked:
        return self.answer.rows[self.number - 1]

    @property
    def memory_terms(self) -> tuple[Term, ...]:
        question = self.answer.posed.question
        return memory_terms(question.architecture, self.ranked.candidate, question.cluster)


def explained_json(found: Explained) -> str:
    """``{"format", "candidate", "memory_terms", "time_terms"}``: bytes and seconds."""
    time = found.ranked.time
    values: dict[str, Any] = {
        "format": 1,
        "predicted": True,
        "candidate": candidate_values(found.answer, found.number, found.ranked),
        "memory_terms": terms_values(found.memory_terms),
        "time_terms": terms_values(time.terms) if time else [],
    }
    return encoded(values)


def explained_report(found: Explained, *, encoding: str | None = None) -> str:
    """What it is, memory by part, and the step by term. Parts of a sum stand before it."""
    ranked = found.ranked
    lines = [
        *wrapped(f"{found.number}: {layout_name(ranked.candidate)}, {settings(ranked.candidate)}", indent=""),
        *wrapped(f"{ranked.candidate.strategy} in {ranked.candidate.stack}, {ranked.candidate.numerics.name}: "
                 f"{ranked.memory.fit}", indent=""),
        *_against(found),
        "",
        *_memory(ranked.memory, found.memory_terms),
        "",
        *(_time(ranked.time, ranked.candidate.numerics.compute) if ranked.time else _untimed(ranked)),
    ]  # fmt: skip
    text = "\n".join(printable(line) for line in lines)
    return encodable(text, encoding or getattr(sys.stdout, "encoding", None) or "utf-8")


def _against(found: Explained) -> list[str]:
    said = against_choice(found.answer.advice, found.ranked)
    return wrapped(f"Not chosen: {said}.", indent="") if said else []


def _memory(memory: MemoryForecast, terms: Sequence[Term]) -> list[str]:
    lines = [f"Memory of the device that needs most (pipeline stage {memory.stage}), at its peak:"]
    rows = [(name, size(figure.value), _reach(figure), figure.source) for name, figure in memory.categories.items()]
    sums = (("= allocated", memory.allocated), ("  reserved", memory.reserved), ("  used", memory.used))
    rows += [(name, size(figure.value), _reach(figure), figure.source) for name, figure in sums]
    lines += table(("", "", "90 % within", "source"), rows)
    lines += wrapped(f"The device has {size(memory.limit_bytes)} for it: {memory.fit}.", indent="  ")
    lines += ["", "Term by term:"]
    for term in terms:
        lines += _term(term, size(term.figure.value))
    return lines


def _time(time: TimeForecast, compute: str) -> list[str]:
    step = time.step_s
    parts = (("compute", time.compute_s), ("exposed communication", time.exposed_s), ("bubble", time.bubble_s),
             ("idle", time.idle_s))  # fmt: skip
    rows = [(name, duration(part * NS_PER_S), percent(ratio(part, step.value))) for name, part in parts]
    rows += [("= step", duration(step.value * NS_PER_S), "100 %")]
    within = reach(duration(step.low * NS_PER_S), duration(step.high * NS_PER_S))
    lines = [f"The step, {within} in 90 % of cases ({step.source}: {step.where}):"]
    lines += table(("", "", "of the step"), rows)
    named = [
        f"{duration(part * NS_PER_S)} {group_name(name)}"
        for name, part in sorted(time.exposed_by.items(), key=_largest)
        if part
    ]
    lines += wrapped(f"Exposed: {', '.join(named) or 'nothing'}; beside compute: {duration(time.hidden_s * NS_PER_S)}.")
    lines += wrapped(f"{rate(time.tokens_per_s)} tokens/s, MFU {percent(time.mfu_frac)} of the dense {compute} peak.")
    lines += ["", "Term by term:"] if time.terms else []
    for term in time.terms:
        lines += _term(term, duration(term.figure.value * NS_PER_S))
    return lines


def _largest(item: tuple[str, float]) -> float:
    return -item[1]


def _term(term: Term, value: str) -> list[str]:
    times = f" × {term.times:,g}" if term.times != 1 else ""
    said = f"{term.name}: {value}{times} = {term.arithmetic}" if term.arithmetic else f"{term.name}: {value}{times}"
    return wrapped(f"{said} [{term.figure.source}]", indent="  ", hanging="    ")


def _untimed(ranked: Ranked) -> list[str]:
    reasons = "; ".join(ranked.forecast.cannot_say) or "what does not fit is not timed"
    return wrapped(f"No forecast of its time: {reasons}.", indent="")


def _reach(figure: Figure) -> str:
    return reach(size(figure.low), size(figure.high))
