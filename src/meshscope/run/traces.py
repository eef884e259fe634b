"""The native traces of a recording: each read once, when it is first announced, and told its place by the journal."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from meshscope.errors import TraceError
from meshscope.experiment import Experiment
from meshscope.readers.kept import read_kept
from meshscope.recording.entries import RankStarted, TraceWritten
from meshscope.samples import StepTable
from meshscope.spans import Window

Ints = npt.NDArray[np.int64]
Refusal = tuple[str, str, str]
Read = Callable[..., tuple[Window, ...]]


@dataclass
class Traces:
    """What became of the announced files so far, by path. ``read`` is handed in, so tests can count its calls."""

    folder: Path
    experiment: Experiment
    read: Read = read_kept
    _known: dict[str, tuple[Window, ...] | Refusal] = field(default_factory=dict)
    _settled: dict[str, tuple[Window, ...]] = field(default_factory=dict)

    def of(
        self, announced: Iterable[TraceWritten], ranks: tuple[RankStarted, ...], steps: StepTable
    ) -> tuple[tuple[Window, ...], tuple[Refusal, ...]]:
        """Windows and refusals of the announced files, in the order of the announcements."""
        windows: list[Window] = []
        refused: list[Refusal] = []
        for entry in announced:
            found = self._found(entry)
            if found is None:
                refused.append(_missing(entry))
            elif _is_refusal(found):
                refused.append(found)  # type: ignore[arg-type]  # that is what the test says
            else:
                windows += self._placed(entry, found, ranks, steps)  # type: ignore[arg-type]
        return tuple(windows), tuple(refused)

    def _found(self, entry: TraceWritten) -> tuple[Window, ...] | Refusal | None:
        """None while the file is not there: it may be late on a network file system."""
        if entry.path not in self._known:
            path = self.folder / entry.path
            if not path.is_file():
                return None
            self._known[entry.path] = self._read(entry, path)
        return self._known[entry.path]

    def _read(self, entry: TraceWritten, path: Path) -> tuple[Window, ...] | Refusal:
        try:
            return self.read(path, t0_unix_ns=self.experiment.t0_unix_ns, device_kind=self.experiment.device_kind)
        except TraceError as error:
            return entry.path, error.message, error.hint

    def _placed(
        self, entry: TraceWritten, windows: tuple[Window, ...], ranks: tuple[RankStarted, ...], steps: StepTable
    ) -> tuple[Window, ...]:
        if entry.path in self._settled:
            return self._settled[entry.path]
        ranked = (_ranked(window, entry, ranks) for window in windows)
        placed = tuple(_stepped(w, entry, steps) if w.is_complete else unstepped(w) for w in ranked)
        wanted = entry.end_step - entry.first_step
        if all(len(window.steps) >= wanted or not window.is_complete for window in placed):
            self._settled[entry.path] = placed  # else the journal may still bring the times of its steps
        return placed


def _is_refusal(found: tuple[Window, ...] | Refusal) -> bool:
    return bool(found) and isinstance(found[0], str)


def _missing(entry: TraceWritten) -> Refusal:
    return (
        entry.path,
        "The trace was announced but is not there.",
        "Copy the recording with its traces and plugins folders.",
    )


def _ranked(window: Window, entry: TraceWritten, ranks: tuple[RankStarted, ...]) -> Window:
    """The rank by the trace itself where it says so; a JAX file counts its devices from the entry's rank on."""
    rank, rank_from = window.rank, window.rank_from
    if window.framework == "jax":
        rank = _rank_of_device(rank, entry, ranks)
    elif rank_from != "trace":
        rank, rank_from = entry.rank, "journal"
    device = next((started.device for started in ranks if started.rank == rank), window.device)
    return replace(
        window,
        rank=rank,
        rank_from=rank_from,
        device=device,
        spans=replace(window.spans, rank=np.full(len(window.spans), rank, dtype=np.int32)),
        source=entry.path,
    )


def _rank_of_device(number: int, entry: TraceWritten, ranks: tuple[RankStarted, ...]) -> int:
    """A file numbers GPUs as their process does, from 0 on, and CPU devices over all processes, with gaps."""
    by_id = {started.global_device_id: started.rank for started in ranks if started.global_device_id >= 0}
    return by_id.get(number, number + entry.rank) if entry.rank else number


def _stepped(window: Window, entry: TraceWritten, steps: StepTable) -> Window:
    """The steps wholly inside, by the run's own numbers.

    A profiler counts steps from its own start, so as many marks as announced steps are those, in order. Marks
    that are neither that many nor numbered like the steps are set aside for the journal's own times of them.
    """
    wanted = np.arange(entry.first_step, entry.end_step)
    if not len(wanted):
        return window  # Of a job that was attached to nobody counts the steps.
    numbers = np.array(window.steps, dtype=np.int64)
    if np.isin(wanted, numbers).all() and len(wanted):
        keep = np.isin(numbers, wanted)
        return _with_steps(window, numbers[keep], window.step_ns[keep])
    if len(numbers) == len(wanted):
        return _with_steps(window, wanted, window.step_ns[np.argsort(window.step_ns[:, 0], kind="stable")])
    rows = (steps.rank == entry.rank) & np.isin(steps.step, wanted)
    bounds = np.stack((steps.start_ns[rows], steps.end_ns[rows]), axis=1)
    return _with_steps(window, steps.step[rows].astype(np.int64), bounds)


def unstepped(window: Window) -> Window:
    """A window whose file was cut, without its steps: what is missing may be of any of them."""
    why = f"rank {window.rank}: {window.source} was cut short, so none of its steps is known to be whole"
    bare = _with_steps(window, np.empty(0, dtype=np.int64), np.empty((0, 2), dtype=np.int64))
    return replace(bare, cannot_say=(*window.cannot_say, ("per_step", why)))


def _with_steps(window: Window, numbers: Ints, bounds: Ints) -> Window:
    spans = window.spans
    step = np.full(len(spans), -1, dtype=np.int32)
    for number, (start_ns, end_ns) in zip(numbers.tolist(), bounds.tolist(), strict=True):
        step[(spans.start_ns >= start_ns) & (spans.start_ns < end_ns)] = number
    return replace(window, steps=tuple(numbers.tolist()), step_ns=bounds, spans=replace(spans, step=step))
