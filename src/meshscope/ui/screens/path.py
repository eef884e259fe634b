"""A line to type a path on; tab completes it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import ClassVar

from rich.cells import cell_len
from textual import events
from textual.binding import Binding, BindingType

from meshscope.ui.look import Look
from meshscope.ui.marks.cells import Line, right
from meshscope.ui.screens.dialog import Dialog
from meshscope.units import printable

_WIDTH = 60


class AskedPath(Dialog, inherit_bindings=False):  # a path may have a q in it
    """Answers with what was typed, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+c,ctrl+q", "answer(None)", show=False, priority=True),
        Binding("enter", "choose", show=False, priority=True),
        Binding("tab", "complete", show=False, priority=True),
        Binding("backspace", "erase(1)", show=False, priority=True),
        Binding("ctrl+u", "erase(9999)", show=False, priority=True),
    ]

    def __init__(self, look: Look, *, title: str, text: str = "") -> None:
        self.text = text
        super().__init__(title, (), look)

    def _drawn(self, width: int = _WIDTH) -> list[Line]:
        shown = printable(self.text[-9 * width :])
        while cell_len(shown) >= width:
            shown = "…" + shown[2:]
        caret = "_" if self._look.is_ascii else "█"
        return [
            [(shown, "strong"), (caret, "accent"), (" " * (width - cell_len(shown) - 1), "text")],
            [(right("tab completes   enter opens   esc cancels", width), "quiet")],
        ]

    def show(self) -> None:
        self._lines = self._drawn(max(min(_WIDTH, self.size.width - 4), 2))
        super().show()

    def _changed(self, text: str) -> None:
        self.text = text
        self.show()

    def on_key(self, event: events.Key) -> None:
        if event.character is not None and event.character.isprintable():
            event.stop()
            self._changed(self.text + event.character)

    def on_paste(self, event: events.Paste) -> None:
        event.stop()
        self._changed(self.text + event.text.strip().replace("\n", ""))

    def action_erase(self, count: int) -> None:
        self._changed(self.text[:-count])

    def action_complete(self) -> None:
        self._changed(completed(self.text))

    def action_choose(self) -> None:
        if self.text:
            self.dismiss(self.text)


def completed(text: str) -> str:
    """The text as far as all paths agree that begin with it; a folder ends in a slash."""
    expanded = os.path.expanduser(text)
    folder, _, start = expanded.rpartition("/")
    try:
        names = sorted(child.name for child in Path(f"{folder}/" if folder or expanded[:1] == "/" else ".").iterdir())
    except OSError:
        return text
    found = [name for name in names if name.startswith(start) and (start or not name.startswith("."))]
    if not found:
        return text
    common = os.path.commonprefix(found)  # noqa: RUF071  # of names, letter by letter, is what completing means
    path = f"{folder}/{common}" if "/" in expanded else common
    return path + "/" if len(found) == 1 and Path(path).is_dir() else path
