"""What the critical path goes through by name: kernels, operators and collectives, and what of them is backward."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from meshscope.analysis.graph import Part
from meshscope.analysis.graph_run import RoundGraph
from meshscope.analysis.parts import per_window
from meshscope.analysis.path_pieces import NAMED, NAMES, Pieces
from meshscope.analysis.phase_names import BACKWARD, PHASES, UNKNOWN
from meshscope.analysis.phases import phase_of
from meshscope.analysis.places import places
from meshscope.spans import Window

Ints = npt.NDArray[np.int64]
Key = tuple[str, str]

_BACKWARD, _UNKNOWN = PHASES.index(BACKWARD), PHASES.index(UNKNOWN)


@dataclass(frozen=True)
class OnPath:
    """A kernel, operator or collective on the path: ``count`` of its spans, for ``total_ns``.

    An operator's time is its own, without that of those it calls. ``backward_ns`` of it was asked for in a backward
    pass, None where that is not known of all.
    """

    name: str
    part: str
    count: int
    total_ns: int
    backward_ns: int | None = None


def on_path(found: RoundGraph, pieces: Pieces) -> tuple[OnPath, ...]:
    """By time, longest first; those of a part add up to it."""
    count: Counter[Key] = Counter()
    total: Counter[Key] = Counter()
    backward: Counter[Key] = Counter()
    untold: set[Key] = set()
    named = pieces.where(np.isin(pieces.part, NAMED))
    for number, at in named.by_window():
        here, mine = found.ranges[number], named.where(at)
        codes = np.where(mine.row >= 0, here.spans.name[mine.row], -1)
        keys, place = np.unique(np.stack((codes, mine.part)), axis=1, return_inverse=True)
        place, phase = place.reshape(-1), np.append(phase_by_row(here.window), _UNKNOWN)[mine.row]
        # One operator is several pieces where others are called in it.
        rows, first = np.unique(mine.row, return_index=True)
        for one, (code, part) in enumerate(keys.T.tolist()):
            key = (here.spans.names[code] if code >= 0 else "", NAMES[Part(part)])
            is_its = place == one
            count[key] += int((is_its[first] & (rows >= 0)).sum())
            total[key] += int(mine.length_ns[is_its].sum())
            backward[key] += int(mine.length_ns[is_its & (phase == _BACKWARD)].sum())
            untold |= {key} if (phase[is_its] == _UNKNOWN).any() else set()
    by_time = sorted(total, key=lambda key: (-total[key], key))
    return tuple(OnPath(*key, count[key], total[key], None if key in untold else backward[key]) for key in by_time)


@per_window
def phase_by_row(window: Window) -> Ints:
    """The number of the phase in which each span was asked for, that of the unknown one where none is told; (n,)."""
    found = np.full(len(window.spans), _UNKNOWN, dtype=np.int64)
    phase = phase_of(window)
    if phase is not None:
        found[places(window).row] = phase
    return found
