"""Which events of an xplane line carry a stat, without looking at all of them."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from meshscope.readers.xplane_lines import Piece
from meshscope.readers.xplane_space import Plane

Ints = npt.NDArray[np.int64]

_INSTRUCTION = re.compile(r"^%?[a-z][\w.-]*$")


class Carriers:
    """Goes along the pieces of one line. Of stats that are None, not in the plane, there are no carriers.

    Going through stats is costly, and most events are a thread pool's: of names that no instruction can have only the
    first event of the line is looked at.
    """

    def __init__(self, plane: Plane, *stats: int | None) -> None:
        self._names = plane.event_names
        self._stats = [stat for stat in stats if stat is not None]
        self._has_all = len(self._stats) == len(stats)
        self._known: dict[int, bool] = {}

    def of(self, piece: Piece) -> Ints:
        """Rows of the line's next piece that carry all of the stats."""
        if not self._has_all:
            return np.empty(0, dtype=np.int64)
        return self._carrying(piece, self._candidates(piece))

    def _candidates(self, piece: Piece) -> Ints:
        found, first, codes = np.unique(piece.metadata, return_index=True, return_inverse=True)
        numbers = found.tolist()
        new = np.array([number not in self._known for number in numbers], dtype=np.bool_)
        carries = set(self._carrying(piece, first[new]).tolist())
        for number, row in zip(found[new].tolist(), first[new].tolist(), strict=True):
            is_open = _INSTRUCTION.match(self._names.get(number, "")) is not None
            self._known[number] = is_open or row in carries
        is_candidate = np.array([self._known[number] for number in numbers], dtype=np.bool_)
        return np.flatnonzero(is_candidate[codes.reshape(-1)])

    def _carrying(self, piece: Piece, rows: Ints) -> Ints:
        for stat in self._stats:
            rows = rows[piece.events.carrying(rows, stat)]
        return rows
