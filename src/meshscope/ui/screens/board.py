"""A header, panels in a grid, a footer: asks the panels' questions about a scene and draws what they answer.

What the scene comes from (a recording and its clock, traces while they are read) is its heirs' business.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen, Screen
from textual.timer import Timer

from meshscope.discovery import discover
from meshscope.ui.absent import no_letter, no_panel
from meshscope.ui.canvas import Canvas
from meshscope.ui.keybar import Grip
from meshscope.ui.later import later
from meshscope.ui.layout import Arrangement, Rect, arrangement
from meshscope.ui.look import Look
from meshscope.ui.marks.cells import Line, Piece, strip, strips
from meshscope.ui.marks.cited import Cell
from meshscope.ui.panel import Frame, Panel
from meshscope.ui.questions import Questions
from meshscope.ui.scene import Scene, moved
from meshscope.ui.view import PanelView
from meshscope.units import NS_PER_S

if TYPE_CHECKING:
    from meshscope.ui.screens.strategies import Strategies

LEAST = (80, 24)
_SAID_NS = 4 * NS_PER_S


def panels(of: str = "recording") -> tuple[Panel, ...]:
    """Every panel for recordings or for traces, in the order of their numbers."""
    found = discover("meshscope.ui.panels", "PANEL", Panel)
    return tuple(sorted((panel for panel in found if of in panel.of), key=lambda panel: panel.number))


class Board(Screen[None]):
    """Keys move the selection and the focus. The first panel is overall and stands above the others."""

    DEFAULT_CSS = """
    Board { overflow: hidden; layers: base; }
    Board Canvas { position: absolute; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "select(-1)", "previous", show=False),
        Binding("down,j", "select(1)", "next", show=False),
        Binding("left_square_bracket", "select_run(-1)", "previous run", show=False),
        Binding("right_square_bracket", "select_run(1)", "next run", show=False),
        Binding("tab", "focus_panel(1)", "next panel", show=False, priority=True),
        Binding("shift+tab", "focus_panel(-1)", "previous panel", show=False, priority=True),
        Binding("m", "maximise", "maximise", show=False),
        Binding("escape", "restore", "show all", show=False),
        Binding("f", "focus_named('findings')", "findings", show=False),
        Binding("c", "strategies", "compare", show=False),
        Binding("g", "turn", "group otherwise", show=False),
        Binding("pageup", "scroll_lines(1)", "scroll", show=False),
        Binding("pagedown", "scroll_lines(-1)", "scroll", show=False),
        Binding("ctrl+l", "redraw", "draw again", show=False),
        Binding("question_mark,f1", "help", "help", show=False),
        Binding("q,ctrl+c,ctrl+q", "leave", "quit", show=False, priority=True),
        *(Binding(str(number), f"focus_number({number})", show=False) for number in range(1, 10)),
        Binding("0", "focus_number(10)", show=False),
        *(Binding(key, f"focus_key('{key}')", show=False) for key in "KPI"),
    ]

    def __init__(self, look: Look, scene: Scene, *, of: str, fps: float) -> None:
        super().__init__()
        self.look = look
        self.scene = scene
        self._fps = fps
        self._panels = panels(of)
        self._choice: str | None = None
        self._focused = self._panels[1].name
        self._is_maximised = False
        self._scroll = 0
        self._picks: dict[str, int] = {}
        self._turns: dict[str, int] = {}
        self._said: tuple[int, str] = (0, "")
        self._placed: Arrangement | None = None
        self._placed_for: Hashable = None
        self._written: object = None
        self._placed_table = 0
        self._rects: dict[str, Rect | None] = {}
        self._ticks: Timer | None = None
        self._questions = Questions(self._panels, self._tell_news, self._fail)
        self._views = self._questions.views
        self._is_to_ask = False

    # What heirs say

    @property
    def selected(self) -> str:
        """Who is looked at."""
        raise NotImplementedError

    def _tick(self) -> None:
        """Look at what is new; called ``fps`` times a second once ``tick_at`` says so."""
        raise NotImplementedError

    def header_height(self, width: int) -> int:
        raise NotImplementedError

    def header_lines(self, width: int) -> list[Line]:
        """As many as ``header_height`` says; the last but one gives way to what ``say`` shows."""
        raise NotImplementedError

    def footer_line(self, width: int, *, is_small: bool) -> list[Piece]:
        raise NotImplementedError

    def table_height(self) -> int:
        """How many lines the overall panel wants, its title and a blank below included."""
        raise NotImplementedError

    # Showing a scene

    def compose(self) -> ComposeResult:
        yield Canvas(id="header")
        for panel in self._panels:
            yield self._view(panel)
        yield Canvas(id="footer")

    def on_resize(self) -> None:
        self._refresh()

    def on_screen_resume(self) -> None:
        """What came while another screen lay over this one."""
        if self._placed is not None:
            self._refresh()
            self._ask()

    def on_unmount(self) -> None:
        self._questions.close()

    @work
    async def _fail(self, error: BaseException) -> None:
        """Raise where Textual sees it."""
        raise error

    @property
    def is_covered(self) -> bool:
        """Whether another screen lies over all of this one; through a dialog it is still seen."""
        stack = self.app.screen_stack
        above = stack[stack.index(self) + 1 :] if self in stack else []
        return any(not isinstance(screen, ModalScreen) for screen in above)

    def tick_at(self, fps: float) -> None:
        """Look at the clock so many times a second from now on."""
        if self._ticks is not None:
            self._ticks.stop()
        self._fps = fps
        self._ticks = self.set_interval(1 / fps, self._tick)

    def _look_at(self, scene: Scene) -> None:
        if not self.children:  # taken down, while a look was under way
            return
        has_jumped = not scene.stance.goes_on_from(self.scene.stance)
        self.scene = scene
        self._views[self._panels[0].name].asking.recall(scene.looking_at(""))  # who is selected may depend on it
        self.scene = scene.looking_at(self.selected)
        if not self.is_covered:
            self._questions.recall(self.scene)
            self._refresh()
        if has_jumped:
            self._ask_once_painted()
        else:
            self._ask()

    def _view(self, panel: Panel) -> PanelView:
        return self._views[panel.name]

    def _fall_silent(self) -> None:
        """Take away what was said once it has stood long enough, whatever the clock of the recording does."""
        if self._said[1] and time.monotonic_ns() - self._said[0] > _SAID_NS:
            self._said = (0, "")
            self._refresh_header()

    def _ask_once_painted(self) -> None:
        """After a key: questions would take the interpreter from the painting of what is known already."""
        if not self._is_to_ask:
            self._is_to_ask = True
            self.call_after_refresh(self._ask_now)

    def _ask_now(self) -> None:
        self._is_to_ask = False
        if self.children:
            self._ask()

    def _ask(self) -> None:
        self._questions.put(self.scene, self.selected, is_covered=self.is_covered)

    @property
    def is_told(self) -> bool:
        """Whether the newest that was wanted has been answered and drawn."""
        return self._questions.is_told and not self._is_to_ask

    def _tell_news(self, news: set[PanelView]) -> None:
        if any(view.panel.is_overall for view in news) and self._is_replaced():
            return
        for view in news:
            self._show(view)
        if any(view.panel.is_overall or view.panel.is_told or view.panel.name == self._focused for view in news):
            self._refresh_header()

    def _is_replaced(self) -> bool:
        """Whether the overall answer has another run looked at, or another place for everything; then that is drawn."""
        before = self.scene.selected
        self.scene = self.scene.looking_at(self.selected)
        if self.scene.selected == before and self.table_height() == self._placed_table:
            return False
        self._refresh()
        self._ask()
        return True

    # Drawing

    def _shown(self) -> Sequence[Panel]:
        """The panels that have anything to do with what is looked at; one that reads across comes after the digits."""
        suiting = (panel for panel in self._panels if panel.suits(self.scene))
        return sorted(suiting, key=lambda panel: (panel.key != "", panel.is_strip))

    def _refresh(self) -> None:
        """Place everything for the size there is, and draw what has changed."""
        width, height = self.size
        if not width or not height:
            return
        self._place(width, height)
        self._refresh_header()
        for view in self._views.values():
            self._show(view)

    def _place(self, width: int, height: int) -> None:
        """Give everything its place, unless it has it already."""
        self._placed_table = self.table_height()
        shown = self._shown()
        names = tuple(panel.name for panel in shown)
        key = (width, height, self._placed_table, names, self._focused, self._is_maximised)
        if key == self._placed_for:
            return
        self._placed_for = key
        self._placed = arrangement(
            width,
            height,
            header=self.header_height(width),
            table=self._placed_table,
            names=names,
            focused=self._focused,
            is_maximised=self._is_maximised,
            strip=next((panel.name for panel in shown if panel.is_strip), ""),
        )
        for name in ("header", "footer", *names):
            self._put(name, self._placed.of(name))
        for panel in self._panels:
            if panel.name not in names:
                self._put(panel.name, None)

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
        if self._placed is None or not self.children:
            return
        lines = self.header_lines(width)
        if self._said[1]:
            # Over the last line of the verdict: the rail below it stays.
            lines[-2] = [(" " + self._said[1], "warn")]
        foot = self.footer_line(width, is_small=width < LEAST[0] or height < LEAST[1])
        written = (lines, foot, width, self._placed.header.height, self.look)
        if written == self._written:
            return
        self._written = written
        self.query_one("#header", Canvas).paint(strips(lines, width, self._placed.header.height, self.look))
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
            scroll=self._scroll if view.panel.scrolls else 0,
            picked=self._picks.get(view.panel.name, 0),
            turn=self._turns.get(view.panel.name, 0),
            caveat="" if view.panel.is_overall else self.scene.caveat,
            mark=self.scene.overall_mark if view.panel.is_overall else self.scene.mark,
        )
        is_last = view.panel.name == list(self._placed.panels)[-1]
        page = f" page {self._placed.page + 1} of {self._placed.pages}" if self._placed.pages > 1 and is_last else ""
        is_focused = view.panel.name == self._focused
        view.show(frame, is_focused=is_focused, page=page, of=self._told_of(view.panel), lit_cell=self.lit_cell(view))

    def _told_of(self, panel: Panel) -> str:
        """Whose a panel is, where that is not seen: it stands alone, or there are several and no table of them."""
        overall = self._panels[0].name
        is_seen = self._placed is not None and overall in self._placed.panels
        is_told = self._is_maximised or (not is_seen and len(self.scene.strategies) > 1)
        return self.scene.selected if is_told and not panel.is_overall else ""

    def lit_cell(self, view: PanelView) -> Cell | None:
        """The number in a panel that a cursor is on."""
        del view
        return None

    def say(self, text: str) -> None:
        """Show a line for a few seconds."""
        self._said = (time.monotonic_ns(), text)
        self._refresh_header()

    # Keys

    def action_select(self, by: int) -> None:
        if self._chooses_within:
            last = self.counted(self._focused) - 1
            self._picks[self._focused] = min(max(min(self._picked, last) + by, 0), last)
            self._show(self._view(self._panel(self._focused)))
        else:
            self.action_select_run(by)

    def action_select_run(self, by: int) -> None:
        """Another run, also where the panel that has the focus has things of its own to choose from."""
        self.choose(moved(self.scene, by))

    @property
    def _picked(self) -> int:
        """What is chosen within the panel that has the focus."""
        return self._picks.get(self._focused, 0)

    @property
    def _chooses_within(self) -> bool:
        """Whether the panel that has the focus has things of its own to choose from."""
        return self.counted(self._focused) > 0

    @property
    def grip(self) -> Grip:
        """What the keys have hold of now."""
        answer = self._answer(self._focused) if self._chooses_within else None
        within = self._panel(self._focused).chooses(answer) if answer is not None else ""
        return Grip(within, self._is_maximised, self.counted("findings"))

    def _panel(self, name: str) -> Panel:
        return next(panel for panel in self._panels if panel.name == name)

    def counted(self, name: str) -> int:
        """How many things the newest answer of a panel holds to choose from; 0 while it has not answered."""
        count, answer = self._panel(name).count, self._answer(name)
        return count(answer) if count is not None and answer is not None else 0

    def _answer(self, name: str) -> Any:
        """The newest answer of a panel about the run that is looked at, as it is grouped; None while there is none."""
        panel = self._panel(name)
        answered = self._view(panel).asking.answers.get(self.scene.selected)
        if answered is None or answered.error is not None:
            return None
        return panel.turned(answered.answer, self._turns.get(name, 0))

    def choose(self, name: str) -> None:
        """Look at a run from now on."""
        self._choice = name
        self.scene = self.scene.looking_at(self.selected)
        self._scroll = 0
        self._picks.clear()
        self._said = (0, "")
        self._refresh()
        self._ask_once_painted()

    def action_focus_panel(self, by: int) -> None:
        names = [panel.name for panel in self._shown()]
        at = names.index(self._focused) if self._focused in names else 0
        self.focus_on(names[(at + by) % len(names)])

    def action_focus_number(self, number: int) -> None:
        found = next((panel for panel in self._shown() if panel.number == number), None)
        if found is not None:
            self.focus_on(found.name)
        else:
            self.say(no_panel(self._panels, self.scene, number))

    def action_focus_key(self, key: str) -> None:
        panel = next(panel for panel in self._panels if panel.key == key)
        if panel.suits(self.scene):
            self.focus_on(panel.name)
        else:
            self.say(no_letter(panel, self.scene))

    def action_turn(self) -> None:
        """Group what the panel that has the focus shows in another way."""
        if (answer := self._answer(self._focused)) is not None and self._panel(self._focused).turned(
            answer, 1
        ) is answer:
            self.say(f"“{self._panel(self._focused).title}” groups nothing: K does.")
            return
        self._turns[self._focused] = self._turns.get(self._focused, 0) + 1
        self._picks.pop(self._focused, None)
        self._show(self._view(self._panel(self._focused)))
        self._refresh_header()

    def action_focus_named(self, name: str) -> None:
        if any(panel.name == name for panel in self._shown()):
            self.focus_on(name)
        else:
            self.say(no_panel(self._panels, self.scene, self._panel(name).number))

    def focus_on(self, name: str) -> None:
        self._focused = name
        self._said = (0, "")  # what was said of an earlier key says nothing of this place
        self._refresh()
        self._ask_once_painted()

    def action_maximise(self) -> None:
        self._is_maximised = not self._is_maximised
        self._refresh()
        self._ask_once_painted()

    def action_restore(self) -> None:
        if self._is_maximised:
            self.action_maximise()

    def action_scroll_lines(self, by: int) -> None:
        self._scroll = max(self._scroll + by * 5, 0)
        self._refresh()

    def action_strategies(self) -> None:
        if self.scene.is_of_traces and len(self.scene.runs) < 2:
            self.say("There is one run only: nothing to compare it with.")
            return
        screen = later(_strategies, self.say)
        if screen is not None:
            self.app.push_screen(screen(lambda: self.scene, self.look))

    def action_redraw(self) -> None:
        self.refresh(layout=True)

    def on_panel_view_scrolled(self, message: PanelView.Scrolled) -> None:
        if message.panel.scrolls:
            self._scroll = max(self._scroll + message.by, 0)
            self._refresh()


def _strategies() -> type[Strategies]:
    from meshscope.ui.screens.strategies import Strategies

    return Strategies
