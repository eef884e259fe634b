"""The watch of a JAX process, which drives several devices: each of them is a rank, and a step is one program."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeVar

import jax
import numpy as np

from meshscope.capture import machine
from meshscope.capture.workers import jax_checks, jax_memory
from meshscope.capture.workers.asked_windows import AskedWindows
from meshscope.capture.workers.batch_shape import batch_shape
from meshscope.capture.workers.horizon import Horizon
from meshscope.capture.workers.jax_compiles import Compiles
from meshscope.capture.workers.jax_profile import JaxProfile
from meshscope.capture.workers.post import Post
from meshscope.recording.entries import Checked, MemoryMeasured, RankStarted, StepDone

T = TypeVar("T")

_KINDS = {"cpu": "cpu", "tpu": "tpu"}


def _index(device: Any, rank: int) -> int:
    """The device's number on this host, as the sensors count; its place among the devices where it has none."""
    number = getattr(device, "local_hardware_id", None)
    return rank if number is None else int(number)


class JaxWatch:
    """See ``workloads/watching.py`` for what a script may call, and when.

    JAX's devices are first asked for when the script has begun to use them: a script may still choose their number
    before that, and not after.
    """

    def __init__(self, post: Post) -> None:
        self._post, self._journal = post, post.journal
        self._horizon = Horizon(post.recording, is_bounded=post.experiment.stable_frac > 0)
        self._windows = AskedWindows(post.recording, post.journal, has_warmup=False)
        self._compiles = Compiles(post.journal, on_first=self._first_compilation)
        self._profile: JaxProfile | None = None
        self._parameters: Callable[[], Any] | None = None
        self._optimizer: Callable[[], Any] | None = None
        self._devices: list[Any] = []
        self._keys: list[str] = []
        self._planned: tuple[int, int] | None = None
        self._step = -1
        self._loss: float | None = None
        self._wait_ns = 0
        self._shape: tuple[int, ...] = ()

    def started(
        self, *, parameters: Callable[[], Any], optimizer: Callable[[], Any], compiled: Any = None, key: Any = None
    ) -> None:
        self._parameters, self._optimizer = parameters, optimizer
        self._announce()
        self._keys = jax_checks.key_hashes(key, len(self._devices))
        self._planned = jax_memory.planned_bytes(compiled)
        self._measure(step=0)
        self._compiles.flush()
        self._journal.phase("training")

    def step(self, number: int) -> AbstractContextManager[None]:
        return self._stepping(number)

    @contextmanager
    def _stepping(self, number: int) -> Iterator[None]:
        self._begin(number)
        start_ns = self._journal.now_ns()
        with jax.profiler.StepTraceAnnotation("train", step_num=number) if self._profile else nullcontext():
            yield
        self._done(start_ns, self._journal.now_ns())
        self._end()

    def batch(self, fetch: Callable[[], T]) -> T:
        start = time.perf_counter_ns()
        fetched = fetch()
        self._wait_ns += time.perf_counter_ns() - start
        self._shape = batch_shape(fetched)
        return fetched

    def loss(self, value: Any) -> float:
        """A loss with one number per device (pmap's) is the same on all of them; the first is taken."""
        self._loss = float(np.asarray(jax.block_until_ready(value)).reshape(-1)[0])
        return self._loss

    @contextmanager
    def compiling(self, what: str) -> Iterator[None]:
        self._announce()
        self._compiles.flush()
        self._compiles.what = what
        after = "training" if self._parameters is not None else "importing"
        with self._journal.beating("compiling", after=after, detail=what):
            yield
        self._compiles.flush()
        self._compiles.what = ""

    def finished(self) -> None:
        self._close_window()
        self._journal.phase("ending")

    def _first_compilation(self) -> None:
        self._announce()
        self._journal.phase("compiling", "the first values")

    def _announce(self) -> None:
        if self._devices:
            return
        # Those of this process, which come first among the ones it can use and may be used in part.
        self._devices = list(jax.local_devices()[: len(self._post.ranks)])
        for place, (rank, device) in enumerate(self._by_rank):
            is_cpu = device.platform == "cpu"
            self._journal.append(
                RankStarted(
                    t_ns=self._journal.now_ns(),
                    rank=rank,
                    device=_index(device, place),
                    device_name=machine.cpu_name() if is_cpu else device.device_kind,
                    device_kind=_KINDS.get(device.platform, "gpu"),
                    pid=os.getpid(),
                    global_device_id=device.id,
                )
            )

    @property
    def _by_rank(self) -> list[tuple[int, Any]]:
        return list(zip(self._post.ranks, self._devices, strict=False))

    def _begin(self, number: int) -> None:
        self._horizon.begin(number)
        self._announce()
        self._step, self._wait_ns, self._loss = number, 0, None
        self._compiles.step, self._compiles.has_compiled = number, False
        window = self._windows.at(number)
        if window is not None and self._profile is None:
            self._wait()
            self._journal.phase("profiling")
            self._profile = JaxProfile(window)

    def _done(self, start_ns: int, end_ns: int) -> None:
        self._compiles.flush()
        counters = jax_memory.allocator(self._devices[0])
        self._journal.append(
            StepDone(
                t_ns=self._journal.now_ns(),
                rank=self._post.rank,
                step=self._step,
                start_ns=start_ns,
                end_ns=end_ns,
                tokens=self._post.tokens,
                samples=self._post.samples,
                loss=self._loss,
                data_wait_ns=self._wait_ns,
                allocated_bytes=counters["in_use"],
                reserved_bytes=counters["pool"],
                peak_bytes=counters["peak"],
                is_profiled=self._profile is not None,
                is_compiling=self._compiles.has_compiled,
            )
        )

    def _end(self) -> None:
        """What is done between two steps, so that it is in neither's time."""
        if self._step == 0:
            self._compiles.explain()
        if self._step == self._post.memory_step() and self._devices[0].platform != "cpu":
            self._measure(step=self._step)
        if self._post.is_check(self._step):
            self._check()
        if self._profile is not None and self._step + 1 >= self._profile.window.end_step:
            self._close_window()

    def _close_window(self) -> None:
        profile, self._profile = self._profile, None
        if profile is None:
            return
        with self._journal.beating("stopping profiler", after="training"):
            self._wait()
            profile.write(self._journal, self._post.recording, self._step + 1)

    def _wait(self) -> None:
        """Until no device has work left: the loss may be ready before the last update is."""
        if self._parameters is not None:
            jax.block_until_ready(self._parameters())

    def _check(self) -> None:
        sums = jax_checks.checksums(self._parameters()) if self._parameters is not None else {}
        for place, (rank, device) in enumerate(self._by_rank):
            if device in sums:
                self._journal.append(
                    Checked(
                        t_ns=self._journal.now_ns(),
                        rank=rank,
                        step=self._step,
                        parameters=sums[device],
                        rng=self._keys[place],
                        batch_shape=self._shape,
                    )
                )

    def _measure(self, step: int) -> None:
        if self._parameters is None or self._optimizer is None:
            return
        parameters = jax_memory.shard_bytes(self._parameters())
        optimizer = jax_memory.shard_bytes(self._optimizer())
        for rank, device in self._by_rank:
            sizes = {"parameters": parameters.get(device, 0), "optimizer": optimizer.get(device, 0)}
            self._journal.append(self._memory(rank, device, step, sizes))

    def _memory(self, rank: int, device: Any, step: int, sizes: dict[str, int]) -> MemoryMeasured:
        how = dict.fromkeys(sizes, "exact")
        peak_bytes, peak_how = -1, ""
        if self._planned is not None:
            sizes["temporaries"], peak_bytes = self._planned
            how["temporaries"] = peak_how = "compiler"
        counters = jax_memory.allocator(device)
        if counters["peak"] >= 0 and step > 0:
            peak_bytes, peak_how = counters["peak"], "measured"
        return MemoryMeasured(
            t_ns=self._journal.now_ns(),
            rank=rank,
            device=_index(device, rank - self._post.ranks.start),
            step=step,
            source="shards of parameters and optimizer state; XLA's plan of the step, whose temporaries hold gradients "
            "and activations",
            categories=sizes,
            how=how,
            peak_bytes=peak_bytes,
            peak_how=peak_how,
            pool_bytes=counters["pool"],
            in_use_bytes=counters["in_use"],
            limit_bytes=counters["limit"],
            largest_free_bytes=counters["largest_free"],
        )
