"""Steps of a job that was attached to: it knows nothing of meshscope, so its traces have to tell them.

torch marks ``Optimizer.step#AdamW.step`` in every trace; from the end of one to the end of the next is a step. Ranks
begin their traces at moments of their own, so steps of several ranks are the same one where they end at the same time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import msgspec
import numpy as np
import numpy.typing as npt

from meshscope.experiment import Experiment
from meshscope.spans import Window

Ints = npt.NDArray[np.int64]

OPTIMIZER = "Optimizer.step#"
_UNMARKED = {
    "torch": "the trace marks no step: torch marks the optimizer's, and fewer than two of them lie in it",
    "jax": "the trace marks no step: jax.profiler.StepTraceAnnotation around a step in the job marks it",
}
_ELSEWHERE = "its steps cannot be told apart from those of the other ranks: its host has a clock of its own"


def with_steps(windows: Iterable[Window], attached: Collection[str]) -> tuple[Window, ...]:
    """Windows whose source is among ``attached`` and that have no steps get those that their traces mark.

    They are numbered from 0 on in order of time. Where there are none, ``cannot_say`` says why.
    """
    found = tuple(windows)
    bare = [window for window in found if window.source in attached and not window.steps and window.is_complete]
    numbered: dict[Window, Window] = {}
    first = 0
    for together in _rounds([window for window in bare if len(_ends(window)) > 1]):
        placed = _aligned(together)
        least = min(place.offset for place in placed)
        for place in placed:
            numbered[place.window] = _stepped(place.window, first + place.offset - least)
        first += max(place.offset - least + len(_ends(place.window)) - 1 for place in placed)
    return tuple(numbered[window] if window in numbered else _told(window, bare) for window in found)


@dataclass(frozen=True, eq=False)
class _Place:
    """``offset`` is how many steps later than the first rank's a window's first one is."""

    window: Window
    offset: int


_ENDS: WeakKeyDictionary[Window, Ints] = WeakKeyDictionary()
_STEPPED: WeakKeyDictionary[Window, tuple[int, Window]] = WeakKeyDictionary()
_TOLD: WeakKeyDictionary[Window, Window] = WeakKeyDictionary()


def _ends(window: Window) -> Ints:
    """When each update of the parameters ended, in order."""
    if window not in _ENDS:
        _ENDS[window] = _updates(window)
    return _ENDS[window]


def _updates(window: Window) -> Ints:
    """Of an optimizer within another the outer one counts; of several, the one that steps least often."""
    spans = window.spans
    is_named = np.array([name.startswith(OPTIMIZER) for name in spans.names], dtype=bool)
    rows = np.flatnonzero(is_named[spans.name]) if len(is_named) else np.empty(0, dtype=np.int64)
    if not len(rows):
        return np.empty(0, dtype=np.int64)
    order = rows[np.lexsort((-spans.end_ns[rows], spans.start_ns[rows]))]
    before_ns = np.maximum.accumulate(spans.end_ns[order])
    is_outer = np.append(True, spans.end_ns[order][1:] > before_ns[:-1])
    outer = order[is_outer]
    names, first, counts = np.unique(spans.name[outer], return_index=True, return_counts=True)
    chosen = names[np.lexsort((first, counts))[0]]
    return np.sort(spans.end_ns[outer][spans.name[outer] == chosen])


def _rounds(windows: Sequence[Window]) -> list[list[Window]]:
    """Windows of different ranks that were traced at one time, in order of time."""
    rounds: list[list[Window]] = []
    for window in sorted(windows, key=lambda window: (window.start_ns, window.rank)):
        last = rounds[-1] if rounds else []
        is_same = any(window.start_ns < other.end_ns for other in last)
        if last and is_same and all(other.rank != window.rank for other in last):
            last.append(window)
        else:
            rounds.append([window])
    return rounds


def _aligned(together: Sequence[Window]) -> list[_Place]:
    ordered = sorted(together, key=lambda window: window.rank)
    first = ordered[0]
    return [
        _Place(window, 0 if window is first else _shift(_ends(first), _ends(window)))
        for window in ordered
        if window.host == first.host
    ]


def _shift(reference_ns: Ints, ends_ns: Ints) -> int:
    """How many places later in ``reference_ns`` the ends nearest to ``ends_ns`` stand, by most of them."""
    after = np.clip(np.searchsorted(reference_ns, ends_ns), 1, len(reference_ns) - 1)
    is_before = ends_ns - reference_ns[after - 1] < reference_ns[after] - ends_ns
    places = after - is_before - np.arange(len(ends_ns))
    # Ends beyond the reference would all be nearest to its first or last one.
    within = (ends_ns >= reference_ns[0]) & (ends_ns <= reference_ns[-1])
    return int(np.median(places[within] if within.any() else places))


def _stepped(window: Window, first: int) -> Window:
    known = _STEPPED.get(window)
    if known is not None and known[0] == first:
        return known[1]
    ends_ns = _ends(window)
    bounds = np.stack((ends_ns[:-1], ends_ns[1:]), axis=1)
    numbers = np.arange(first, first + len(bounds))
    place = np.searchsorted(ends_ns, window.spans.start_ns, side="right") - 1
    is_inside = (place >= 0) & (place < len(bounds))
    step = np.where(is_inside, place + first, -1).astype(np.int32)
    why = "the job does not mark its steps: those told go from the end of one optimizer step to the end of the next"
    made = replace(
        window,
        steps=tuple(numbers.tolist()),
        step_ns=bounds,
        spans=replace(window.spans, step=step),
        cannot_say=(*window.cannot_say, ("steps", why)),
    )
    _STEPPED[window] = first, made
    return made


def _told(window: Window, bare: Sequence[Window]) -> Window:
    """A window that stays without steps says why."""
    if not any(window is other for other in bare):
        return window
    if window not in _TOLD:
        why = _ELSEWHERE if len(_ends(window)) > 1 else _UNMARKED.get(window.framework, "the trace marks no step")
        _TOLD[window] = replace(window, cannot_say=(*window.cannot_say, ("per_step", f"rank {window.rank}: {why}")))
    return _TOLD[window]


def counted(experiment: Experiment, windows: Sequence[Window]) -> Experiment:
    """The head of the recording with as many ranks as its traces tell, where it could not tell them itself."""
    if not experiment.is_attached or experiment.ranks:
        return experiment
    return msgspec.structs.replace(experiment, ranks=len({window.rank for window in windows}))
