"""The line of keys below everything: those that are needed least are left out where they find no room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from meshscope.ui.marks.cells import Piece, cells, cut, middle_out
from meshscope.ui.marks.cited import Cell
from meshscope.units import printable

Key = tuple[str, str, int]
"""A key, what it does, and how early it is left out: 0 never is."""


@dataclass(frozen=True)
class Grip:
    """What the keys have hold of: ``chooses`` names what ↑↓ choose within the panel, "" where they choose a run."""

    chooses: str = ""
    is_maximised: bool = False
    findings: int = 0

    def choosing(self, run: str, rank: int) -> tuple[Key, ...]:
        """↑↓, and what chooses another ``run`` (no word: there is no other) where ↑↓ do not."""
        if not self.chooses:
            return (("↑↓", run, rank),) if run else ()
        return (("↑↓", self.chooses, min(rank, 1)), *((("[]", run, rank),) if run else ()))

    def entering(self, rank: int) -> Key:
        return ("enter", "back", 1) if self.is_maximised else ("enter", "maximise", rank)


LOOSE = Grip()


def pointed_at(keys: Sequence[tuple[str, str]], cell: Cell, run: str, width: int) -> list[Piece]:
    """The keys of a cursor and what it is on: the end of a name tells it from those beside it, so that is kept."""
    of = f" of {printable(run)}" + (f", rank {cell.rank}" if cell.rank >= 0 else "")
    wanted = cell_len(cell.number) + cell_len(of)
    kept = list(keys)
    while len(kept) > 2 and 1 + wanted + sum(cell_len(key) + cell_len(word) + 3 for key, word in kept) > width:
        del kept[-2]
    pieces: list[Piece] = [(" ", "text")]
    for key, word in kept:
        pieces += [(key, "key"), (f" {word}  ", "quiet")]
    room = width - cells(pieces)
    number = middle_out(cell.number, max(room - cell_len(of), room * 3 // 5))
    return cut([*pieces, (number + middle_out(of, room - cell_len(number)), "accent")], width)


def keybar(keys: Sequence[Key], width: int) -> list[Piece]:
    """As many of the keys as ``width`` has room for, in their order."""
    kept = list(keys)
    while sum(cell_len(key) + cell_len(word) + 3 for key, word, _ in kept) > width - 1 and max(r for *_, r in kept):
        kept.remove(max(kept, key=lambda entry: entry[2]))
    pieces: list[Piece] = [(" ", "text")]
    for key, word, _ in kept:
        pieces += [(key, "key"), (f" {word}  " if key else f"{word}  ", "warn" if "(" in word else "quiet")]
    return cut(pieces, width)
