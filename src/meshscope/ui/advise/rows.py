"""The candidates as a table: what they are, whether they fit, how long a step takes, and what it holds."""

from __future__ import annotations

from dataclasses import replace

from meshscope.advisor.forecast import TimeForecast
from meshscope.advisor.ranking import Ranked
from meshscope.ui.advise.answer import Answer, fits, name
from meshscope.ui.advise.bars import Scale, memory_bar, memory_scale
from meshscope.ui.advise.state import State
from meshscope.ui.look import Look
from meshscope.ui.marks.cells import Line, Piece
from meshscope.ui.marks.table import Column, heading, placed, rows
from meshscope.units import NS_PER_S, UNKNOWN, milliseconds, percent, printable, rate, reach

_GB = 1e9
_KEPT = {"none": "none", "selective": "select", "full": "full"}

_COLUMNS = (
    Column("mark", "", 2, is_text=True),
    Column("strategy", "strategy", 17, is_text=True, grows=True, most=32, least=14, gap=1),
    Column("micro", "micro", 5, rank=6, gap=1),
    Column("kept", "ckpt", 6, rank=7, is_text=True),
    Column("fits", "fits", 5, is_text=True),
    Column("step", "ms/step", 7, gap=1),
    Column("reach", "90 % within", 14, rank=3),
    Column("tokens", "tokens/s", 9, rank=8),
    Column("mfu", "MFU", 6, rank=9),
    Column("bar", "memory", 12, rank=4, is_text=True, grows=True, most=48, least=10, yields=1),
    Column("held", "GB", 5, rank=2, gap=1),
)
_MARGIN = 2
"""Cells that stay free at the right, where a sign says that the list goes on."""


def table(answer: Answer, state: State, width: int, look: Look) -> tuple[Line, list[Line]]:
    """The headings, and a line for each candidate."""
    columns = placed([_titled(column, answer) for column in _COLUMNS], width - _MARGIN)
    bar = next((place.width for place in columns if place.column.name == "bar"), 1)
    scale = memory_scale([row.memory for row in answer.rows], bar)
    contents = [_content(answer, at, row, state, scale, look) for at, row in enumerate(answer.rows)]
    return heading(columns), [*rows(columns, contents)]


def _titled(column: Column, answer: Answer) -> Column:
    if column.name != "bar" or not answer.rows:
        return column
    limit = answer.rows[0].memory.limit_bytes / _GB
    return replace(column, heading=f"of {limit:.3g} GB")


def _content(answer: Answer, at: int, row: Ranked, state: State, scale: Scale, look: Look) -> dict[str, list[Piece]]:
    laid, word = row.candidate, fits(row)
    is_here = at == state.chosen
    text = "strong" if is_here else "text"
    micro = f"{laid.micro_batch:g}" + (f"×{laid.accumulate}" if laid.accumulate > 1 else "")
    return {
        "mark": [("▸" if is_here else " ", "accent"), ("✓" if at in state.marked else " ", "good")],
        "strategy": [(printable(name(row)), "strong" if is_here or row is answer.advice.choice else "text")],
        "micro": [(micro, text)],
        "kept": [(_KEPT[laid.checkpointing], text)],
        "fits": [word],
        "held": [(f"{row.memory.used.value / _GB:.3g}", text)],
        "bar": memory_bar(row.memory, scale, look),
        **_timed(row.time, text, is_tied=row.is_tied and row is not answer.advice.choice),
    }


def _timed(time: TimeForecast | None, role: str, *, is_tied: bool) -> dict[str, list[Piece]]:
    if time is None:
        return {"step": [(UNKNOWN, "faint")]}
    step = time.step_s
    within = reach(milliseconds(step.low * NS_PER_S), milliseconds(step.high * NS_PER_S)).replace(" to ", " … ")
    return {
        "step": [(milliseconds(step.value * NS_PER_S), role)],
        "reach": [(within, "quiet"), (" ≈" if is_tied else "  ", "quiet")],
        "tokens": [(rate(time.tokens_per_s), role)],
        "mfu": [(percent(time.mfu_frac), role)],
    }
