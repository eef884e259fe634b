"""One step by itself: how long it took, and what it worked through in that time."""

from __future__ import annotations

import math

from meshscope.analysis.explaining.figure import (
    DIFFERENCE,
    LARGEST,
    MEAN_IN_ORDER,
    QUOTIENT,
    RATE,
    SUM,
    Figure,
    made,
)
from meshscope.analysis.explaining.number import Asked, Case
from meshscope.analysis.steps import Measured, finished_steps, tells_loss
from meshscope.run import Run

STEPPED = ("median_ns", "samples_per_s", "tokens_per_s", "data_wait_frac", "loss_last")
"""Fields of ``steps`` that one step has as well."""


def one_step(asked: Asked, step: int, field: str) -> tuple[Case, ...]:
    """One step: when it began and ended, and on which rank; or what it worked through in that time."""
    of = finished_steps(asked.run)
    at = [index for index, number in enumerate(of.number.tolist()) if number == step]
    if not at:
        return (Case(f"step {step}", None, why=f"not every rank has finished step {step}"),)
    table = asked.run.steps
    rows = (table.step == step).nonzero()[0].tolist()
    told = _of_step(asked.run, of, at[0], rows, field)
    if isinstance(told, str):
        return (Case(f"step {step}", None, why=told),)
    is_profiled = table.is_profiled[rows].any()
    notes = ("a profiler touched it: it is no measured step",) if is_profiled else ()
    return (Case(f"step {step}", told, notes=(_when(asked.run, rows), *notes)),)


def _when(run: Run, rows: list[int]) -> str:
    table = run.steps
    return "; ".join(
        f"rank {table.rank[row]} from {int(table.start_ns[row])} to {int(table.end_ns[row])} ns" for row in rows
    )


def _of_step(run: Run, of: Measured, at: int, rows: list[int], field: str) -> Figure | str:
    table, step = run.steps, int(of.number[at])
    length = _length(run, of, at, rows)
    if field == "median_ns":
        return length
    if field == "loss_last":
        tells = tells_loss(table)
        losses = [Figure(f"rank {table.rank[row]}", float(table.loss[row]), "") for row in rows if tells[row]]
        is_known = bool(losses) and all(math.isfinite(loss.value) for loss in losses)
        return made(f"loss of step {step}", MEAN_IN_ORDER, *losses, unit="") if is_known else "not recorded"
    if field == "data_wait_frac":
        return _waits(run, rows, step)
    what = "samples" if field == "samples_per_s" else "tokens"
    column = getattr(table, what)[rows]
    if (column < 0).any() or not length.value:
        return "not recorded" if length.value else "the step has no length"
    amount = made(f"{what} of all ranks", SUM, *(Figure(f"rank {table.rank[row]}", int(value), what)
                                                 for row, value in zip(rows, column.tolist(), strict=True)),
                  unit=what)  # fmt: skip
    return made(f"{what} of step {step}", RATE, amount, length, unit=f"{what}/s")


def _waits(run: Run, rows: list[int], step: int) -> Figure | str:
    """The mean over ranks of the share of the step that each waited for its batch."""
    table = run.steps
    if (table.data_wait_ns[rows] < 0).any():
        return "not recorded"
    each = [
        made(f"rank {table.rank[row]}", QUOTIENT, Figure("its wait", int(table.data_wait_ns[row])),
             Figure("its step", max(int(table.end_ns[row] - table.start_ns[row]), 1)), unit="frac")
        for row in rows
    ]  # fmt: skip
    return made(f"waiting for data in step {step}", MEAN_IN_ORDER, *each, unit="frac")


def _length(run: Run, of: Measured, at: int, rows: list[int]) -> Figure:
    table, step = run.steps, int(of.number[at])
    ends = [Figure(f"rank {table.rank[row]}", int(table.end_ns[row])) for row in rows]
    end = made(f"end of step {step}, on its last rank", LARGEST, *ends)
    begin = Figure("where its own share of the wall time begins", int(of.start_ns[at]))
    return made(f"step {step}", DIFFERENCE, end, begin)


def length(run: Run, step: int) -> Figure | None:
    """How long a step took; None where not every rank has finished it."""
    of = finished_steps(run)
    at = [index for index, number in enumerate(of.number.tolist()) if number == step]
    return _length(run, of, at[0], (run.steps.step == step).nonzero()[0].tolist()) if at else None
