"""Native traces as Runs while they are read: what is known grows file by file, and by beginnings of big ones."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from meshscope.run.foreign import runs_of
from meshscope.run.loading import Loading, Refusal, SoFar, Windows
from meshscope.run.state import Run
from meshscope.units import NS_PER_S

_PATIENCE_S = 0.1
# Every file that is done changes its run; who looks ten times a second need not see each.
_FOLD_EVERY_NS = NS_PER_S // 4
_FOLD_SHARE = 5


@dataclass(frozen=True)
class Seen:
    """What is known at one time. ``number`` grows with every change of the runs.

    ``partial`` maps the name of a run that is not whole to the share of its files that it stands on, by bytes;
    ``age_ns`` is how long ago the runs were put together: reading has gone on since.
    """

    number: int = 0
    runs: tuple[Run, ...] = ()
    partial: dict[str, float] = field(default_factory=dict)
    so_far: SoFar = field(default_factory=lambda: SoFar(0, 0, 0, 0, 0, None, is_done=False))
    refused: tuple[Refusal, ...] = ()
    notes: tuple[str, ...] = ()
    age_ns: int = 0


class Opening:
    """Carries a loading on in a thread of its own. ``seen`` may be called from any; ``close`` ends every process.

    ``refused`` lists what could not be looked into before any file was read. A fault of ours in the thread is raised
    by the next ``seen``.
    """

    def __init__(
        self,
        loading: Loading,
        *,
        refused: Sequence[Refusal] = (),
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._loading = loading
        self._clock = clock
        self._refused = tuple(refused)
        self._seen = Seen(so_far=loading.so_far, refused=self._refused)
        self._fault: BaseException | None = None
        self._is_closing = False
        self._known = (-1, -1, -1, -1)
        self._fold_again_ns = 0
        self._folded_ns = clock()
        self._thread = threading.Thread(target=self._run, name="meshscope-loading", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def seen(self) -> Seen:
        if self._fault is not None:
            raise self._fault
        return self._seen

    def close(self) -> None:
        """End reading; returns once every process is gone."""
        self._is_closing = True
        self._loading.interrupt()
        if self._thread.is_alive():
            self._thread.join(_CLOSING_PATIENCE_S)

    def _run(self) -> None:
        try:
            with self._loading as loading:
                while not self._is_closing and loading.pump(_PATIENCE_S):
                    self._look(is_last=False)
                self._look(is_last=True)
        except BaseException as error:  # noqa: BLE001  # not handled here: carried to the one who looks
            self._fault = error

    def _look(self, *, is_last: bool) -> None:
        """Take down how far it is, and fold the runs anew where that is due."""
        loading, now_ns = self._loading, self._clock()
        so_far, refused, notes = loading.so_far, (*self._refused, *loading.refused), tuple(loading.notes)
        known = (len(loading.windows), len(loading.records), loading.looks, len(loading.refused))
        if known == self._known or (now_ns < self._fold_again_ns and not is_last):
            age_ns = now_ns - self._folded_ns
            self._seen = replace(self._seen, so_far=so_far, refused=refused, notes=notes, age_ns=age_ns)
            return
        self._known, self._folded_ns = known, now_ns
        runs, partial = folded(loading)
        self._seen = Seen(self._seen.number + 1, runs, partial, so_far, refused, notes)
        took_ns = self._clock() - now_ns
        self._fold_again_ns = self._clock() + max(_FOLD_EVERY_NS, _FOLD_SHARE * took_ns)


_CLOSING_PATIENCE_S = 2.0


def folded(loading: Loading) -> tuple[tuple[Run, ...], dict[str, float]]:
    """The runs that are known, each with a name of its own, and those of them that are not whole.

    Files that belong to one run are told by their content, so a run may still grow while any file is unread: its
    share is of the files in its folder.
    """
    beginnings = {path: windows for path, (_, windows) in loading.beginnings.items()}
    windows: Windows = {**{p: loading.windows[p] for p in loading.files if p in loading.windows}, **beginnings}
    runs = _named(runs_of(windows, loading.records))
    return runs, {run.name: _share(run, loading) for run in runs if _share(run, loading) < 1}


def _share(run: Run, loading: Loading) -> float:
    mine = {Path(window.source) for window in run.windows}
    folders = {path.parent for path in mine}
    refused = {Path(path) for path, _, _ in loading.refused}
    # Hosts write into folders side by side.
    near = {parent for folder in folders for parent in (folder, folder.parent)}
    unread = (path for path in loading.files if not loading.is_read(path) and path not in refused)
    waiting = [path for path in unread if path.parent in near or path.parent.parent in near]
    concerned = {*mine, *waiting}
    total = sum(loading.size_of(path) for path in concerned)
    read = sum(loading.size_of(p) * (1.0 if p in loading.windows else loading.share_of(p)) for p in concerned)
    return 1.0 if not waiting or not total else min(read / total, 0.999)


def _named(runs: tuple[Run, ...]) -> tuple[Run, ...]:
    """Two of one name are told apart by their numbers."""
    counts = Counter(run.name for run in runs)
    at: Counter[str] = Counter()
    named = []
    for run in runs:
        at[run.name] += 1
        title = run.name if counts[run.name] == 1 else f"{run.name} ({at[run.name]} of {counts[run.name]})"
        named.append(replace(run, experiment=msgspec.structs.replace(run.experiment, title=title)))
    return tuple(named)
