"""One window of JAX's profiler, from its start to the xplane in its place.

Python's calls are not traced: they would be most of the trace and most of its cost. XLA's own operations, the step
annotations and, on a GPU, its kernels are. Stopping takes about 10 ms per MB.
"""

from __future__ import annotations

import importlib
import socket
import tempfile
import time
from pathlib import Path
from typing import Any

import jax

from meshscope.capture.workers.rank_journal import RankJournal
from meshscope.recording.control import Ask
from meshscope.recording.entries import TraceWritten
from meshscope.recording.layout import XPLANES, write_whole

LARGE_BYTES = 128_000_000
_HOST_LEVEL = 2


class JaxProfile:
    """Begins when made: every device must have finished what it was given before."""

    def __init__(self, window: Ask) -> None:
        start = time.perf_counter_ns()
        self.window = window
        options = jax.profiler.ProfileOptions()
        options.python_tracer_level = 0
        options.host_tracer_level = _HOST_LEVEL
        self._session = _Session(options)
        self.start_cost_ns = time.perf_counter_ns() - start

    def write(self, journal: RankJournal, recording: Path, end_step: int) -> None:
        """Stop, write and announce steps [first_step, end_step)."""
        start = time.perf_counter_ns()
        content = self._session.stop()
        first = self.window.first_step
        path = f"{XPLANES}/steps{first}-{end_step - 1}/{socket.gethostname()}.xplane.pb"
        write_whole(recording / path, content)
        journal.append(
            TraceWritten(
                t_ns=journal.now_ns(),
                rank=journal.rank,
                path=path,
                format="xplane",
                first_step=first,
                end_step=end_step,
                size_bytes=len(content),
                start_cost_ns=self.start_cost_ns,
                stop_ns=time.perf_counter_ns() - start,
            )
        )
        if len(content) > LARGE_BYTES:
            journal.log("warning", f"A trace of {len(content) / 1e6:.0f} MB: a shorter window would stop sooner.")

    def discard(self) -> None:
        """Stop, and keep nothing."""
        self._session.stop()


class _Session:
    """The session itself gives the xplane as bytes. ``jax.profiler.stop_trace`` writes it, and a JSON of it beside
    it that takes more than half of the time; it is the way out where the session is not to be had."""

    def __init__(self, options: Any) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        try:
            self._session = importlib.import_module("jaxlib._profiler").ProfilerSession(options)
        except (ImportError, AttributeError, TypeError):
            self._folder = tempfile.TemporaryDirectory()
            jax.profiler.start_trace(self._folder.name, profiler_options=options)

    def stop(self) -> bytes:
        if self._folder is None:
            return bytes(self._session.stop())
        jax.profiler.stop_trace()
        with self._folder as folder:
            return next(Path(folder).rglob("*.xplane.pb")).read_bytes()
