"""One window of torch.profiler, from its warm-up to the trace in its place.

The profiler is made for the window and dropped after it. A standing one with a schedule costs about 1 % while it
waits; making one costs a millisecond, and between windows nothing is left of it.
"""

from __future__ import annotations

import gzip
import importlib
import time
from pathlib import Path
from typing import Any

from torch.profiler import ProfilerAction, ProfilerActivity, profile

from meshscope.capture.workers.rank_journal import RankJournal
from meshscope.capture.workers.torch_calls import stamped
from meshscope.recording.control import Ask
from meshscope.recording.entries import TraceWritten
from meshscope.recording.layout import TRACES, write_whole

LARGE_BYTES = 256_000_000
_LEVEL = 4


class TorchProfile:
    """Steps are ours: the trace holds ``ProfilerStep#N`` for step N."""

    def __init__(self, window: Ask, step: int, *, has_cuda: bool) -> None:
        start = time.perf_counter_ns()
        self.window = window
        self._step = step
        activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if has_cuda else [])]
        self._profile: Any = profile(
            activities=activities, schedule=self._action, record_shapes=True, profile_memory=window.has_memory
        )
        self._profile.step_num = step
        self._profile.current_action = self._action(step)
        self._began_unix_ns = time.time_ns()
        self._profile.start()
        self.start_cost_ns = time.perf_counter_ns() - start

    def _action(self, step: int) -> ProfilerAction:
        if step < self.window.first_step:
            return ProfilerAction.WARMUP
        if step < self.window.end_step - 1:
            return ProfilerAction.RECORD
        return ProfilerAction.RECORD_AND_SAVE if step < self.window.end_step else ProfilerAction.NONE

    def advance(self) -> None:
        """A step has ended. The one that ends the window also stops the profiler, which takes a while."""
        self._profile.step()
        self._step += 1

    def stop(self) -> None:
        self._profile.stop()

    @property
    def is_last_step(self) -> bool:
        return self._step + 1 >= self.window.end_step

    @property
    def steps(self) -> range:
        """The steps that are wholly inside."""
        return range(self.window.first_step, self._step)

    def peak_growth_bytes(self) -> int | None:
        """The most that CPU memory grew beyond what was allocated when the profiler began; None when not recorded."""
        events = [event for event in self._profile.profiler.kineto_results.events() if event.name() == "[memory]"]
        changes = sorted((event.start_ns(), event.nbytes()) for event in events)
        total = peak = 0
        for _, change in changes:
            total += change
            peak = max(peak, total)
        return peak if changes else None

    def write(self, recording: Path, rank: int) -> tuple[str, int]:
        """The trace's path within the recording, and its size; the size before compression decides what is large."""
        name = f"rank{rank}-steps{self.steps.start}-{self.steps.stop - 1}.pt.trace.json.gz"
        part = recording / TRACES / f".{name}.part.json"
        self._profile.export_chrome_trace(str(part))
        content = stamped(part.read_bytes(), self._began_unix_ns)
        part.unlink()
        write_whole(recording / TRACES / name, _packed(content))
        return f"{TRACES}/{name}", len(content)


def _packed(content: bytes) -> bytes:
    try:
        return bytes(importlib.import_module("isal.igzip").compress(content, 2))
    except ImportError:
        return gzip.compress(content, _LEVEL)


def finished(profile: TorchProfile, journal: RankJournal, recording: Path, *, ends_step: bool) -> None:
    """Stop, write and announce; a window in which no step was whole leaves nothing but a line in the log.

    ``ends_step``: a step has just ended inside the window; otherwise the run ends in the middle of it.
    """
    start = time.perf_counter_ns()
    if ends_step:
        profile.advance()
    profile.stop()
    if not profile.steps:
        journal.log("info", "The run ended before a profiled step was whole: no trace is written.")
        return
    path, raw_bytes = profile.write(recording, journal.rank)
    journal.append(
        TraceWritten(
            t_ns=journal.now_ns(),
            rank=journal.rank,
            path=path,
            format="kineto",
            first_step=profile.steps.start,
            end_step=profile.steps.stop,
            size_bytes=(recording / path).stat().st_size,
            start_cost_ns=profile.start_cost_ns,
            stop_ns=time.perf_counter_ns() - start,
            has_memory=profile.window.has_memory,
        )
    )
    if raw_bytes > LARGE_BYTES:
        journal.log("warning", f"A trace of {raw_bytes / 1e6:.0f} MB: a shorter window would be written sooner.")
