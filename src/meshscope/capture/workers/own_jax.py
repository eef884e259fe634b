"""The watch of a JAX script that knows nothing of it.

A step begins where the script enters a ``jax.profiler.StepTraceAnnotation``, and ends where it enters the next: the
annotation itself ends when the work was handed out, not when it was done. Without annotations ``meshscope.step()``
tells the steps. Each device of the process is a rank. Devices are waited for at the two ends of a window, and nowhere
else.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import jax
import msgspec

from meshscope import marking
from meshscope.capture import machine
from meshscope.capture.workers import jax_memory
from meshscope.capture.workers.jax_compiles import Compiles
from meshscope.capture.workers.jax_profile import JaxProfile
from meshscope.capture.workers.own_journal import OwnJournal
from meshscope.capture.workers.own_rank import Enlisted, enlist, harmless, recorded
from meshscope.capture.workers.own_steps import OwnSteps
from meshscope.recording.entries import Entry, MemoryMeasured, RankStarted, Recognized

_KINDS = {"cpu": "cpu", "tpu": "tpu"}
_MEMORY_STEP = 1
_EARLY = 1000


def begin() -> None:
    """Listen to the step annotations and the compilations of this process."""
    watch = JaxSteps()
    marking.hear(watch)
    annotation = jax.profiler.StepTraceAnnotation
    jax.profiler.StepTraceAnnotation = _followed(annotation, watch)


class _EarlyJournal:
    """Keeps entries until it is known which rank they are of: programs are compiled before the first step."""

    def __init__(self, t0_unix_ns: int) -> None:
        self.rank = 0
        self._t0_unix_ns = t0_unix_ns
        self._kept: list[Entry] = []
        self._journal: OwnJournal | None = None

    def now_ns(self) -> int:
        return time.time_ns() - self._t0_unix_ns

    def append(self, entry: Entry) -> None:
        if self._journal is not None:
            self._journal.append(entry)
        elif len(self._kept) < _EARLY:
            self._kept.append(entry)

    def open(self, journal: OwnJournal) -> None:
        for entry in self._kept:
            journal.append(msgspec.structs.replace(entry, rank=journal.rank))
        self.rank, self._journal, self._kept = journal.rank, journal, []


class JaxSteps(OwnSteps):
    """The steps, windows and memory of one process."""

    has_warmup = False

    def __init__(self) -> None:
        super().__init__()
        self._early = _EarlyJournal(recorded().t0_unix_ns)
        self._compiles = Compiles(self._early, on_first=lambda: None)  # type: ignore[arg-type]  # it speaks like one
        self._devices: list[tuple[int, Any]] = []
        self._profile: JaxProfile | None = None
        self._mark: Any = None
        self._is_after_window = self._has_entered = False

    def enlist(self) -> Enlisted | None:
        ranks = {device: rank for rank, device in enumerate(jax.devices())}
        self._devices = [(ranks[device], device) for device in jax.local_devices()]
        me = enlist(self._devices[0][0])
        if me is None:
            return None
        for rank, device in self._devices:
            is_cpu = device.platform == "cpu"
            started = RankStarted(
                t_ns=me.journal.now_ns(), rank=rank, device=_index(device, rank), pid=os.getpid(),
                device_name=machine.cpu_name() if is_cpu else device.device_kind,
                device_kind=_KINDS.get(device.platform, "gpu"), global_device_id=device.id,
            )  # fmt: skip
            me.journal.append(started)
        me.journal.append(self._recognized(me, len(ranks)))
        self._early.open(me.journal)
        return me

    def _recognized(self, me: Enlisted, ranks: int) -> Recognized:
        platform = self._devices[0][1].platform
        devices = "one device" if ranks == 1 else f"{ranks} devices"
        return Recognized(
            t_ns=me.journal.now_ns(), rank=me.journal.rank, framework="jax", ranks=ranks,
            device_kind=_KINDS.get(platform, "gpu"), seen="jax", title=f"JAX on {devices} (seen)",
            versions={"jax": jax.__version__, "python": sys.version.split()[0]},
        )  # fmt: skip

    @property
    def ranks(self) -> tuple[int, ...]:
        return tuple(rank for rank, _ in self._devices)

    @property
    def is_profiling(self) -> bool:
        return self._profile is not None

    def entered(self) -> None:
        """The script enters a step's annotation: the first is the beginning of step 0."""
        if self.is_marked:
            return
        if self._has_entered:
            self.turned()
        else:
            self._has_entered = True
            self._compiles.step = 0
            self._begun()

    def started(self, window: Any) -> None:
        assert self.me is not None
        self._compiles.step, self._compiles.has_compiled = self.step, False
        if window is not None and self._profile is None:
            began_ns = time.perf_counter_ns()
            _wait()
            self.note_backlog(time.perf_counter_ns() - began_ns)
            self.me.journal.phase("profiling")
            self._profile = JaxProfile(window)
        if self._profile is not None:
            self._mark = _ANNOTATION("train", step_num=self.step)
            self._mark.__enter__()

    def told(self) -> dict[str, Any]:
        self._compiles.flush()
        counters = jax_memory.allocator(self._devices[0][1])
        is_profiled = self._profile is not None or self._is_after_window
        self._is_after_window = False
        return {
            "cpu_ns": -1,
            "allocated_bytes": counters["in_use"],
            "reserved_bytes": counters["pool"],
            "peak_bytes": counters["peak"],
            "is_profiled": is_profiled,
            "is_compiling": self._compiles.has_compiled,
        }

    def ended(self, *, is_last: bool) -> None:
        self._compiles.flush()
        profile = self._profile
        is_over = profile is not None and (is_last or self.step + 1 >= profile.window.end_step)
        if is_over:
            _wait()
        if self._mark is not None:
            self._mark.__exit__(None, None, None)
            self._mark = None
        if is_over:
            self._close_window(self.step if is_last else self.step + 1)
        if self.step == _MEMORY_STEP and not is_last:
            self._measure()

    def _close_window(self, end_step: int) -> None:
        profile, self._profile = self._profile, None
        if profile is None or self.me is None:
            return
        with self.me.journal.beating("stopping profiler", after="training"):
            if end_step > profile.window.first_step:
                profile.write(self.me.journal, self.me.recording, end_step)
            else:
                profile.discard()
                self.me.journal.log("info", "The run ended before a profiled step was whole: no trace is written.")
        self._is_after_window = True

    def abandon(self) -> None:
        profile, self._profile = self._profile, None
        if profile is not None:
            profile.discard()

    def _measure(self) -> None:
        assert self.me is not None
        held = jax_memory.shard_bytes(jax.live_arrays())
        for rank, device in self._devices:
            counters = jax_memory.allocator(device)
            self.me.journal.append(
                MemoryMeasured(
                    t_ns=self.me.journal.now_ns(),
                    rank=rank,
                    device=_index(device, rank),
                    step=self.step,
                    source="arrays that are alive between two steps; the allocator's counters where it has some",
                    categories={},
                    how={},
                    peak_bytes=counters["peak"],
                    peak_how="measured" if counters["peak"] >= 0 else "",
                    pool_bytes=counters["pool"],
                    in_use_bytes=counters["in_use"] if counters["in_use"] >= 0 else held.get(device, 0),
                    limit_bytes=counters["limit"],
                    largest_free_bytes=counters["largest_free"],
                )
            )


