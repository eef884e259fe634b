"""Which files are one run, told from their content first.

The ranks of one run are of one world, different from each other, and were traced at the same time. Files whose names
agree but for the rank are tried first, then those of one folder, then of the folders above, so that runs made side by
side stay apart. What fits two runs equally well is kept apart, and said: two runs merged would be a wrong answer. A
rank that comes twice is two recordings, also where one process was profiled twice: no file says that it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np

from meshscope.readers.naming import without_rank
from meshscope.run.copies import copies
from meshscope.run.hosts import is_one_session, numbered_hosts
from meshscope.run.unranked import foldered, ordered
from meshscope.spans import Window
from meshscope.units import gap_ranges, gaps

_CLEARLY = 4
"""How many times nearer in time the one partner must be than another for a file that two runs could claim."""

_MOST_RANKS = 1 << 20
"""Of a larger world, which no machine has, the missing ranks beyond are not named."""

_MOST_APART_NS = 60_000_000_000
"""Clocks further apart than this are no clocks that anybody set: the traces are of different times."""

_CLOCKS_APART = ("ranks", "ranks were traced at times apart, but are every rank of one world: taken as one run")
_AMBIGUOUS = "other ranks of this world were traced at the same time, and nothing tells whose they are: kept apart"


@dataclass(frozen=True, eq=False)
class Filed:
    """One file and its windows."""

    path: Path
    windows: tuple[Window, ...]

    @property
    def first(self) -> Window:
        return self.windows[0]

    @property
    def is_host(self) -> bool:
        """Whether the file is one host's, with a rank for each of its devices."""
        return self.first.rank_from == "device"

    @property
    def extent_ns(self) -> tuple[int, int]:
        return min(w.start_ns for w in self.windows), max(w.end_ns for w in self.windows)


@dataclass(frozen=True, eq=False)
class Group:
    """The files of one run, by rank, and what cannot be said of them together."""

    files: tuple[Filed, ...]
    cannot_say: tuple[tuple[str, str], ...] = ()

    @property
    def windows(self) -> tuple[Window, ...]:
        return tuple(window for file in self.files for window in file.windows)


def together(files: Sequence[Filed]) -> list[Group]:
    """The files as runs, in the order of their start. Files of one host's devices become ranks counted over hosts."""
    files = _foldered(sorted(files, key=lambda file: file.path))
    twice = copies(files)
    known = [file for file in files if file.path not in twice]
    groups, alone = ordered([file for file in known if file.first.rank_from == "order"])
    found = [Group(tuple(Filed(f.path, w) for f, w in group), why) for group, why in groups]
    found += [Group((file,)) for file in alone]
    found += _joined([file for file in known if file.first.rank_from != "order"])
    found += [Group((file,), (_copied(twice[file.path]),)) for file in files if file.path in twice]
    found = [_placed(group) for group in found]
    return sorted(found, key=lambda group: (min(file.extent_ns for file in group.files), group.files[0].path))


def _foldered(files: Sequence[Filed]) -> list[Filed]:
    """The files, with the rank that its folder's name says where one lies in it alone and says none itself."""
    count = Counter(file.path.parent for file in files)
    ranked = [foldered(file.path, file.windows) if count[file.path.parent] == 1 else () for file in files]
    return [Filed(file.path, windows) if windows else file for file, windows in zip(files, ranked, strict=True)]


def _copied(original: Path) -> tuple[str, str]:
    return "ranks", f"this is the same trace as {original}, a copy: not joined with the other ranks"


def _joined(files: Sequence[Filed]) -> list[Group]:
    groups = [Group((file,)) for file in sorted(files, key=lambda file: (file.extent_ns, file.path))]
    groups = _within(groups, lambda file: (file.path.parent, without_rank(file.path.name)), names_agree=True)
    depth = max((len(file.path.parts) for file in files), default=1)
    for up in range(depth - 1):
        groups = _within(groups, lambda file, up=up: file.path.parents[min(up, len(file.path.parents) - 1)])  # type: ignore[misc]
    return groups


