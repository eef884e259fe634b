"""The watch screen, which is also the replay screen: what happened up to where the clock stands."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar, cast

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen

from meshscope.discovery import discover
from meshscope.errors import MeshscopeError
from meshscope.recording.control import Ask, ask
from meshscope.ui import header
from meshscope.ui.asking import Answered, in_thread
from meshscope.ui.canvas import Canvas
from meshscope.ui.layout import Arrangement, Rect, arrangement
from meshscope.ui.look import Look
from meshscope.ui.marks.cells import strip, strips
from meshscope.ui.panel import Frame, Panel
from meshscope.ui.panels import comparison
from meshscope.ui.panels.comparison import Standing
from meshscope.ui.playback import Playback
from meshscope.ui.scene import Scene, moved, running
from meshscope.ui.screens.dialog import Help, Leaving
from meshscope.ui.view import PanelView
from meshscope.units import NS_PER_S

if TYPE_CHECKING:
    from meshscope.ui.app import MeshscopeApp

LEAST = (80, 24)
_SAID_NS = 4 * NS_PER_S
_STOP_PATIENCE_NS = 15 * NS_PER_S


def panels() -> tuple[Panel, ...]:
    """Every panel there is, in the order of their numbers."""
    return tuple(sorted(discover("meshscope.ui.panels", "PANEL", Panel), key=lambda panel: panel.number))


class Watch(Screen[None]):
    """Draws scenes as they come from a playback; keys move the clock, the selection and the focus."""

    DEFAULT_CSS = """
    Watch { overflow: hidden; layers: base; }
    Watch Canvas { position: absolute; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "select(-1)", "previous strategy", show=False),
        Binding("down,j", "select(1)", "next strategy", show=False),
        Binding("tab", "focus_panel(1)", "next panel", show=False, priority=True),
        Binding("shift+tab", "focus_panel(-1)", "previous panel", show=False, priority=True),
        Binding("enter,m", "maximise", "maximise", show=False),
        Binding("escape", "restore", "show all", show=False),
        Binding("space", "play", "pause", show=False),
        Binding("left", "seek(-1)", "seek", show=False),
        Binding("right", "seek(1)", "seek", show=False),
        Binding("shift+left", "seek(-5)", "seek", show=False),
        Binding("shift+right", "seek(5)", "seek", show=False),
        Binding("home", "rewind", "beginning", show=False),
        Binding("end", "newest", "newest", show=False),
        Binding("L", "follow", "follow", show=False),
        Binding("less_than_sign,comma", "faster(-1)", "slower", show=False),
        Binding("greater_than_sign,full_stop", "faster(1)", "faster", show=False),
        Binding("p", "profile", "profile now", show=False),
        Binding("pageup", "scroll_lines(1)", "scroll", show=False),
        Binding("pagedown", "scroll_lines(-1)", "scroll", show=False),
        Binding("ctrl+l", "redraw", "draw again", show=False),
        Binding("question_mark,h", "help", "help", show=False),
        Binding("q,ctrl+c,ctrl+q", "leave", "quit", show=False, priority=True),
        *(Binding(str(number), f"focus_number({number})", show=False) for number in range(1, 10)),
    ]

    def __init__(self, playback: Playback, look: Look, *, fps: float = 4.0) -> None:
        super().__init__()
        self.playback = playback
        self.look = look
        self.scene = Scene(None, (), playback.stance())
        self._has_seen = False
        self._fps = fps
        self._panels = panels()
        self._choice: str | None = None
        self._focused = self._panels[1].name
        self._is_maximised = False
        self._scroll = 0
        self._is_looking = False
        self._said: tuple[int, str] = (0, "")
        self._stopping_ns: int | None = None
        self._placed: Arrangement | None = None
        self._placed_table = 0
        self._rects: dict[str, Rect | None] = {}

    def compose(self) -> ComposeResult:
        yield Canvas(id="header")
        for panel in self._panels:
            yield PanelView(panel)
        yield Canvas(id="footer")

    def on_mount(self) -> None:
        self._refresh()
        self._tick()
        self.set_interval(1 / self._fps, self._tick)

    def on_resize(self) -> None:
        self._refresh()

    # What the screen knows

    @property
    def standing(self) -> Standing | None:
        """The newest answer of the comparison."""
        answered = self._view(self._panels[0]).asking.answers.get("")
        return cast("Standing", answered.answer) if answered is not None and answered.error is None else None

    @property
    def is_at_rest(self) -> bool:
        """Whether everything that is known has been drawn."""
        stance = self.playback.stance()
        views = self.query(PanelView)
        is_seen = self._has_seen and stance == self.scene.stance and not self.playback.is_due
        return is_seen and not self._is_looking and all(view.asking.is_at_rest for view in views)

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

    def _view(self, panel: Panel) -> PanelView:
        return self.query_one(f"#{panel.name}", PanelView)

    # Looking and asking

    def _tick(self) -> None:
        """Follow the clock: fold what is new, unless that is already under way."""
        self._leave_when_stopped()
        self._withdraw_question()
        self._fall_silent()
        stance = self.playback.stance()
        is_changed = stance != self.scene.stance or not self._has_seen
        if not self._is_looking and (is_changed or self.playback.is_due):
            self._is_looking = True
            self._look()

    def _fall_silent(self) -> None:
        """Take away what was said once it has stood long enough, whatever the clock of the recording does."""
        if self._said[1] and time.monotonic_ns() - self._said[0] > _SAID_NS:
            self._said = (0, "")
            self._refresh_header()

    @work(exclusive=False, group="look")
    async def _look(self) -> None:
        try:
            scene = await in_thread(self.playback.scene)
        except MeshscopeError as error:
            cast("MeshscopeApp", self.app).fail(error)
            return
        finally:
            self._is_looking = False
        self._seen(scene)

    def _seen(self, scene: Scene) -> None:
        self._has_seen = True
        self.scene = scene
        self.scene = scene.looking_at(self.selected)
        self._refresh()
        self._ask()

    def _ask(self) -> None:
        """Put every panel's question that can be seen (and the comparison's, which the header needs)."""
        stance = self.scene.stance
        is_moving = not (stance.is_paused or stance.is_at_end)
        for panel in self._panels:
            view = self._view(panel)
            subject = "" if panel.is_overall else self.selected
            if not (panel.is_overall or view.display) or (is_moving and view.asking.is_fresh(subject)):
                continue
            if view.asking.want(self.scene.looking_at(subject)):
                self._question(view)

    @work(exclusive=False, group="question")
    async def _question(self, view: PanelView) -> None:
        await view.asking.ask(lambda answered: self._answered(view, answered))

    def _answered(self, view: PanelView, answered: Answered) -> None:
        if not view.panel.is_overall:
            self._show(view)
            return
        before = self.scene.selected
        self.scene = self.scene.looking_at(self.selected)
        if self.scene.selected != before or self._table() != self._placed_table:
            self._refresh()
            self._ask()
        else:
            self._refresh_header()
            self._show(view)

    # Drawing

    def _refresh(self) -> None:
        """Place everything for the size there is, and draw what has changed."""
        width, height = self.size
        if not width or not height:
            return
        self._placed_table = self._table()
        placed = arrangement(
            width,
            height,
            header=header.height(width),
            table=self._placed_table,
            names=[panel.name for panel in self._panels],
            focused=self._focused,
            is_maximised=self._is_maximised,
        )
        self._placed = placed
        for name in ("header", "footer", *(panel.name for panel in self._panels)):
            self._put(name, placed.of(name))
        self._refresh_header()
        for panel in self._panels:
            self._show(self._view(panel))

    def _table(self) -> int:
        """How many lines the comparison wants, its title and a blank below included."""
        return (comparison.height(self.standing) if self.standing else len(self.scene.strategies) + 2) + 2

    def _put(self, name: str, rect: Rect | None) -> None:
        if name in self._rects and self._rects[name] == rect:
            return
        self._rects[name] = rect
        canvas = self.query_one(f"#{name}", Canvas)
        canvas.display = rect is not None
        if rect is not None:
            canvas.styles.offset = (rect.x, rect.y)
            canvas.styles.width, canvas.styles.height = rect.width, rect.height

    def _refresh_header(self) -> None:
        width, height = self.size
        if self._placed is None:
            return
        lines = header.lines(self.scene, self.standing, self.playback.stretches, width)
        if self._said[1]:
            # Over the last line of the verdict: the rail below it stays.
            lines[-2] = [(" " + self._said[1], "warn")]
        self.query_one("#header", Canvas).paint(strips(lines, width, self._placed.header.height, self.look))
        is_small = width < LEAST[0] or height < LEAST[1]
        foot = header.footer(
            self.scene.stance, width, self.look, is_running=self.playback.is_running, is_small=is_small
        )
        self.query_one("#footer", Canvas).paint([strip(foot, width, self.look)])

    def _show(self, view: PanelView) -> None:
        rect = self._placed.panels.get(view.panel.name) if self._placed else None
        if rect is None or self._placed is None:
            return
        frame = Frame(
            width=rect.width,
            height=rect.height,
            look=self.look,
            now_unix_ns=self.scene.stance.now_unix_ns,
            selected=self.scene.selected,
            scroll=self._scroll if view.panel.name == "log" else 0,
        )
        is_last = view.panel.name == list(self._placed.panels)[-1]
        page = f" {self._placed.page + 1} of {self._placed.pages}" if self._placed.pages > 1 and is_last else ""
        view.show(frame, is_focused=view.panel.name == self._focused, page=page)

    def say(self, text: str) -> None:
        """Show a line for a few seconds."""
        self._said = (time.monotonic_ns(), text)
        self._refresh_header()

    # Keys

    def action_select(self, by: int) -> None:
        self.choose(moved(self.scene, by))

    def choose(self, strategy: str) -> None:
        """Look at a strategy from now on."""
        self._choice = strategy
        self.scene = self.scene.looking_at(self.selected)
        self._scroll = 0
        self._refresh()
        self._ask()

    def action_focus_panel(self, by: int) -> None:
        names = [panel.name for panel in self._panels]
        self.focus_on(names[(names.index(self._focused) + by) % len(names)])

    def action_focus_number(self, number: int) -> None:
        for panel in self._panels:
            if panel.number == number:
                self.focus_on(panel.name)

    def focus_on(self, name: str) -> None:
        self._focused = name
        self._refresh()
        self._ask()

    def action_maximise(self) -> None:
        self._is_maximised = not self._is_maximised
        self._refresh()
        self._ask()

    def action_restore(self) -> None:
        if self._is_maximised:
            self.action_maximise()

    def action_play(self) -> None:
        self.playback.toggle()
        self._tick()

    def action_seek(self, share: int) -> None:
        self.playback.seek_by(share)
        self._tick()

    def action_rewind(self) -> None:
        self.playback.to_start()
        self._tick()

    def action_newest(self) -> None:
        self.playback.to_end()
        self._tick()

    def action_follow(self) -> None:
        self._choice = None
        self.action_newest()

    def action_faster(self, by: int) -> None:
        self.playback.faster(by)
        self._tick()

    def action_scroll_lines(self, by: int) -> None:
        self._scroll = max(self._scroll + by * 5, 0)
        self._refresh()

    def action_profile(self) -> None:
        if not self.playback.is_running:
            self.say("This is a recording: there is nothing to profile.")
            return
        ask(self.playback.folder, Ask(what="profile", reason="key"))
        self.say("Asked every rank to profile the next steps.")

    def action_redraw(self) -> None:
        self.refresh(layout=True)

    def action_help(self) -> None:
        self.app.push_screen(Help(self.look))

    def action_leave(self) -> None:
        if self.playback.is_running and self._stopping_ns is None:
            self.app.push_screen(Leaving(self.look), self._leave)
        else:
            cast("MeshscopeApp", self.app).leave(self)

    def _leave(self, how: str | None) -> None:
        if how == "leave":
            cast("MeshscopeApp", self.app).leave(self)
        elif how == "stop":
            ask(self.playback.folder, Ask(what="stop", reason="key"))
            self._stopping_ns = time.monotonic_ns()
            self.playback.to_end()
            self.say("Stopping: every rank is being ended…")

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
        self.focus_on(message.panel.name)
        if message.panel.is_overall and self.standing is not None:
            strategy = comparison.strategy_at(self.standing, message.line)
            if strategy:
                self.choose(strategy)

    def on_panel_view_scrolled(self, message: PanelView.Scrolled) -> None:
        if message.panel.name == "log":
            self._scroll = max(self._scroll + message.by, 0)
            self._refresh()
