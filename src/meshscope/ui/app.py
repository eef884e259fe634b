"""The application: one of two doors where meshscope's own errors are caught, and the way out of the terminal."""

from __future__ import annotations

import asyncio
import gc
import io
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rich.console import Console
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.screen import Screen

from meshscope.analysis.simulation import SIMULATED
from meshscope.errors import MeshscopeError
from meshscope.recording.clock import Clock
from meshscope.run import Opening
from meshscope.ui.commanding import Commanding
from meshscope.ui.commands import Command
from meshscope.ui.driver import TALKING, TerminalDriver
from meshscope.ui.later import later
from meshscope.ui.look import Depth, Look, is_served
from meshscope.ui.options import Options
from meshscope.ui.playback import Playback, Reel
from meshscope.ui.screens.watch import Watch
from meshscope.units import printable

if TYPE_CHECKING:
    from meshscope.analysis.pairing import Changes
    from meshscope.ui.advise.form import Form
    from meshscope.ui.launching import Launcher
    from meshscope.ui.screens.advise import Advise
    from meshscope.ui.screens.traces import Traces

_SYSTEMS = {Depth.NONE: "standard", Depth.ANSI16: "standard", Depth.ANSI256: "256", Depth.TRUECOLOR: "truecolor"}
RUNS = Path("meshscope-runs")
"""Where recordings are written where nobody says where."""

_PATIENCE_S = 3.0
_GIVE_WAY_S = 0.001
"""How long a question in a thread may keep the interpreter: with Python's 5 ms a key waits several times as long."""

_YOUNG = 10_000
"""So many objects more than before have cycles looked for among them; with Python's 700 that is in every drawing."""

# What a program that draws may have switched on; each is harmless where it is off.
__all__ = ["MeshscopeApp", "Options", "advise", "compare", "open_traces", "run", "start", "watch"]

_RESTORE = "\x1b[<u" + "".join(f"\x1b[?{mode}l" for mode in (*TALKING, "1049")) + "\x1b[?7h\x1b[?25h\x1b[0m"


def collect_less() -> None:
    """Have Python look for garbage in cycles less often.

    What the modules hold stays for good: looking through it again and again finds nothing. A drawing makes thousands of
    objects, nearly all of which go without being looked for.
    """
    gc.freeze()
    gc.set_threshold(_YOUNG, *gc.get_threshold()[1:])


class MeshscopeApp(Commanding):
    """Shows one screen after another; its result is the line that the shell keeps."""

    ENABLE_COMMAND_PALETTE = True
    ALLOW_SELECT = False
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+q,ctrl+c", "quit", show=False)]

    _bug: Exception | None = None

    def __init__(self, options: Options, first: Callable[[MeshscopeApp], Screen[Any]]) -> None:
        super().__init__(options)
        self.failure: MeshscopeError | None = None
        self._first = first
        self.title = "meshscope"
        self.console = _console(options.look)

    def get_driver_class(self) -> type[Driver]:
        found = super().get_driver_class()
        return TerminalDriver if found is LinuxDriver else found

    def on_mount(self) -> None:
        sys.setswitchinterval(_GIVE_WAY_S)
        if not self.is_headless:
            collect_less()
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                loop.add_signal_handler(number, self._told_to_go, number)
        self.push_screen(self._first(self))
        if self.options.memory.notice:
            self.call_after_refresh(self.tell, self.options.memory.notice)

    def _told_to_go(self, number: int) -> None:
        """A signal: leave the terminal as it was, and the run as it is."""
        _last_resort(number)
        watched = next((screen for screen in self.screen_stack if isinstance(screen, Watch)), None)
        line = farewell(watched) if watched is not None and watched.is_running else ""
        self.exit(line, return_code=128 + number)

    def fail(self, error: MeshscopeError) -> None:
        """Leave because of something a person can act on; ``run`` raises it once the terminal is restored."""
        self.failure = error
        self.exit(return_code=1)

    def _handle_exception(self, error: Exception) -> None:
        if isinstance(error, MeshscopeError):
            self.fail(error)
        else:
            self._bug = error
            super()._handle_exception(error)

    def _fatal_error(self) -> None:
        """A bug: its traceback as Python writes it. Textual's draws every local variable, and a run is a large one."""
        # In a worker what is raised is being handled, and what it was wrapped in says less.
        found = sys.exc_info()[1] or self._bug
        told = "".join(traceback.format_exception(found)) + "This is a bug in meshscope: please report these lines."
        self._exit_renderables.append(Text("\n".join(map(printable, told.splitlines()))))
        self._close_messages_no_wait()

    def leave_with(self, line: str, *, code: int = 0) -> None:
        """Leave for good, with a line that remains in the shell and an exit code."""
        self.exit(printable(line), return_code=code)

    def leave(self, screen: Watch) -> None:
        """Leave for good, with the line that remains in the shell."""
        self.exit(farewell(screen))

    def watch_folder(self, folder: Path, reel: Reel) -> None:
        """Go on to the watch screen: a live run is followed, a recording plays from its beginning."""
        playback = Playback(folder, reel, Clock())
        if playback.clock.end_unix_ns is not None:
            playback.clock.speed = self.options.speed
            playback.to_start()
        self.switch_screen(Watch(playback, self.options.look, fps=self.options.fps))

    def action_advise(self) -> None:
        """Ask which way to train, over what is shown now."""
        screen = later(_advise, self.tell)
        if screen is not None and not any(isinstance(one, screen) for one in self.screen_stack):
            self.push_screen(screen(self.options.look, places=RUNS, is_first=False))

    def commands(self) -> Iterator[Command]:
        """What any screen offers, and the one screen that every other can be left for."""
        yield from super().commands()
        yield Command("Advise", "Which strategy for a model and a cluster; predicted, not measured", self.action_advise)

    def look_at_traces(self, opening: Opening) -> None:
        """Go on to the screen of traces that are opened by themselves."""
        screen = later(_traces, self.tell)
        if screen is not None:
            self.switch_screen(screen(opening, self.options.look, fps=self.options.fps))