def _within(groups: list[Group], key: Callable[[Filed], Hashable], *, names_agree: bool = False) -> list[Group]:
    """Joins the groups whose files share a key, where they are one run."""
    shared: dict[Hashable, list[Group]] = {}
    for group in groups:
        shared.setdefault(key(group.files[0]), []).append(group)
    return [joined for some in shared.values() for joined in _completed(_partners(some), names_agree=names_agree)]


def _completed(groups: list[Group], *, names_agree: bool) -> list[Group]:
    """Machines whose clocks are apart: groups that overlap nowhere, but together are every rank of one world, once.

    Their names agree but for the rank, or each of them names a machine of its own.
    """
    windows = [window for group in groups for window in group.windows]
    if len(groups) < 2 or any(group.files[0].is_host or not group.windows for group in groups):
        return groups
    worlds = {(window.framework, window.world, bool(window.simulated_by)) for window in windows}
    is_whole = len(worlds) == 1 and _is_every_rank(windows, windows[0].world)
    if not is_whole or not _are_different(groups) or not all(window.has_unix_time for window in windows):
        return groups
    machines = [host for group in groups for host in sorted({window.host for window in group.windows} - {""})]
    extents = sorted(_extent(group) for group in groups)
    apart_ns = max(later[0] - sooner[1] for sooner, later in pairwise(extents))
    are_named = all(window.host for window in windows)
    if len(set(machines)) < len(machines) or apart_ns > _MOST_APART_NS or not (names_agree or are_named):
        return groups  # one machine has one clock: what it traced at another time is another run
    merged = _merged(groups)
    return [replace(merged, cannot_say=(*merged.cannot_say, _CLOCKS_APART))]


def _partners(groups: list[Group]) -> list[Group]:
    if len(groups) < 2:
        return groups
    if _are_plainly_one(groups):
        return [_merged(groups)]
    fits = {(a, b) for a, b in combinations(range(len(groups)), 2) if _fits(groups[a], groups[b])}
    found: list[Group] = []
    for some in _components(len(groups), fits):
        if _are_different([groups[at] for at in some]):
            found.append(_merged(groups[at] for at in some))
        else:
            found += _nearest(groups, some, fits)
    return found


def _are_plainly_one(groups: list[Group]) -> bool:
    """Whether all fit each other, seen without looking at every pair: a thousand ranks are half a million pairs."""
    windows = [window for group in groups for window in group.windows]
    return (
        _are_different(groups)
        and not any(group.files[0].is_host for group in groups)
        and len({(w.framework, w.world, w.has_unix_time, bool(w.simulated_by)) for w in windows}) == 1
        and windows[0].has_unix_time
        and max(window.start_ns for window in windows) <= min(window.end_ns for window in windows)
    )


def _nearest(groups: list[Group], some: list[int], fits: set[tuple[int, int]]) -> list[Group]:
    """Groups of which several fit the same: joined where each is clearly nearest in time, else kept apart."""
    mutual = {
        (a, b) for a, b in fits if a in some and b in some and _is_clear(groups, a, b) and _is_clear(groups, b, a)
    }
    found: list[Group] = []
    for part in _components(len(groups), mutual):
        if part[0] not in some:
            continue
        members = [groups[at] for at in part]
        if _are_different(members):
            found.append(_merged(members) if len(members) > 1 else _doubted(members[0]))
        else:
            found += map(_doubted, members)
    return found


def _is_clear(groups: list[Group], a: int, b: int) -> bool:
    """Whether ``b`` is much nearer to ``a`` than any other that has one of b's ranks."""
    rivals = [g for at, g in enumerate(groups) if at not in (a, b) and not _are_different([g, groups[b]])]
    near_ns = _apart_ns(groups[a], groups[b])
    return all(near_ns * _CLEARLY <= _apart_ns(groups[a], rival) for rival in rivals)


def _apart_ns(a: Group, b: Group) -> int:
    (a0, a1), (b0, b1) = _extent(a), _extent(b)
    return abs(a0 - b0) + abs(a1 - b1)


