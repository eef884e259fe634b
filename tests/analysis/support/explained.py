"""Numbers asked for by name, and their parts."""

from __future__ import annotations

from meshscope.analysis.explaining import explanations
from meshscope.analysis.explaining.figure import OPERATIONS, Figure, Value
from meshscope.analysis.explaining.number import Case
from meshscope.run import Run


def asked(of: Run, name: str, *, rank: int | None = None, step: int | None = None) -> tuple[Case, ...]:
    (found,) = explanations((of,), name, rank=rank, step=step)
    return found.cases


def only(of: Run, name: str, *, rank: int | None = None, step: int | None = None) -> Case:
    (case,) = asked(of, name, rank=rank, step=step)
    return case


def value(case: Case) -> Value:
    """The value, which its parts give."""
    assert case.figure is not None, case.why
    works_out(case.figure)
    return case.figure.value


def worth(of: Run, name: str, *, rank: int | None = None, step: int | None = None) -> Value:
    """The value of the only case."""
    return value(only(of, name, rank=rank, step=step))


def works_out(figure: Figure) -> None:
    """Every operation of a formula gives what the formula says it gives."""
    if figure.how:
        assert OPERATIONS[figure.how]([part.value for part in figure.of]) == figure.value, figure.name
    for part in figure.of:
        works_out(part)


def parts(case: Case) -> dict[str, Value]:
    assert case.figure is not None, case.why
    return {part.name: part.value for part in case.figure.of}
