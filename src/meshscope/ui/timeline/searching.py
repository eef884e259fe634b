"""Spans by a piece of their name: which of each lane are meant, worked out once for a lane."""

from __future__ import annotations

from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from meshscope.analysis.lane_rows import Lane
from meshscope.analysis.lanes import WAITS, Lanes
from meshscope.kinds import Kind

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Search:
    """``names`` has, for every window of ``lanes``, which of its names are meant; ``collectives`` the same."""

    text: str
    lanes: Lanes
    names: tuple[Flags, ...]
    collectives: tuple[Flags, ...]
    _known: WeakKeyDictionary[Lane, tuple[Ints, Ints]] = field(default_factory=WeakKeyDictionary)

    def places(self, lane: Lane) -> Ints:
        """The places among the rows of a lane of those that are meant, in order."""
        return self._of(lane)[0]

    def begun_ns(self, lane: Lane) -> Ints:
        """When each of them begins."""
        return self._of(lane)[1]

    def _of(self, lane: Lane) -> tuple[Ints, Ints]:
        found = self._known.get(lane)
        if found is None:
            places = np.flatnonzero(self._matching(lane))
            found = self._known[lane] = (places, lane.rows.start_ns[places])
        return found

    def _matching(self, lane: Lane) -> Flags:
        rows = lane.rows
        found = np.zeros(len(rows), dtype=np.bool_)
        for number in np.unique(rows.window).tolist():
            if not (self.names[number].any() or self.collectives[number].any()):
                continue
            here = rows.window == number
            spans, row = self.lanes.windows[number].spans, rows.row[here]
            found[here] = self.names[number][spans.name[row]] | self.collectives[number][spans.collective[row]]
            if lane.role == WAITS:  # a collective that waits is on its own lane too
                found[here] &= spans.kind[row] == Kind.WAIT
        return found

    @property
    def count(self) -> int:
        """How many are meant on all lanes of all ranks."""
        return sum(len(self.places(lane)) for lane in self.lanes.lanes)


def search(lanes: Lanes, text: str) -> Search | None:
    """Names that hold a text, whatever its case; None for no text."""
    wanted = text.strip().casefold()
    if not wanted:
        return None
    tables: dict[int, Flags] = {}

    def flags(names: tuple[str, ...]) -> Flags:
        if id(names) not in tables:
            # The last is for −1: what has no name is not meant.
            tables[id(names)] = np.array([*(wanted in name.casefold() for name in names), False], dtype=np.bool_)
        return tables[id(names)]

    spans = [window.spans for window in lanes.windows]
    names, collectives = (flags(one.names) for one in spans), (flags(one.collectives) for one in spans)
    return Search(text.strip(), lanes, tuple(names), tuple(collectives))