def _advise() -> type[Advise]:
    from meshscope.ui.screens.advise import Advise

    return Advise


def _traces() -> type[Traces]:
    from meshscope.ui.screens.traces import Traces

    return Traces


def _console(look: Look) -> Console:
    """Textual's console, with the colours that the look decided on instead of those it would guess."""
    return Console(
        color_system=_SYSTEMS[look.depth],  # type: ignore[arg-type]
        file=io.StringIO(),
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
        force_terminal=True,
        safe_box=False,
        soft_wrap=False,
        _environ={key: value for key, value in os.environ.items() if key != "NO_COLOR"},
    )


def farewell(screen: Watch) -> str:
    """The line for the shell: the verdict, and where the recording is or how to come back to it."""
    folder = printable(str(screen.playback.folder))
    standing = screen.standing
    verdict = printable(standing.comparison.verdict) if standing is not None else ""
    kept = "Simulated" if screen.scene.overall_mark == SIMULATED else "Recorded"
    where = f"Still running: meshscope watch {folder}" if screen.playback.is_running else f"{kept} in {folder}"
    return f"{verdict} {where}".strip()


def watch(
    folder: Path,
    *,
    reel: Reel,
    options: Options,
    speed: float | None = None,
) -> str:
    """Show a folder until the user leaves; the line for the shell.

    Without ``speed`` the clock follows the newest (a live run); with it the recording plays from its beginning.
    Raises MeshscopeError with the terminal already restored, SystemExit after a signal or a crash.
    """
    clock = Clock()
    playback = Playback(folder, reel, clock)
    if speed is not None:
        clock.speed = speed
        clock.seek(clock.start_unix_ns)
    return run(MeshscopeApp(options, lambda _: Watch(playback, options.look, fps=options.fps)))


def open_traces(opening: Opening, *, options: Options) -> str:
    """Show traces while they are read, until the user leaves; the line for the shell. Raises like :func:`watch`."""
    screen = _traces()
    try:
        return run(MeshscopeApp(options, lambda _: screen(opening, options.look, fps=options.fps)))
    finally:
        opening.close()


def start(
    *,
    options: Options,
    launcher: Launcher,
    open_reel: Callable[[Path], Reel],
    open_path: Callable[[Path], Reel | Opening],
    places: Sequence[Path] = (),
) -> str:
    """Show the start screen, then what was picked there; the line for the shell, "" when nothing was.

    ``open_path`` opens whatever a path leads to; ``places`` are folders where recordings may stand. Raises like
    :func:`watch`.
    """
    # Only this screen needs capture's packages; a replay is on the screen sooner without them.
    from meshscope.ui.screens.start import Start
    from meshscope.ui.shelf import shelf

    first = Start(launcher, shelf(places), options.look, open_reel=open_reel, open_path=open_path)
    return run(MeshscopeApp(options, lambda _: first))


def compare(found: Changes, *, options: Options) -> None:
    """Show two runs side by side until the user leaves. Raises like :func:`watch`."""
    from meshscope.ui.screens.compare import Compare

    run(MeshscopeApp(options, lambda _: Compare(found, options.look)))


def advise(form: Form, *, options: Options, places: Path) -> str:
    """Ask which way to train until the user leaves; the line for the shell. ``places`` is where recordings go.

    Raises like :func:`watch`.
    """
    screen = _advise()
    return run(MeshscopeApp(options, lambda _: screen(options.look, form, places=places)))


def run(app: MeshscopeApp) -> str:
    """Run an application and leave the terminal as it was, whatever happens."""
    with _terminal_kept():
        line = app.run(mouse=app.options.has_mouse)
    if app.failure is not None:
        raise app.failure
    if is_served(os.environ):
        line = ""  # a browser keeps no line
    if app.return_code:
        _write_line(line or "")
        raise SystemExit(app.return_code)
    return line or ""


@contextmanager
def _terminal_kept() -> Iterator[None]:
    """Textual restores the terminal when it leaves in order; this is for when it does not get that far."""
    try:
        yield
    except BaseException:
        _restore()
        raise


def _write_line(line: str) -> None:
    """The line for the shell after a signal, unless the terminal is what went away."""
    if line and sys.__stdout__ is not None and sys.__stdout__.isatty():
        with suppress(OSError):
            os.write(sys.__stdout__.fileno(), f"{line}\n".encode(sys.__stdout__.encoding or "utf-8", "replace"))


def _restore() -> None:
    if sys.__stderr__ is not None and sys.__stderr__.isatty():
        os.write(sys.__stderr__.fileno(), _RESTORE.encode())


def _last_resort(number: int) -> None:
    """When leaving in order hangs (a terminal that is gone takes no output), leave anyway."""

    def go() -> None:
        with suppress(OSError):
            _restore()
        os._exit(128 + number)

    timer = threading.Timer(_PATIENCE_S, go)
    timer.daemon = True
    timer.start()
