"""Reads many traces at once: those in the cache are mapped, few small ones read here, the others by processes.

One process reads one file at a time, as many processes as there are cores for them. Each hands over its columns as a
file (:mod:`meshscope.readers.worker`), so nothing is copied here, and a process that dies costs its file only. While
cores are free, the beginnings of big files are read first: windows "so far", which no answer takes for the whole.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from meshscope import readers
from meshscope.errors import TraceError
from meshscope.readers.column_cache import WORTH_BYTES, Cache
from meshscope.readers.kept import usual
from meshscope.readers.records import RecordReader, record_reader_of
from meshscope.readers.worker import Asked
from meshscope.records import Record
from meshscope.run.pool import Finished, Pool
from meshscope.spans import Window
from meshscope.units import NS_PER_S

Windows = dict[Path, tuple[Window, ...]]
Records = dict[Path, tuple[Record, ...]]
Refusal = tuple[str, str, str]

# Starting a process takes as long as reading this much; a packed file holds some eight times its size.
_HERE_BYTES = 24_000_000
_PACKED = 8
FIRST_LOOK_BYTES = 16_000_000
_LOOK_FACTOR = 2
_MOST_LOOKS = 16
_LOOKED_AT_FROM_BYTES = 64_000_000
_ESTIMATE_AFTER_NS = NS_PER_S
_ESTIMATE_FROM = 100  # a hundredth of the bytes

COMPILING = "compiling fast readers once; later openings skip it"
"""What is said while that goes on."""


@dataclass(frozen=True)
class SoFar:
    """How far the reading of some files is. ``left_ns`` is None while it cannot be told yet.

    ``is_compiling``: the readers of the fast extra are compiled first, which later readings need not wait for.
    """

    files: int
    files_done: int
    total_bytes: int
    read_bytes: int
    events: int
    left_ns: int | None
    is_done: bool
    is_compiling: bool = False

    @property
    def frac(self) -> float:
        return min(self.read_bytes / self.total_bytes, 1.0) if self.total_bytes else 1.0


class Loading:
    """The reading of some files; ``pump`` carries it on and is called by one thread. Close it, or use ``with``.

    ``windows`` grow as files are done, in unix ns, ``records`` for files without spans; ``beginnings`` hold windows of
    the first bytes of files that are not done, with the share of the file that they are; ``refused`` lists (path, why,
    hint); ``notes`` say what does not work as it might. With ``looks_ahead`` beginnings are read.
    """

    def __init__(
        self,
        files: Sequence[Path],
        *,
        cache: Cache | None = None,
        jobs: int | None = None,
        looks_ahead: bool = False,
        here_bytes: int = _HERE_BYTES,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self.windows: Windows = {}
        self.records: Records = {}
        self.beginnings: dict[Path, tuple[float, tuple[Window, ...]]] = {}
        self.refused: list[Refusal] = []
        self.notes: list[str] = []
        self.files = tuple(files)
        self._cache = cache
        self._sizes = {path: _size(path) for path in files}
        self._unseen = deque(files)
        self._without_spans: deque[tuple[Path, RecordReader]] = deque()
        self._here: deque[Path] = deque()
        self._to_read: deque[Path] = deque()
        self._looks: deque[tuple[Path, int]] = deque()
        self._looks_ahead = looks_ahead
        self._here_bytes = here_bytes
        self._done_bytes = self._done_events = self._known_bytes = 0
        self._clock = clock
        self._began_ns = self._pumped_ns = clock()
        cores = len(os.sched_getaffinity(0))
        self._pool = Pool(max(jobs or cores, 1))
        self._is_closed = False
        self._scratch = ""
        self.looks = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End every process at once and leave nothing half-written behind."""
        self._is_closed = True
        if self._pool.close() and self._cache is not None:
            with suppress(OSError):
                self._cache.shrink()
        if self._scratch:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def interrupt(self) -> None:
        """From another thread: kill the processes, so that whoever pumps soon finds that it is over."""
        self._is_closed = True
        self._pool.kill()

    def size_of(self, path: Path) -> int:
        return self._sizes.get(path, 0)

    def share_of(self, path: Path) -> float:
        """How much of a file that is not done has been looked at."""
        return self.beginnings[path][0] if path in self.beginnings else 0.0

    @property
    def is_done(self) -> bool:
        return self._files_done == len(self.files)

    @property
    def _files_done(self) -> int:
        return len(self.windows) + len(self.records) + len(self.refused)

    def is_read(self, path: Path) -> bool:
        return path in self.windows or path in self.records

    @property
    def so_far(self) -> SoFar:
        reading = self._pool.reading
        total = sum(self._sizes.values())
        # Looking at what kind of file it is reads its first bytes twice.
        done = self._done_bytes + sum(min(told.read_bytes, self._sizes[path]) for path, told in reading)
        return SoFar(
            files=len(self.files),
            files_done=self._files_done,
            total_bytes=total,
            read_bytes=min(done, total),
            events=self._done_events + sum(told.events for _, told in reading),
            left_ns=self._left_ns(done - self._known_bytes, total - self._known_bytes),
            is_done=self.is_done,
            is_compiling=self._is_compiling,
        )

    @property
    def _is_compiling(self) -> bool:
        return any(told.is_compiling for told in self._pool.told)

    def _left_ns(self, read: int, total: int) -> int | None:
        """By the pace so far of what had to be read; what was in the cache says nothing about it.

        Nor do the first blocks, after which compiled readers are loaded, or made.
        """
        took_ns = self._clock() - self._began_ns
        if read <= 0 or read * _ESTIMATE_FROM < total or took_ns < _ESTIMATE_AFTER_NS:
            return None
        return max(took_ns * (total - read) // read, 0)

    def pump(self, patience_s: float) -> bool:
        """Carry on for about ``patience_s`` at most, or one file that is read here; False once all is done."""
        if self._is_closed or self.is_done:
            return False
        now_ns = self._clock()
        if self._is_compiling:  # that time tells nothing of the pace
            self._began_ns += now_ns - self._pumped_ns
        self._pumped_ns = now_ns
        if self._unseen:
            self._look_up(self._unseen.popleft())
            if not self._unseen:
                self._share_out()
        elif self._without_spans:
            self._read_record(*self._without_spans.popleft())
        elif self._here:
            self._read_here(self._here.popleft())
        else:
            self._hand_out()
            for finished in self._pool.wait(patience_s):
                if not self._is_closed:
                    self._take(finished)
        return not self.is_done

    def _look_up(self, path: Path) -> None:
        """Put a file where it belongs, or take it from the cache."""
        try:
            reader = record_reader_of(path)
        except TraceError as error:
            self._refuse(path, error.message, error.hint)
            return
        if reader is not None:
            self._without_spans.append((path, reader))
            return
        worth = self._cache is not None and self._sizes[path] >= WORTH_BYTES
        found = self._cache.find(path) if self._cache is not None and worth else None
        if found is None:
            self._to_read.append(path)
            return
        self._known_bytes += self._sizes[path]
        self._keep(path, found, sum(window.counts.read for window in found[:1]))

    def _share_out(self) -> None:
        """Few small files are read before a process would have started; the largest of others are begun first."""
        waiting = sorted(self._to_read, key=lambda path: -self._sizes[path])
        self._to_read.clear()
        if sum(self._cost(path) for path in waiting) <= self._here_bytes:
            self._here.extend(path for path in self.files if path in waiting)
            return
        self._to_read.extend(waiting)
        if self._looks_ahead:
            big = [path for path in waiting if self._sizes[path] >= _LOOKED_AT_FROM_BYTES]
            # Where there is no room for links, there is no looking ahead.
            with suppress(OSError):
                self._scratch = tempfile.mkdtemp(prefix="meshscope-") if big else ""
                self._looks.extend((path, FIRST_LOOK_BYTES) for path in big[:_MOST_LOOKS])

    def _cost(self, path: Path) -> int:
        return self._sizes[path] * (_PACKED if path.suffix == ".gz" else 1)

    def _read_record(self, path: Path, reader: RecordReader) -> None:
        try:
            found = reader.read(path)
        except TraceError as error:
            self._refuse(path, error.message, error.hint)
        else:
            self.records[path] = found
            self._settle(path, 0)

    def _read_here(self, path: Path) -> None:
        try:
            found = readers.read(path)
        except TraceError as error:
            self._refuse(path, error.message, error.hint)
        else:
            self._keep(path, found, sum(window.counts.read for window in found[:1]))

    def _hand_out(self) -> None:
        """Work for every free process: files before further looks, but the first look before anything else."""
        while self._pool.has_room and (self._to_read or self._looks):
            looks_first = self._looks and (self._looks[0][1] == FIRST_LOOK_BYTES or not self._to_read)
            path, prefix = self._looks.popleft() if looks_first else (self._to_read.popleft(), 0)
            if prefix and path in self.windows:
                continue
            try:
                self._pool.hand_out(path, self._asked(path, prefix))
            except OSError as error:
                self._note(f"No process could be started ({error.strerror or error}): traces are read one by one.")
                self._here.extend([] if prefix else [path])
                break

    def _asked(self, path: Path, prefix: int) -> Asked:
        keeps = self._cache is not None and not prefix and self._sizes[path] >= WORTH_BYTES
        return Asked(
            path=os.fsencode(path).decode("latin-1"),
            prefix_bytes=prefix,
            scratch=self._scratch if prefix else "",
            cache=str(self._cache.folder) if self._cache is not None and keeps else "",
            cache_limit_bytes=self._cache.limit_bytes if self._cache is not None else 0,
        )

    def _take(self, finished: Finished) -> None:
        path = finished.path
        if finished.prefix_bytes:
            self._take_look(finished)
        elif finished.windows is None:
            self._refuse(path, finished.why, finished.hint)
        else:
            self._keep(path, finished.windows, finished.events)
        if finished.unkept and self._cache is not None:
            self._note(f"The cache {self._cache.folder} cannot be written ({finished.unkept}): nothing is kept.")

    def _take_look(self, finished: Finished) -> None:
        """A beginning that cannot be read by itself is nothing to speak of: the whole file is still to come."""
        path, size = finished.path, self._sizes[finished.path]
        if finished.windows is None or path in self.windows or not size:
            return
        self.looks += 1
        self.beginnings[path] = (finished.prefix_bytes / size, finished.windows)
        longer = finished.prefix_bytes * _LOOK_FACTOR
        # A longer look is worth it only while it is done well before the file itself.
        if longer <= size // 2:
            self._looks.append((path, longer))

    def _keep(self, path: Path, found: tuple[Window, ...], events: int) -> None:
        self.windows[path] = found
        self._settle(path, events)

    def _refuse(self, path: Path, why: str, hint: str) -> None:
        self.refused.append((str(path), why, hint))
        self._settle(path, 0)

    def _settle(self, path: Path, events: int) -> None:
        self.beginnings.pop(path, None)
        self._done_bytes += self._sizes[path]
        self._done_events += events

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def load(files: Iterable[Path], *, jobs: int | None = None, watch: Callable[[SoFar], None] = lambda _: None) -> Loading:
    """Read files to the end, telling ``watch`` how far it is."""
    with Loading(tuple(files), cache=usual(), jobs=jobs) as loading:
        while loading.pump(_PATIENCE_S):
            watch(loading.so_far)
        loading.windows = {path: loading.windows[path] for path in loading.files if path in loading.windows}
        return loading


_PATIENCE_S = 0.2


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
