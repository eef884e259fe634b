"""A widget that shows strips and repaints only what differs from the last ones."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_

from rich.cells import cell_len
from rich.segment import Segment
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget


class Canvas(Widget):
    """Holds one strip per line. ``paint`` replaces them; lines that stay the same are not sent again."""

    DEFAULT_CSS = "Canvas { width: auto; height: auto; }"

    can_focus = False

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002  # Textual's own name for it
        super().__init__(id=id)
        self._strips: list[Strip] = []

    @property
    def lines(self) -> list[str]:
        """The text that is shown."""
        return [strip.text for strip in self._strips]

    def paint(self, strips: list[Strip]) -> None:
        """Show these strips from now on."""
        before, self._strips = self._strips, strips
        if len(before) != len(strips):
            self.refresh()
            return
        if all(map(is_, before, strips)):
            return
        regions = [
            Region(start, y, end - start, 1)
            for y, (old, new) in enumerate(zip(before, strips, strict=True))
            if old is not new and (span := changed(list(old), list(new))) is not None
            for start, end in (span,)
        ]
        if regions:
            self.refresh(*regions)

    def render_line(self, y: int) -> Strip:
        return self._strips[y] if y < len(self._strips) else Strip.blank(self.size.width, self.rich_style)


def changed(old: Sequence[Segment], new: Sequence[Segment]) -> tuple[int, int] | None:
    """The cells ``[start, end)`` outside which two lines are the same; None when they do not differ at all."""
    if old == new:
        return None
    start = _common(old, new)
    width = sum(cell_len(segment.text) for segment in new)
    if width != sum(cell_len(segment.text) for segment in old):
        return start, width
    return start, max(width - _common_end(old, new), start + 1)


def _common(old: Sequence[Segment], new: Sequence[Segment]) -> int:
    """How many cells two lines share from the left."""
    at = 0
    for before, after in zip(old, new, strict=False):
        if before == after:
            at += cell_len(after.text)
            continue
        if before.style == after.style:
            at += cell_len(_prefix(before.text, after.text))
        break
    return at


def _common_end(old: Sequence[Segment], new: Sequence[Segment]) -> int:
    """How many cells two lines share from the right."""
    at = 0
    for before, after in zip(reversed(old), reversed(new), strict=False):
        if before == after:
            at += cell_len(after.text)
            continue
        if before.style == after.style:
            at += cell_len(_prefix(before.text[::-1], after.text[::-1]))
        break
    return at


def _prefix(one: str, other: str) -> str:
    for index, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return one[:index]
    return one[: min(len(one), len(other))]
