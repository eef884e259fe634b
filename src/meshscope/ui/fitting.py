"""What is shown of a list, or of keys, where the terminal has too few cells for all of it."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from meshscope.ui.look import Look
from meshscope.ui.marks.cells import Line, Piece, filled, named

Key = tuple[str, str, int]
"""A key, what it does, and its rank: those of the highest rank go first, those of rank 0 stay."""


def seen(lines: Sequence[Line], at: int, room: int, width: int) -> list[Line]:
    """At most ``room`` lines around the one at ``at``.

    Lines that are left out above or below show as ▴ or ▾ in the last of ``width`` cells.
    """
    if len(lines) <= room:
        return list(lines)
    if room <= 0:
        return []
    first = min(max(at - room // 2, 0), len(lines) - room)
    shown = list(lines[first : first + room])
    if first > 0:
        shown[0] = [*filled(shown[0], width - 1), ("▴", "faint")]
    if first + room < len(lines):
        shown[-1] = [*filled(shown[-1], width - 1), ("▾", "faint")]
    return shown


def keys(given: Sequence[Key], width: int, look: Look) -> list[Piece]:
    """A line of keys, the less needed ones left out where they find no room."""
    kept = [(named(key, look), words, rank) for key, words, rank in given]
    while sum(cell_len(key) + len(words) + 3 for key, words, _ in kept) - 1 > width and max(rank for *_, rank in kept):
        kept.remove(max(kept, key=lambda entry: entry[2]))
    pieces: list[Piece] = [(" ", "text")]
    for key, words, _ in kept:
        pieces += [(key, "key"), (f" {words}  ", "quiet")]
    return pieces
