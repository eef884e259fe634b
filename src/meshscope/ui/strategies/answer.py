"""What is known of all strategies of a scene at one moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from meshscope.analysis.contenders import Contender, contenders
from meshscope.analysis.gap_words import Winning, winning
from meshscope.analysis.scaling import Curve, scaling
from meshscope.analysis.standing import shares_cores
from meshscope.analysis.step_split import FEWEST
from meshscope.analysis.verdict import footnotes
from meshscope.run import Run
from meshscope.ui import header
from meshscope.ui.panel import Panel
from meshscope.ui.scene import Scene, so_far, version
from meshscope.units import counted


@dataclass(frozen=True, eq=False)
class Answer:
    """``waiting`` are planned and have not started. ``notes`` say what the figures rest on, the most important first.

    ``curves`` are those of a sweep. ``partial`` is as in the scene, ``mark`` as there for all runs together.
    """

    contenders: tuple[Contender, ...]
    waiting: tuple[str, ...]
    winning: Winning
    notes: tuple[str, ...]
    subject: str
    curves: tuple[Curve, ...] = ()
    partial: dict[str, float] = field(default_factory=dict)
    mark: str = ""

    def of(self, name: str) -> Contender | None:
        return next((one for one in self.contenders if one.name == name), None)

    @property
    def is_traced(self) -> bool:
        """Whether these are native traces, which tell of no step without a profiler."""
        return any(one.is_traced for one in self.contenders)


def question(scene: Scene) -> Answer:
    """Everything that the screen shows of a scene."""
    found = contenders(scene.runs)
    started = {one.name for one in found}
    waiting = tuple(name for name in scene.strategies if name not in started)
    return Answer(
        contenders=found,
        waiting=waiting,
        winning=winning(found, has_more=bool(waiting)),
        notes=_notes(scene, found),
        subject=header.subject(scene) if scene.is_recorded else counted(len(found), "run") + " of traces",
        curves=scaling(scene.runs, tuple(one.row for one in found)),
        partial=dict(scene.partial),
        mark=scene.overall_mark,
    )


def _notes(scene: Scene, found: Sequence[Contender]) -> tuple[str, ...]:
    notes = [f"{name}: {so_far(share)}." for name, share in scene.partial.items()]
    if scene.is_recorded:
        # Why somebody is not ranked stands beside them, and speedup over one device is not shown here.
        told = footnotes(scene.runs, tuple(one.row for one in found))
        notes += [note for note in told if "not ranked:" not in note and not note.startswith("×1 ")]
    else:
        notes.append("Times are of profiled steps: native traces hold no others. ± half the IQR over steps.")
    few = [one.name for one in found if one.split is not None and one.split.steps < FEWEST]
    if few:
        notes.append(f"Fewer than {FEWEST} steps were profiled of {', '.join(few)}: how far they scatter is not known.")
    untold = [one.name for one in found if one.split is not None and not one.split.tells_waiting]
    if untold:
        notes.append(f"Waiting for late ranks cannot be told from transfer in {', '.join(untold)}.")
    crowded = [run.name for run in scene.runs if _takes_turns(run)]
    turns = (
        "With fewer than two cores for each rank, threads that compute and threads that transfer take turns: what is "
        f"hidden or exposed is the scheduler's choice ({', '.join(crowded)})."
    )
    return (*notes[:1], *([turns] if crowded else []), *notes[1:])


def _takes_turns(run: Run) -> bool:
    return bool(run.windows) and not run.experiment.is_baseline and bool(run.experiment.cores) and shares_cores(run)


QUESTION = Panel(
    name="strategies",
    title="strategies",
    number=0,
    promise="Strategies side by side.",
    question=question,
    draw=lambda *_: [],
    depends=lambda scene: (
        scene.strategies,
        tuple(version(run) for run in scene.runs),
        tuple(scene.partial.items()),
    ),
    is_overall=True,
)
"""Asked as a panel's question is, one at a time; its drawing needs to know more than a panel's frame."""