def _index(device: Any, rank: int) -> int:
    number = getattr(device, "local_hardware_id", None)
    return rank if number is None else int(number)


def _wait() -> None:
    """Until no device has work left."""
    jax.block_until_ready([array for array in jax.live_arrays() if not array.is_deleted()])


_ANNOTATION: Any = jax.profiler.StepTraceAnnotation


def _followed(annotation: Any, watch: JaxSteps) -> Any:
    """A class in the annotation's place. Of several names only the first one's are steps, and none within another."""
    entered = harmless(watch.entered, on_failure=watch.drop)
    first: list[str] = []
    depth = 0

    class StepTraceAnnotation:
        __doc__ = annotation.__doc__

        def __init__(self, name: str, **about: Any) -> None:
            self._name, self._about = name, about
            self._inner: Any = None

        def __enter__(self) -> StepTraceAnnotation:
            nonlocal depth
            depth += 1
            if depth == 1 and self._name in (first or [self._name]):
                first[:] = [self._name]
                entered()
            self._inner = self._made()
            self._inner.__enter__()
            return self

        def __exit__(self, *error: Any) -> Any:
            nonlocal depth
            depth -= 1
            return self._inner.__exit__(*error)

        def _made(self) -> Any:
            """While a window is open the steps in its trace are the watch's own, which end where the next begins."""
            if not watch.is_profiling:
                return annotation(self._name, **self._about)
            about = {name: value for name, value in self._about.items() if name != "step_num"}
            return jax.profiler.TraceAnnotation(self._name, **about)

    return StepTraceAnnotation
