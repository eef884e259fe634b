"""What the textures on a screen mean, for whoever has its characters alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rich.segment import Segment

from meshscope.ui.look import Look
from meshscope.ui.palette import BESIDE, BYTES, TIMES, styles, texture

_WORDS = {
    "compute": "compute",
    "hidden": "hidden under compute",
    "exposed": "exposed communication",
    "wait": "waiting",
    "launch": "launch to start",
    "mixed": "communication & waiting",
    "late": "late start",
    "data": "waiting for data",
}
_FEWEST = 2
"""Cells of one sign side by side that are a texture where no colour tells it from a sign in words."""


def legend(lines: Iterable[Sequence[Segment]], look: Look) -> list[str]:
    """A line for textures of time, and one for those of memory, of what is drawn; none where nothing is."""
    segments = [segment for line in lines for segment in line]
    found = []
    for what, meanings in (("time", (*TIMES, *BESIDE)), ("memory", BYTES)):
        drawn = [meaning for meaning in meanings if _is_drawn(meaning, segments, look)]
        if drawn:
            told = "  ".join(f"{texture(meaning, look)} {_WORDS.get(meaning, meaning)}" for meaning in drawn)
            found.append(f"textures of {what}: {told}")
    return found


def _is_drawn(meaning: str, segments: Sequence[Segment], look: Look) -> bool:
    """By its sign in its colour; without colours by its sign several times in a row."""
    sign, style = texture(meaning, look), styles(look)[meaning]
    if style is None or style.color is None:
        run = re.compile(re.escape(sign) + f"{{{_FEWEST},}}")
        return any(run.search(segment.text) for segment in segments)
    return any(
        segment.style is not None
        and segment.style.color == style.color
        and (style.bgcolor is None or segment.style.bgcolor == style.bgcolor)
        and segment.text.strip() != ""
        and set(segment.text) == {sign}
        for segment in segments
    )
