"""The watch screen, which is also the replay screen: what happened up to where the clock stands."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, cast

from textual.binding import Binding, BindingType

from meshscope.errors import MeshscopeError
from meshscope.recording.control import Ask, ask
from meshscope.ui import header
from meshscope.ui.asking import BREATH_S
from meshscope.ui.commands import Command
from meshscope.ui.hands import Hands
from meshscope.ui.later import later
from meshscope.ui.look import Look
from meshscope.ui.marks.cells import Line, Piece
from meshscope.ui.panels import comparison
from meshscope.ui.panels.comparison import Standing
from meshscope.ui.playback import Playback
from meshscope.ui.scene import Scene, running
from meshscope.ui.screens.detaching import leaving
from meshscope.ui.screens.dialog import KEYS, Leaving
from meshscope.ui.screens.help import Pairs
from meshscope.ui.screens.keeping import Keeping
from meshscope.ui.view import PanelView
from meshscope.units import NS_PER_S

if TYPE_CHECKING:
    from meshscope.ui.app import MeshscopeApp
    from meshscope.ui.screens.beside import Beside

_STOP_PATIENCE_NS = 15 * NS_PER_S


def _beside() -> type[Beside]:
    from meshscope.ui.screens.beside import Beside

    return Beside


class Watch(Keeping):
    """Draws scenes as they come from a playback; keys move the clock, the selection and the focus."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "play", "pause", show=False),
        Binding("shift+left", "seek(-5)", "seek", show=False),
        Binding("shift+right", "seek(5)", "seek", show=False),
        Binding("home", "rewind", "beginning", show=False),
        Binding("end", "newest", "newest", show=False),
        Binding("L", "follow", "follow", show=False),
        Binding("less_than_sign,comma", "faster(-1)", "slower", show=False),
        Binding("greater_than_sign,full_stop", "faster(1)", "faster", show=False),
        Binding("p", "profile", "profile now", show=False),
    ]

    def __init__(self, playback: Playback, look: Look, *, fps: float = 4.0) -> None:
        super().__init__(look, Scene(None, (), playback.stance()), of="recording", fps=fps)
        self.playback = playback
        self._stance = self.scene.stance
        self._has_seen = False
        self._is_looking = False
        self._looked_s = -math.inf
        self._looker = Hands("meshscope-look")
        self._stopping_ns: int | None = None

    def on_mount(self) -> None:
        self._refresh()
        self._tick()
        self.tick_at(self._fps)

    def on_unmount(self) -> None:
        self._looker.close()

    # What the screen knows

    @property
    def standing(self) -> Standing | None:
        """The newest answer of the comparison; None as well once the screen is taken down."""
        if not self.children:
            return None
        answered = self._view(self._panels[0]).asking.answers.get("")
        return cast("Standing", answered.answer) if answered is not None and answered.error is None else None

    @property
    def is_at_rest(self) -> bool:
        """Whether everything that is known has been drawn."""
        stance = self.playback.stance()
        is_seen = self._has_seen and stance == self.scene.stance and not self.playback.is_due
        return is_seen and self.is_explained and not self._is_looking and self.is_told

    @property
    def selected(self) -> str:
        """Who is looked at: as chosen; else the one that runs, or the last that ran, or in the end the leader."""
        names = self.scene.strategies
        if self._choice in names:
            return self._choice or ""
        if self.scene.stance.is_at_end and self.standing is not None and self.standing.comparison.leader in names:
            return self.standing.comparison.leader
        started = [run.experiment.strategy for run in self.scene.runs]
        return running(self.scene) or (started[-1] if started else names[0] if names else "")

    # Looking and asking

    def _tick(self) -> None:
        """Follow the clock: fold what is new. While it just goes on, as often as what changes can be read."""
        self._leave_when_stopped()
        self._withdraw_question()
        self._fall_silent()
        stance = self.playback.stance()
        if stance == self.scene.stance and self._has_seen and not self.playback.is_due:
            return
        if not stance.goes_on_from(self.scene.stance) or time.monotonic() - self._looked_s >= BREATH_S:
            self._look()
        elif not stance.is_live:  # a live clock goes on with what is known
            self._stance = stance
            self._refresh_header()

    def _jump(self) -> None:
        """Look at once where the clock was put."""
        self._looked_s = -math.inf
        self._tick()

    def _look(self) -> None:
        """Fold what is known where the clock stands, unless that is under way."""
        if not self._is_looking:
            self._is_looking, self._looked_s = True, time.monotonic()
            self._errands.start(self._fold())

    async def _fold(self) -> None:
        try:
            scene = await self._looker.do(self.playback.scene)
        except MeshscopeError as error:
            cast("MeshscopeApp", self.app).fail(error)
            return
        finally:
            self._is_looking = False
        self._seen(scene)
        if math.isinf(self._looked_s):  # the clock was put elsewhere meanwhile
            self._tick()

    def _seen(self, scene: Scene) -> None:
        self._has_seen, self._stance = True, scene.stance
        self._look_at(scene)

    # Drawing

    def header_height(self, width: int) -> int:
        return header.height(width)

    def header_lines(self, width: int) -> list[Line]:
        return header.lines(replace(self.scene, stance=self._stance), self.standing, self.playback.stretches, width)

    def footer_line(self, width: int, *, is_small: bool) -> list[Piece]:
        if self._cell is not None:
            return self.explaining_footer(width)
        stance = self.scene.stance
        return header.footer(
            stance,
            width,
            self.look,
            is_running=self.playback.is_running,
            is_small=is_small,
            grip=self.grip,
        )

    def table_height(self) -> int:
        return (comparison.height(self.standing) if self.standing else len(self.scene.strategies) + 2) + 2

    # Keys

    def action_play(self) -> None:
        self.say("")
        self.playback.toggle()
        self._jump()

    def along(self, by: int) -> None:
        self.action_seek(by)

    def action_seek(self, share: int) -> None:
        before = self.playback.stance()
        if share > 0 and (before.is_at_end or before.is_live):
            self.say("This is the end of the recording." if before.is_at_end else "This is the newest there is.")
        elif share < 0 and before.now_unix_ns <= before.start_unix_ns:
            self.say("This is the beginning of the recording.")
        self.playback.seek_by(share)
        self._jump()

    def action_rewind(self) -> None:
        self.leave_place()
        self.playback.to_start()
        self._jump()

    def action_newest(self) -> None:
        self.leave_place()
        self.playback.to_end()
        self._jump()

    def action_follow(self) -> None:
        self.action_newest()
        self._choice = None

    def action_faster(self, by: int) -> None:
        self.say(self.playback.faster(by))
        self._jump()

    def action_profile(self) -> None:
        if not self.playback.is_running:
            self.say("This is a recording: there is nothing to profile.")
            return
        ask(self.playback.folder, Ask(what="profile", reason="key"))
        self.say("Asked every rank to profile the next steps.")

    @property
    def help_keys(self) -> Pairs:
        return KEYS

    @property
    def held_ns(self) -> int | None:
        return self.playback.clock.now() if self.playback.clock.is_paused else None

    def hold_at(self, unix_ns: int) -> None:
        self.playback.hold_at(unix_ns)
        self._jump()

    def commands(self) -> Iterator[Command]:
        yield from super().commands()
        yield Command("Pause, or go on", "At the end: from the beginning", self.action_play, "space")
        yield Command("Beginning", "Of what was recorded", self.action_rewind, "home")
        yield Command("Newest", "Live again, or the end", self.action_newest, "end")
        yield Command("Faster", "The clock of a recording", partial(self.action_faster, 1), ">")
        yield Command("Slower", "The clock of a recording", partial(self.action_faster, -1), "<")
        yield Command("Profile now", "Ask every rank for a trace of its next steps", self.action_profile, "p")
        yield Command("Prediction beside measurement", "Of this run: where the model was wrong", self.action_beside)
        yield Command("Quit", "Leave; a live run can be left running", self.action_leave, "q")

    def action_beside(self) -> None:
        """What the model of cost says of the run that is looked at, and what was measured."""
        run = self.scene.run
        if run is None:
            self.say("There is nothing measured yet to set a prediction beside.")
            return
        screen = later(_beside, self.say)
        if screen is not None:
            self.app.push_screen(screen(run, self.look))

    def action_leave(self) -> None:
        if self.playback.is_running and self._stopping_ns is None:
            self.app.push_screen(leaving(self.scene)(self.look), self._leave)
        else:
            cast("MeshscopeApp", self.app).leave(self)

    def _leave(self, how: str | None) -> None:
        if how == "leave":
            cast("MeshscopeApp", self.app).leave(self)
        elif how == "stop":
            ask(self.playback.folder, Ask(what="stop", reason="key"))
            self._stopping_ns = time.monotonic_ns()
            self.playback.to_end()
            self.say(leaving(self.scene).STOPPING)

    def _leave_when_stopped(self) -> None:
        """After a stop was asked for: go as soon as the recording has ended, or when patience has."""
        if self._stopping_ns is None:
            return
        if not self.playback.is_running or time.monotonic_ns() - self._stopping_ns > _STOP_PATIENCE_NS:
            cast("MeshscopeApp", self.app).leave(self)

    def _withdraw_question(self) -> None:
        """A run that ends by itself while it is asked about leaves nothing to decide."""
        if isinstance(self.app.screen, Leaving) and not self.playback.is_running:
            self.app.screen.dismiss(None)
            self.say("The run has ended; q leaves.")

    def on_panel_view_clicked(self, message: PanelView.Clicked) -> None:
        if self.is_pointed_at(message):
            return
        self.focus_on(message.panel.name)
        if message.panel.is_overall and self.standing is not None:
            strategy = comparison.strategy_at(self.standing, message.line)
            if strategy:
                self.choose(strategy)
