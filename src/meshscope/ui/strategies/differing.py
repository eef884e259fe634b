"""What two strategies differ by: a line below the columns, and in words where the verdict is about others."""

from __future__ import annotations

from functools import lru_cache

from meshscope.analysis.contenders import Contender
from meshscope.analysis.gap import Delta, Gap, deltas, gap
from meshscope.analysis.gap_words import sentence
from meshscope.ui.marks.cells import Line, Piece, wrapped
from meshscope.ui.strategies import rows
from meshscope.ui.strategies.answer import Answer
from meshscope.ui.strategies.placing import Placing
from meshscope.ui.strategies.rows import signed
from meshscope.ui.strategies.state import State, compared
from meshscope.units import printable


def lines(answer: Answer, state: State, placed: Placing, width: int) -> list[Line]:
    """What the two that are looked at differ by, column by column; and in words, where the verdict is of others."""
    pair = compared(answer, state)
    if pair is None:
        return []
    first, second = pair
    found = deltas(first, second)
    label = printable(f"{second.name} − {first.name}")
    short = "B − A" if state.pair is not None else label
    drawn: list[Line] = [[], rows.differences(short, found, placed)]
    is_told = answer.winning.pair is not None and {first.name, second.name} == set(answer.winning.pair)
    words: list[Piece] = []
    if first.is_ranked and second.is_ranked and not is_told:
        known = _gap(answer, first, second)
        words += [(sentence(known), "text")] if known is not None else []
    if "span" in found and "step" in found and not answer.is_traced:
        words.append((_in_parts(found), "quiet"))
    for said, role in words:
        drawn += [[("     ", "text"), (text, role)] for text in wrapped(printable(said), width - 5, 3)]
    return drawn


def _gap(answer: Answer, first: Contender, second: Contender) -> Gap | None:
    """From the faster to the slower; those from the fastest of all are known already."""
    fast, slow = (first, second) if first.step_ns <= second.step_ns else (second, first)
    if fast.name == answer.winning.fastest and slow.name in answer.winning.gaps:
        return answer.winning.gaps[slow.name]
    return _other_gap(fast, slow)


_other_gap = lru_cache(maxsize=64)(gap)
"""It draws steps anew many times over to tell how sure it is: too much for every line that is drawn."""


def _in_parts(found: dict[str, Delta]) -> str:
    step, span = signed(found["step"].ns), signed(found["span"].ns)
    return f"The parts add up to {span} ms, by which profiled steps differ; unprofiled ones differ by {step} ms."