def _doubted(group: Group) -> Group:
    if any(why == _AMBIGUOUS for _, why in group.cannot_say):
        return group
    return replace(group, cannot_say=(*group.cannot_say, ("ranks", _AMBIGUOUS)))


def _fits(a: Group, b: Group) -> bool:
    """Whether two groups are of one run by all that they say. Worlds that contradict each other are different runs."""
    one, other = a.files[0], b.files[0]
    if one.first.framework != other.first.framework or not _are_different([a, b]):
        return False
    if bool(one.first.simulated_by) != bool(other.first.simulated_by):
        return False
    if one.is_host or other.is_host:
        return one.is_host and other.is_host and is_one_session(a.files, b.files)
    has_time = all(window.has_unix_time for group in (a, b) for window in group.windows)
    return has_time and _is_one_world(a, b) and _overlap(a, b)


def _is_one_world(a: Group, b: Group) -> bool:
    worlds = {window.world for group in (a, b) for window in group.windows}
    return len(worlds) == 1 or (len(worlds - {0}) == 1 and all(w.rank < max(worlds) for g in (a, b) for w in g.windows))


def _overlap(a: Group, b: Group) -> bool:
    return any(
        one.start_ns <= other.end_ns and other.start_ns <= one.end_ns for one in a.windows for other in b.windows
    )


def _identity(group: Group) -> list[Hashable]:
    """What may come only once in a run: hosts of XLA files, ranks of others."""
    if group.files[0].is_host:
        return [file.path.name for file in group.files]
    return [window.rank for window in group.windows]


def _are_different(groups: Sequence[Group]) -> bool:
    known = [one for group in groups for one in _identity(group)]
    return len(set(known)) == len(known)


def _merged(groups: Iterable[Group]) -> Group:
    groups = list(groups)
    doubts = dict.fromkeys(doubt for group in groups for doubt in group.cannot_say if doubt[1] != _AMBIGUOUS)
    return Group(tuple(file for group in groups for file in group.files), tuple(doubts))


def _extent(group: Group) -> tuple[int, int]:
    return min(file.extent_ns[0] for file in group.files), max(file.extent_ns[1] for file in group.files)


def _components(count: int, pairs: set[tuple[int, int]]) -> list[list[int]]:
    """Numbers below ``count`` that pairs connect, each list in order."""
    of = np.arange(count)
    for a, b in sorted(pairs):
        of[of == of[b]] = of[a]
    return [np.flatnonzero(of == root).tolist() for root in dict.fromkeys(of.tolist())]


def _placed(group: Group) -> Group:
    """The files by rank; hosts in a row, and the ranks that are missing named."""
    if group.files[0].is_host:
        named, doubts = numbered_hosts([(file.path, file.windows) for file in group.files])
        files = tuple(Filed(path, windows) for path, windows in named)
        return Group(files, (*group.cannot_say, *doubts))
    files = tuple(sorted(group.files, key=lambda file: (file.first.rank, file.path)))
    return Group(files, (*group.cannot_say, *_missing([window for file in files for window in file.windows])))


def _is_every_rank(windows: Sequence[Window], world: int) -> bool:
    here = {window.rank for window in windows}
    return len(here) == world and not gaps(here, world)


def _missing(windows: Sequence[Window]) -> tuple[tuple[str, str], ...]:
    world = max(window.world for window in windows)
    here = {window.rank for window in windows}
    if beyond := sorted(rank for rank in here if world and rank >= world):
        return (("ranks", f"a file says that it is rank {beyond[0]} of {world}, which cannot be"),)
    absent = gaps(here, world)
    if not absent:
        return ()
    if world > _MOST_RANKS:
        return (("ranks", f"{world - len(here)} of the {world} ranks that a file tells of are not here"),)
    is_one = len(absent) == 1 and absent[0][0] == absent[0][1]
    which = f"rank {absent[0][0]} of {world} is" if is_one else f"ranks {gap_ranges(absent)} of {world} are"
    return (("ranks", f"{which} not here"),)
