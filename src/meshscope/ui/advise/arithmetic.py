"""What a prediction is made of, term by term, in paragraphs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from meshscope.advisor.figures import Figure
from meshscope.advisor.forecast import MemoryForecast, Term, TimeForecast
from meshscope.advisor.ranking import Ranked
from meshscope.analysis.explaining.words import Said
from meshscope.ui.advise.answer import Answer, name, told_settings
from meshscope.ui.advise.bars import memory_parts, time_parts
from meshscope.units import NS_PER_S, duration, percent, printable, ratio, size

_PARTS = {"compute": "compute beside no communication", "hidden": "communication beside compute",
          "exposed": "exposed communication", "wait": "bubble", "idle": "idle"}  # fmt: skip


def arithmetic(answer: Answer, row: Ranked) -> tuple[str, Sequence[Said]]:
    """A title and paragraphs. Where a term has no arithmetic of its own, nothing is made up for it."""
    said = [Said(f"{told_settings(row)}. Predicted: nothing of it was measured.", role="quiet")]
    against = answer.against(row)
    said += [Said(f"Not chosen: {against}.")] if against else []
    said += _time(row.time) if row.time is not None else [Said(f"cannot say time: {_why(row)}")]
    said += _memory(row.memory)
    return f"{printable(name(row))}: arithmetic", said


def _why(row: Ranked) -> str:
    return "; ".join(row.forecast.cannot_say) or "it does not fit, so its time was not computed"


def _time(time: TimeForecast) -> Iterator[Said]:
    step = time.step_s
    yield Said(f"step: {_seconds(step)}, {_source(step)}", role="value")
    for meaning, value_s in time_parts(time):
        share = percent(ratio(value_s, step.value))
        yield Said(f"{_PARTS[meaning]}: {duration(value_s * NS_PER_S)}, {share} of the step", depth=1)
    for group, value_s in sorted(time.exposed_by.items(), key=lambda item: -item[1]):
        yield Said(f"exposed in {printable(group)}: {duration(value_s * NS_PER_S)}", depth=1)
    for term in time.terms:
        yield Said(_term(term), depth=1)
    yield Said(f"MFU: {percent(time.mfu_frac)} of the device's peak", depth=1)


def _term(term: Term) -> str:
    return f"{term.name}: {term.arithmetic} ({_source(term.figure)})"


def _memory(memory: MemoryForecast) -> Iterator[Said]:
    used = memory.used
    yield Said(f"memory: {_bytes(used)}, of {size(memory.limit_bytes)}: {memory.fit.value}", role="value")
    for category, value in memory_parts(memory):
        figure = memory.categories.get(category)
        how = f", {_source(figure)}" if figure is not None else ": slack, context, communication's buffers"
        yield Said(f"{category}: {size(value)}{how}", depth=1)
    yield Said(f"allocated {_bytes(memory.allocated)}; reserved {_bytes(memory.reserved)}", depth=1)


def _seconds(figure: Figure) -> str:
    low, high = duration(figure.low * NS_PER_S), duration(figure.high * NS_PER_S)
    return f"{duration(figure.value * NS_PER_S)} ({low} to {high} in 90 % of outcomes)"


def _bytes(figure: Figure) -> str:
    return f"{size(figure.value)} ({size(figure.low)} to {size(figure.high)})"


def _source(figure: Figure) -> str:
    return f"{figure.source}{f': {figure.where}' if figure.where else ''}"
