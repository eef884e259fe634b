"""Where everything goes for a terminal of a given size: a pure function, so that resizing is one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

MARGIN = 1
GAP = 3
LEAST_WIDTH = 36
SPACIOUS = 56
"""What comes after the strip holds tables of names: it gets seats of at least this width, where the terminal has it."""
WIDE_ENOUGH = 48
"""A fourth column comes only where each has this many cells."""

LEAST_HEIGHT = 9
TALL_ENOUGH = 13
"""Two rows may be low; a third comes only where each has this many lines, else panels take turns."""

STRIP_SHARE, ABOVE_STRIP = 5, 13
"""A strip takes a fifth of the lines, where that leaves the rows above it this many each."""


@dataclass(frozen=True)
class Rect:
    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True)
class Arrangement:
    """``panels`` holds a place for each panel that is seen; ``pages`` counts the sets that take turns."""

    header: Rect
    footer: Rect
    panels: dict[str, Rect] = field(default_factory=dict)
    page: int = 0
    pages: int = 1

    def of(self, name: str) -> Rect | None:
        """The place of the header, the footer or a panel; None where it is not seen."""
        return {"header": self.header, "footer": self.footer}.get(name) or self.panels.get(name)


def arrangement(
    width: int,
    height: int,
    *,
    header: int,
    table: int,
    names: Sequence[str],
    focused: str,
    is_maximised: bool = False,
    strip: str = "",
) -> Arrangement:
    """The comparison (the first of ``names``) above, the other panels in a grid below.

    Panels that find no room of LEAST_WIDTH × LEAST_HEIGHT take turns by page; the focused one is always seen.
    ``strip`` names a panel that reads across: where those before it fill whole rows and leave room, it gets a few lines
    below them, else a seat like any other. What comes after it has pages of its own.
    ``header`` and ``table`` are the lines wanted by the header and by the comparison's drawing with its title.
    """
    top = min(header, max(height - 2, 1))
    head, foot = Rect(0, 0, width, top), Rect(0, max(height - 1, 0), width, 1)
    inside = Rect(MARGIN, top, max(width - 2 * MARGIN, 1), max(height - 1 - top, 0))
    if is_maximised:
        return Arrangement(head, foot, {focused: inside})
    comparison, *others = names
    least = min(LEAST_HEIGHT, max(inside.height // 2, 1))
    own = max(min(table, inside.height - least), min(3, inside.height))
    places = {comparison: Rect(inside.x, inside.y, inside.width, own)}
    area = Rect(inside.x, inside.y + own, inside.width, inside.height - own)
    if area.height < 3 or not others:
        return Arrangement(head, foot, places)
    pages = _pages(area, others, strip)
    page = next((number for number, seated in enumerate(pages) if focused in seated), 0)
    return Arrangement(head, foot, places | pages[page], page, len(pages))


def _pages(area: Rect, names: Sequence[str], strip: str) -> list[dict[str, Rect]]:
    """Where everything goes on each page; what comes after the strip stands by itself, in wider seats."""
    at = names.index(strip) + 1 if strip in names else len(names)
    front = names[:at]
    seated = _above_strip(area, front) if strip in front else {}
    # No row is made for a strip that comes last.
    grid = _grid(area, len(front) - (len(front) > 1 and front[-1] == strip))
    return [*([seated] if seated else _turns(area, front, grid)), *_turns(area, names[at:], _grid(area, 3, SPACIOUS))]


def _turns(area: Rect, names: Sequence[str], grid: tuple[int, int]) -> list[dict[str, Rect]]:
    """Names in a grid of columns and rows, as many on a page as it has seats."""
    columns, rows = grid
    return [_seated(area, columns, names[at : at + columns * rows]) for at in range(0, len(names), columns * rows)]


def _above_strip(area: Rect, names: Sequence[str]) -> dict[str, Rect]:
    """All but the last of ``names`` in whole rows and the last below them; empty where that cannot be."""
    *seated, strip = names
    lines = area.height // STRIP_SHARE
    above = Rect(area.x, area.y, area.width, area.height - lines - 1)
    if not seated or above.height < LEAST_HEIGHT:
        return {}
    most, _ = _grid(above, len(seated))
    columns = next((columns for columns in range(most, 1, -1) if len(seated) % columns == 0), 1)
    if columns == 1 or above.height < len(seated) // columns * ABOVE_STRIP:
        return {}
    below = Rect(area.x, area.y + area.height - lines, area.width, lines)
    return _seated(above, columns, seated) | {strip: below}


def _grid(area: Rect, count: int, least_width: int = LEAST_WIDTH) -> tuple[int, int]:
    """Columns and rows of seats; a fourth column only where some panels would find no seat without it."""
    columns = max(min((area.width + GAP) // (least_width + GAP), 3, count), 1)
    rows = _rows(area, columns, count)
    if columns * rows < count and (area.width + GAP) // 4 - GAP >= max(WIDE_ENOUGH, least_width):
        return 4, _rows(area, 4, count)
    return columns, rows


def _rows(area: Rect, columns: int, count: int) -> int:
    return max(min(-(-count // columns), max(min(area.height // LEAST_HEIGHT, 2), area.height // TALL_ENOUGH)), 1)


def _seated(area: Rect, columns: int, names: Sequence[str]) -> dict[str, Rect]:
    """Names from left to right, then down; rows have a blank line between them."""
    lines = [names[at : at + columns] for at in range(0, len(names), columns)]
    places: dict[str, Rect] = {}
    y = area.y
    for index, line in enumerate(lines):
        left = len(lines) - index
        height = (area.y + area.height - y - (left - 1)) // left
        x = area.x
        for place, name in enumerate(line):
            width = (area.x + area.width - x - GAP * (len(line) - place - 1)) // (len(line) - place)
            places[name] = Rect(x, y, width, height)
            x += width + GAP
        y += height + 1
    return places
