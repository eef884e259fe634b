"""The curves of a sweep on the screen of strategies: a line each, above the notes."""

from __future__ import annotations

from meshscope.analysis.scaling_words import ONE_RUN, in_short
from meshscope.ui.marks.cells import Line, wrapped
from meshscope.ui.strategies.answer import Answer
from meshscope.units import printable


def lines(answer: Answer, width: int) -> list[list[Line]]:
    """A block for each curve, and one for what all of them rest on; nothing where nothing was swept."""
    if not answer.curves:
        return []
    texts = [*map(in_short, answer.curves), ONE_RUN]
    return [_block(printable(text), width, "quiet" if text == ONE_RUN else "text") for text in texts]


def _block(text: str, width: int, role: str) -> list[Line]:
    return [[("  " if at else "▪ ", "accent"), (line, role)] for at, line in enumerate(wrapped(text, width - 2, 4))]
