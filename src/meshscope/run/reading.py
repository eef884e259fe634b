"""A recording as a Run at any time: live and replay ask the same question with different clocks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from meshscope.experiment import Experiment
from meshscope.readers.kept import read_kept
from meshscope.recording.entries import Ended, FlightWritten, RankStarted, TraceWritten
from meshscope.recording.feed import Feed
from meshscope.run.attached import counted, with_steps
from meshscope.run.flights import Flights
from meshscope.run.ledger import Ledger
from meshscope.run.state import SILENCE_NS, Run
from meshscope.run.times import Times
from meshscope.run.traces import Read, Traces


class RunReader:
    """One recording. ``at`` may be called from several threads, forwards and backwards in time.

    Raises RecordingError when the folder is no recording. ``wall`` tells unix ns.
    """

    def __init__(self, folder: Path, *, wall: Callable[[], int] = time.time_ns, read: Read = read_kept) -> None:
        self._feed = Feed(folder)
        self._wall = wall
        self._ledger = Ledger(self.experiment, str(folder))
        self._traces = Traces(folder, self.experiment, read)
        self._flights = Flights(folder, self.experiment.t0_unix_ns)
        self._times = Times()
        self._last: tuple[int, Run] | None = None
        self._whole: tuple[int, Run] | None = None
        self._lock = threading.Lock()
        self._ended = False

    @property
    def experiment(self) -> Experiment:
        return self._feed.experiment

    @property
    def start_unix_ns(self) -> int:
        return self.experiment.t0_unix_ns

    @property
    def newest_unix_ns(self) -> int:
        """When the newest entry was written that has been read; the start while there is none."""
        return self.start_unix_ns + self._times.newest_ns

    def at(self, unix_ns: int) -> Run:
        """What was known at a time; reads what the writers have appended meanwhile.

        One that had ended is the same object each time, so that what was worked out about it holds (see
        ``analysis.parts``): its ``now_ns`` stays at its last entry.
        """
        with self._lock:
            self._poll()
            now_ns = unix_ns - self.start_unix_ns
            seen = self._times.upto(now_ns)
            run = self._again(now_ns, seen) or self._fold(now_ns, seen)
            # A clock that goes back and forth over the end finds both sides of it.
            if run.ended is not None:
                self._whole = seen, run
            else:
                self._last = seen, run
            return run

    def _again(self, now_ns: int, seen: int) -> Run | None:
        """What was folded from the first ``seen`` entries, as of ``now_ns``; None where that is not kept."""
        kept = next((run for at, run in filter(None, (self._whole, self._last)) if at == seen), None)
        if kept is None or kept.refused:
            return None
        then_ns = now_ns if kept.ended is None else kept.now_ns
        if (kept.now_ns, kept.skipped_lines) == (then_ns, self._feed.skipped):
            return kept
        return replace(kept, now_ns=then_ns, skipped_lines=self._feed.skipped)

    def end_unix_ns(self) -> int | None:
        """When the recording ended; None while it goes on. A lost one ends once its silence says so."""
        with self._lock:
            self._poll()
            last_unix_ns = self.newest_unix_ns
            if self._ended:
                return last_unix_ns
            silent_ns = self._wall() - last_unix_ns
            return last_unix_ns + SILENCE_NS if silent_ns >= SILENCE_NS else None

    def _poll(self) -> None:
        fresh = self._feed.poll()
        if fresh:
            self._ledger.add(fresh)
            self._times.add(entry.t_ns for entry in fresh)
            self._ended = self._ended or any(isinstance(entry, Ended) for entry in fresh)
            self._last = self._whole = None

    def _fold(self, now_ns: int, seen: int) -> Run:
        run = self._ledger.run(
            now_ns,
            last_entry_ns=self._times.last_of(seen),
            skipped_lines=self._feed.skipped,
        )
        announced = self._ledger.until(TraceWritten, now_ns)
        self._traces.experiment = run.experiment
        windows, refused = self._traces.of(announced, self._ledger.until(RankStarted, now_ns), run.steps)
        attached = {entry.path for entry in announced if entry.first_step == entry.end_step}
        windows = with_steps(windows, attached) if attached else windows
        ordered = sorted(windows, key=lambda window: (window.rank, window.start_ns, window.source))
        run = replace(run, experiment=counted(run.experiment, ordered))
        records, unread = self._flights.of(self._ledger.until(FlightWritten, now_ns))
        run = replace(run, windows=tuple(ordered), refused=(*refused, *unread), records=records)
        return run if run.ended is None else replace(run, now_ns=run.last_entry_ns)
