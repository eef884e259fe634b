"""What was compiled again, in which step, how long that took and which input was not as before."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from textual.strip import Strip

from meshscope.analysis.compilation import Recompilation, compilation
from meshscope.analysis.compilation_words import reading, stages, traced_reading, who, why_words
from meshscope.analysis.traced_compilation import TracedCompilation, traced_compilation
from meshscope.run import Run
from meshscope.ui.about import compile as about
from meshscope.ui.marks.cells import Line, Piece, clip, strips, wrapped
from meshscope.ui.marks.cited import Cited
from meshscope.ui.marks.figures import Written, alike
from meshscope.ui.marks.table import Column, heading, placed
from meshscope.ui.marks.table import rows as table_rows
from meshscope.ui.panel import UNSTATED, Frame, Fresh, Panel, note
from meshscope.ui.scene import Scene
from meshscope.ui.words import steps_of
from meshscope.units import UNKNOWN, printable, time_unit

_STEP, _TOOK = Column("step", " step", 5), Column("took", "took", 9)
_WHO = Column("who", "rank", 5, rank=3, is_text=True)
_STAGES = Column("stages", "of it", 46, rank=5, is_text=True)
_WIDEST_NAME, _WIDEST_WHY = 32, 120
_INDENT = 7
_MOST_READING = 3


@dataclass(frozen=True)
class Row:
    """One line of the table, in words; ``is_warm_up`` is one that training settles by, ``number`` what explains it."""

    step: str
    took: str
    function: str
    who: str
    why: str
    stages: str = ""
    is_warm_up: bool = False
    number: str = ""


@dataclass(frozen=True)
class Compiles:
    """``reading`` is the one line to read first; "" while nothing was compiled. ``rows`` are ``again`` or ``traced`` in
    words.
    """

    reading: str = ""
    rows: tuple[Row, ...] = ()
    fresh: Fresh = UNSTATED
    is_storm: bool = False
    again: tuple[Recompilation, ...] = ()
    traced: tuple[TracedCompilation, ...] = ()


def question(scene: Scene) -> Compiles:
    """All recompilations of the run that is looked at, by step; of traces alone what each step compiled."""
    run = scene.run
    if run is None:
        return Compiles()
    found = compilation(run)
    if found.is_known:
        write = _written([one.duration_ns for one in found.again])
        rows = tuple(_row(run, at, one, write) for at, one in enumerate(found.again))
        return Compiles(reading(found), rows, _fresh(run, found.again), bool(found.storm), again=found.again)
    traced = traced_compilation(run)
    if not traced:
        return Compiles()
    write = _written([one.duration_ns for one in traced])
    rows = tuple(_traced(one, write) for one in traced)
    return Compiles(traced_reading(traced), rows, Fresh(of="traced"), traced=traced)


def _written(lengths_ns: Sequence[float]) -> Written:
    return alike(lengths_ns, time_unit(lengths_ns), _TOOK.width)


def _row(run: Run, at: int, one: Recompilation, write: Written) -> Row:
    early = "in warm-up: " if one.is_warm_up else ""
    return Row(
        step=str(one.step),
        took=write(one.duration_ns),
        function=one.function,
        who=who(run, one),
        why=early + why_words(one),
        stages=stages(one),
        is_warm_up=one.is_warm_up,
        number=f"compilation.again.{at}",
    )


def _traced(one: TracedCompilation, write: Written) -> Row:
    step = str(one.step) if one.step >= 0 else UNKNOWN
    return Row(step, write(one.duration_ns), f"{one.count} compiled", str(one.rank), "not in a trace")


def _fresh(run: Run, again: tuple[Recompilation, ...]) -> Fresh:
    if not again:
        return UNSTATED
    newest = max(entry.t_ns for entry in run.compiles if entry.is_recompilation)
    return Fresh(of=steps_of([one.step for one in again]), at_unix_ns=newest + run.experiment.t0_unix_ns)


def draw(answer: Compiles, frame: Frame) -> list[Strip]:
    """The reading, then the table; where it has more lines than room, those of the newest steps."""
    if not answer.reading:
        return note(PANEL.promise, frame)
    said = wrapped(printable(answer.reading), max(frame.width - 1, 1), _MOST_READING)
    lines: list[Line] = [[(" " + line, "warn" if answer.is_storm else "text")] for line in said]
    room = frame.height - len(lines) - 2
    if answer.rows and room > 0:
        lines += [[], *_table(answer.rows, room, frame)]
    return strips(lines, frame.width, frame.height, frame.look)


def _table(rows: tuple[Row, ...], room: int, frame: Frame) -> list[Line]:
    """What changed stands beside the rest where it fits, else on a line of its own below it."""
    beside = placed(_columns(rows, has_why=True), frame.width)
    fits = next((p.width >= p.column.width for p in beside if p.column.name == "why"), False)
    columns = beside if fits else placed(_columns(rows, has_why=False), frame.width)
    tall = 1 if fits else 2
    shown = rows if len(rows) * tall <= room else rows[-max((room - 1) // tall, 1) :]
    lines: list[Line] = [heading(columns)]
    if len(shown) < len(rows) and room > tall:
        lines.append([(f"  … {len(rows) - len(shown)} earlier", "quiet")])
    for one, line in zip(shown, table_rows(columns, [_line(one) for one in shown]), strict=True):
        lines.append(line)
        if not fits:
            lines.append([(" " * _INDENT + clip(printable(one.why), max(frame.width - _INDENT, 1)), "quiet")])
    return lines


def _columns(rows: tuple[Row, ...], *, has_why: bool) -> tuple[Column, ...]:
    """As wide as what they hold; without the stages where no framework here tells them apart."""
    name = max(8, min(_WIDEST_NAME, max(cell_len(printable(one.function)) for one in rows)))
    why = max(12, min(_WIDEST_WHY, max(cell_len(printable(one.why)) for one in rows)))
    found = [_STEP, _TOOK, Column("function", "function", name, rank=2, is_text=True, grows=True, most=name, least=8)]
    found.append(_WHO)
    if has_why:
        found.append(Column("why", "what changed", why, is_text=True, grows=True, most=why, least=12))
    if any(one.stages for one in rows):
        found.append(_STAGES)
    return tuple(found)


def _line(one: Row) -> dict[str, list[Piece]]:
    role = "quiet" if one.is_warm_up else "text"
    return {
        "step": [(one.step, role)],
        "took": [(one.took, Cited(role, one.number) if one.number else role)],
        "function": [(printable(one.function), role)],
        "who": [(one.who, role)],
        "why": [(printable(one.why), role)],
        "stages": [(one.stages, "quiet")],
    }


def _suits(scene: Scene) -> bool:
    """Where something compiled again: what was compiled before the first step stands beside the step time."""
    run = scene.run
    if run is None:
        return False
    if run.compiles:  # asked with every frame: told without working out what each compilation was
        return any(entry.is_recompilation and entry.stage == "compile" for entry in run.compiles)
    return bool(traced_compilation(run))


def depends(scene: Scene) -> Hashable:
    """The steps count too: the cost is a share of the training so far."""
    run = scene.run
    if run is None:
        return ()
    read = sum(window.counts.read for window in run.windows)
    return (run.path, len(run.compiles), len(run.steps), len(run.windows), read)


PANEL = Panel(
    name="compile",
    title="compiled again",
    number=10,
    promise="Steps that compiled again appear here: how long that took, and which input was not as before.",
    question=question,
    draw=draw,
    fresh=lambda answer: answer.fresh,
    depends=depends,
    of=("recording", "traces"),
    suits=_suits,
    help=about.HELP,
    data=lambda answer: about.compilations(answer.again, answer.traced),
)
