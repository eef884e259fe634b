"""What was alive at one moment as a small table: bytes, share, number, and the line that asked for it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from meshscope.analysis.allocations import Group, Holdings
from meshscope.ui.marks.cells import Line, clip, left, right
from meshscope.ui.marks.figures import alike, in_line
from meshscope.units import percent, printable, ratio, size, size_unit

_FIGURES, _COUNT, _SIZE = 19, 8, 9
_WIDE = 50
_LEAST = 3
_PLACE = re.compile(r":\d+ ")


def alive(found: Holdings, width: int, height: int) -> list[Line]:
    """A heading and as many sites as fit into ``height`` lines, what is left in the last; nothing under three lines."""
    if not found.count or height < _LEAST:
        return []
    room = height - 1
    groups = found.sites if len(found.sites) <= room else found.sites[: room - 1]
    rest = found.sites[len(groups) :]
    shown = [*((group, "text") for group in groups), *([(_together(rest, found.total_bytes), "quiet")] if rest else [])]
    sizes = [float(group.size_bytes) for group, _ in shown]
    write = alike(sizes, size_unit(sizes), _SIZE)
    lined = in_line([write(value) for value in sizes], _SIZE)
    heading: Line = [(clip(f" {_heading(found)}", width), "quiet")]
    return [heading, *(_row(group, text, width, role) for (group, role), text in zip(shown, lined, strict=True))]


def _together(rest: Sequence[Group], total_bytes: int) -> Group:
    size_bytes = sum(group.size_bytes for group in rest)
    return Group(
        f"{len(rest)} more sites", sum(group.count for group in rest), size_bytes, ratio(size_bytes, total_bytes)
    )


def _heading(found: Holdings) -> str:
    return f"alive at the {found.moment}, of {size(found.total_bytes)}, by who asked for it"


def _row(group: Group, held: str, width: int, role: str) -> Line:
    """Without the number of allocations where there is no room for it."""
    count = [(right(f"{group.count} ×", _COUNT), "quiet")] if width >= _WIDE else []
    room = max(width - _FIGURES - (_COUNT if count else 0), 4)
    return [
        (right(held, _SIZE), role),
        (right(percent(group.frac), 8), "quiet"),
        *count,
        ("  ", "text"),
        (left(_ending(printable(group.name), room), room), role),
    ]


def _ending(text: str, width: int) -> str:
    """A path gives way at its beginning, since its end tells more; words do at their end."""
    return "…" + text[len(text) - width + 1 :] if len(text) > width and _PLACE.search(text) else text
