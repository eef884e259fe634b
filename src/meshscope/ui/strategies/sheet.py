"""Strategies side by side as a table of plain values, as the screen shows them and at full precision."""

from __future__ import annotations

from meshscope.analysis.contenders import Contender
from meshscope.analysis.step_split import PARTS
from meshscope.ui.sheet import Sheet, Value, sheet, whole
from meshscope.ui.strategies.answer import Answer

_COLUMNS = (
    "strategy", "is_ranked", "not_ranked_why", "step_ns", "step_spread_ns", "profiled_step_ns", "profiled_steps",
    *(column for name in PARTS for column in (f"{name}_ns", f"{name}_spread_ns")),
    "samples_per_s", "peak_bytes",
)  # fmt: skip


def contenders_sheet(answer: Answer, order: tuple[str, ...]) -> Sheet:
    """A row per strategy in ``order``; of one that has not started there is its name alone.

    Exposed time is the whole of it: compute, hidden, exposed, copy and idle add up to the profiled step.
    """
    found = {one.name: one for one in answer.contenders}
    rows = [_row(found[name]) if name in found else [name, *[None] * (len(_COLUMNS) - 1)] for name in order]
    winning = answer.winning
    return sheet(_COLUMNS, rows, about={"verdict": winning.sentence, "fastest": winning.fastest or None})


def _row(one: Contender) -> list[Value]:
    split = one.split
    parts: list[Value] = []
    for name in PARTS:
        ns = None if split is None else split.exposed_ns if name == "exposed" else split.part_ns(name)
        parts += [ns, None if split is None or ns is None else split.spread_ns.get(name)]
    return [
        one.name, one.is_ranked, one.why or None, whole(one.step_ns), whole(one.step_spread_ns),
        split.span_ns if split else None, split.steps if split else None, *parts,
        one.row.samples_per_s, whole(one.row.peak_bytes),
    ]  # fmt: skip
