"""The recordings that stand around: bundled ones, and those in folders where runs are usually written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from meshscope.discovery import bundled
from meshscope.errors import MeshscopeError
from meshscope.recording.layout import EXPERIMENT, PLAN, read_experiment, read_plan

MOST = 40


@dataclass(frozen=True)
class Shelved:
    """A folder that can be replayed (or rejoined), and what is in it. ``is_simulated``: nothing of it ever ran."""

    folder: Path
    started_unix_ns: int
    model: str
    strategies: tuple[str, ...]
    is_bundled: bool = False
    is_simulated: bool = False


def shelf(places: Iterable[Path]) -> tuple[Shelved, ...]:
    """Recordings in ``places`` and one level below, newest first, then the bundled ones, simulated ones last.

    Damaged ones are left out.
    """
    own = [found for place in places for found in _in(place, is_bundled=False)]
    own.sort(key=lambda found: -found.started_unix_ns)
    try:
        given = _in(bundled("recordings"), is_bundled=True)
    except MeshscopeError:
        given = []
    return (*own[:MOST], *sorted(given, key=lambda found: found.is_simulated))


def _in(place: Path, *, is_bundled: bool) -> list[Shelved]:
    if not place.is_dir():
        return []
    candidates = [place, *sorted(child for child in place.iterdir() if child.is_dir())]
    found = (_shelved(folder, is_bundled=is_bundled) for folder in candidates)
    return [shelved for shelved in found if shelved is not None]


def _shelved(folder: Path, *, is_bundled: bool) -> Shelved | None:
    try:
        if (folder / PLAN).is_file() and (plan := read_plan(folder)) is not None:
            names = tuple(run.strategy for run in plan.runs)
            return Shelved(folder, plan.t0_unix_ns, plan.model, names, is_bundled, plan.is_simulated)
        if (folder / EXPERIMENT).is_file():
            head = read_experiment(folder)
            is_drawn = head.simulated is not None
            return Shelved(folder, head.t0_unix_ns, head.model, (head.strategy,), is_bundled, is_drawn)
    except MeshscopeError:
        return None
    return None
