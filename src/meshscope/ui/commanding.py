"""What the application does on any screen: commands by name, saving what is shown, and switching how it is shown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Protocol, runtime_checkable

from textual.app import App
from textual.theme import Theme

from meshscope.ui import clipboard, palette, saving, switching
from meshscope.ui.commands import Command, Commanded
from meshscope.ui.legend import legend
from meshscope.ui.look import Look
from meshscope.ui.options import Options
from meshscope.ui.picture import cells, picture, text
from meshscope.ui.screens.dialog import Dialog
from meshscope.ui.screens.palette import Palette
from meshscope.units import printable


@runtime_checkable
class Saying(Protocol):
    """A screen with a place for a line that goes by itself."""

    def say(self, text: str) -> None: ...


class Commanding(App[str]):
    """An application with options, which its screens and its commands may switch."""

    _worn: Theme | None = None

    def __init__(self, options: Options) -> None:
        super().__init__(ansi_color=not options.look.is_painted)
        self.options = options
        self._wear_theme(options.look)

    @property
    def current_theme(self) -> Theme:
        """The one theme that is worn; Textual would look it up by name for every line it paints."""
        return self._worn or super().current_theme

    def _wear_theme(self, look: Look) -> None:
        self._worn = palette.theme(look)
        self.register_theme(self._worn)
        self.theme = self._worn.name

    def copy_to_clipboard(self, text: str) -> None:
        """As much as a terminal takes, inside tmux too."""
        text = clipboard.fitting(text)
        super().copy_to_clipboard(text)
        passed = clipboard.passed_through(text)
        if passed and self._driver is not None:  # by the way that Textual writes the sequence itself
            self._driver.write(passed)

    # Commands by name

    def action_command_palette(self) -> None:
        """Offer everything that can be done here, by name. A dialog is answered first."""
        if isinstance(self.screen, Dialog):
            return
        found = {one.title: one for one in self.commands()}
        asked = Palette(tuple(found.values()), self.options.look)
        self.push_screen(asked, lambda title: found[title].run() if title else None)

    def commands(self) -> Iterator[Command]:
        """What the screen offers, and what can be done on every screen."""
        screen, look = self.screen, self.options.look
        if isinstance(screen, Commanded):
            yield from screen.commands()
        yield Command("Picture", "Save this screen as an SVG picture", self.action_picture)
        yield Command("Text", "Save the characters of this screen", partial(self.save_screen, "txt"))
        if isinstance(screen, switching.Wearing):
            side = "Light" if look.is_dark else "Dark"
            yield Command(f"{side} colours", "Instead of these", self.action_turn_light, "T")
            letters = "Block characters" if look.is_ascii else "ASCII characters"
            yield Command(letters, "Instead of these", partial(self.wear, switching.respelt(look)))
        for word, by in (("often", 1), ("seldom", -1)):
            at = switching.stepped(self.options.fps, by)
            yield Command(f"Look more {word}", f"At the clock, {at:g} times a second", partial(self.tick_at, at))
        yield Command("Forget settings", "What is remembered for the next start", self.action_forget)

    def save_screen(self, kind: str | None) -> None:
        """Save the screen beside where meshscope was started, as ``svg`` or ``txt``."""
        if kind is None:
            return
        content = picture(self) if kind == "svg" else self._told()
        try:
            self.tell(saving.told(saving.save(saving.stamped(kind), content)))
        except saving.SavingError as error:
            self.tell(error.message)

    def _told(self) -> str:
        """The characters of the screen, and below them what its textures mean."""
        found = legend(cells(self), self.options.look)
        return text(self) + ("\n" + "\n".join(found) + "\n" if found else "")

    def action_picture(self) -> None:
        self.save_screen("svg")

    def tell(self, line: str) -> None:
        """Show a line: on the screen where that has a place for one, else over it."""
        if isinstance(self.screen, Saying):
            self.screen.say(printable(line))
        else:
            self.push_screen(Dialog("meshscope", [[(printable(line), "text")]], self.options.look))

    # What can be switched

    def action_turn_light(self) -> None:
        """Light instead of dark, or the other way round."""
        if not self.options.look.is_painted:
            self.tell("With so few colours the background is the terminal's own: switch it there.")
            return
        self.wear(switching.turned(self.options.look))

    def wear(self, look: Look) -> None:
        """Draw every screen in another look from now on, and the next time too."""
        before, self.options = self.options.look, replace(self.options, look=look)
        self._wear_theme(look)
        for screen in self.screen_stack:
            if isinstance(screen, switching.Wearing):
                screen.wear(look)
        chosen: dict[str, object] = {}
        if look.is_dark != before.is_dark:
            chosen["theme"] = "dark" if look.is_dark else "light"
        if look.is_ascii != before.is_ascii:
            chosen["is_ascii"] = look.is_ascii
        self._keep(**chosen)

    def tick_at(self, fps: float) -> None:
        """Look at the clock so many times a second from now on, and the next time too."""
        self.options = replace(self.options, fps=fps)
        for screen in self.screen_stack:
            if isinstance(screen, switching.Ticking):
                screen.tick_at(fps)
        self._keep(fps=fps)

    def action_forget(self) -> None:
        self.tell(self.options.memory.forget())

    def _keep(self, **chosen: object) -> None:
        why_not = self.options.memory.keep(**chosen)
        if why_not:
            self.tell(why_not)
