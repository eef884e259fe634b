"""A board that opens the timeline of its run, and keeps it up with what the board comes to know of that run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

from textual import work
from textual.binding import Binding, BindingType

from meshscope.analysis.findings import Finding
from meshscope.run import Run
from meshscope.spans import Window
from meshscope.ui import header
from meshscope.ui.absent import no_timeline
from meshscope.ui.asking import in_thread
from meshscope.ui.later import ChangedError, later, loading
from meshscope.ui.look import Look
from meshscope.ui.marks.cells import Piece
from meshscope.ui.scene import Scene, so_far
from meshscope.ui.screens.board import Board
from meshscope.units import printable

if TYPE_CHECKING:
    from meshscope.ui.screens.timeline import Timeline
    from meshscope.ui.screens.timeline_drawn import Kept
    from meshscope.ui.timeline.frame import Subject


class Timelining(Board):
    """``t`` opens it, where it was left. The clock goes on meanwhile: it shows what the board would show."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("t", "timeline", "timeline", show=False)]

    def __init__(self, look: Look, scene: Scene, *, of: str, fps: float) -> None:
        super().__init__(look, scene, of=of, fps=fps)
        self._timeline: Timeline | None = None
        self._laid: tuple[str, tuple[Window, ...]] = ("", ())
        self._is_laying = False
        self._left_at: dict[str, Kept] = {}

    @property
    def is_laid_out(self) -> bool:
        """Whether the timeline, if one is open, shows all that is known."""
        return self._timeline is None or not (self._is_laying or self._is_behind())

    def action_timeline(self) -> None:
        run = self.scene.run
        if run is None or not run.windows:
            self.say(no_timeline(self.scene))
            return
        self.say("Laying out the timeline…")
        self._open_timeline(run, self._chosen_finding())

    def _chosen_finding(self) -> Finding | None:
        """The one that is chosen in the panel that has the focus, where that is the one of the findings."""
        answered = self._view(self._panel("findings")).asking.answers.get(self.scene.selected)
        if self._focused != "findings" or not self._chooses_within or answered is None:
            return None
        found = answered.answer.findings
        return cast("Finding", found[min(self._picked, len(found) - 1)])  # a live run may have lost some since

    @work(exclusive=True, group="timeline")
    async def _open_timeline(self, run: Run, finding: Finding | None) -> None:
        screen = later(_timeline, self.say)
        if screen is None:
            return
        try:
            subject = await in_thread(lambda: _subject(run))
        except ChangedError as error:
            self.say(f"{error.message} {error.hint}")
            return
        self.say("")
        if self.app.screen is not self:
            return
        if subject is None:
            self.say("There is no timeline: what was profiled holds nothing that lasts.")
            return
        self._laid = (run.name, run.windows)
        subject = replace(subject, badge=self._badge())
        kept = self._left_at.get(run.name)
        self._timeline = screen(subject, self.look, folder=_folder(run), finding=finding, kept=kept)
        self.app.push_screen(self._timeline, self._left)

    def _left(self, _: None) -> None:
        if self._timeline is not None and self._timeline.kept is not None:
            self._left_at[self._laid[0]] = self._timeline.kept
        self._timeline = None

    # Following the clock

    def _look_at(self, scene: Scene) -> None:
        super()._look_at(scene)
        timeline = self._timeline
        if timeline is None:
            return
        if self._is_behind() and not self._is_laying:
            self._is_laying = True
            self._lay_out()
        elif timeline.subject is not None and timeline.subject.badge != self._badge():
            timeline.renew(replace(timeline.subject, badge=self._badge()))

    def _run(self) -> Run | None:
        return next((run for run in self.scene.runs if run.name == self._laid[0]), None)

    def _is_behind(self) -> bool:
        run = self._run()
        return (run.windows if run is not None else ()) != self._laid[1]

    def _badge(self) -> Piece | None:
        """How much of the trace is read, where that goes on; how the clock stands, where it is not at its end."""
        name, stance = self._laid[0], self.scene.stance
        if name in self.scene.partial:
            return so_far(self.scene.partial[name]), "warn"
        return None if stance.is_at_end else header.badge(stance)

    @work(exclusive=False, group="following")
    async def _lay_out(self) -> None:
        # One at a time, and then the newest: see meshscope.ui.asking.
        try:
            while (timeline := self._timeline) is not None and self._is_behind():
                run = self._run()
                subject = await in_thread(lambda run=run, timeline=timeline: _prepared(run, timeline))  # type: ignore[misc]
                self._laid = (self._laid[0], run.windows if run is not None else ())
                if timeline is self._timeline and timeline.is_attached:
                    timeline.renew(replace(subject, badge=self._badge()) if subject is not None else None)
        finally:
            self._is_laying = False


def _timeline() -> type[Timeline]:
    from meshscope.ui.screens.timeline import Timeline

    return Timeline


def _subject(run: Run) -> Subject | None:
    # Loaded once somebody looks: the first drawing does not wait for it.
    with loading():
        from meshscope.analysis.lanes import lanes
        from meshscope.analysis.waiting import waiting
        from meshscope.ui.timeline.frame import Subject

    found = lanes(run)
    return Subject(found, waiting(run), printable(run.name)) if found is not None else None


def _prepared(run: Run | None, timeline: Timeline) -> Subject | None:
    """With what the timeline shows of it worked out, so that no key waits for that."""
    subject = _subject(run) if run is not None else None
    if subject is not None:
        timeline.prepare(subject.lanes)
    return subject


def _folder(run: Run) -> Path | None:
    """Where bookmarks are kept: beside a recording; traces by themselves have no folder of ours."""
    return Path(run.path) if run.experiment.strategy and Path(run.path).is_dir() else None
