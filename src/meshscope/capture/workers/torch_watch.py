"""The watch of a torch rank: steps, windows, memory and fingerprints into its journal.

It starts no collective, so watching changes nothing about who waits for whom.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeVar

import torch

from meshscope.capture.workers import torch_checks, torch_memory
from meshscope.capture.workers.asked_windows import AskedWindows
from meshscope.capture.workers.batch_shape import batch_shape
from meshscope.capture.workers.horizon import Horizon
from meshscope.capture.workers.post import Post
from meshscope.capture.workers.torch_account import Account
from meshscope.capture.workers.torch_compiles import TorchCompiles
from meshscope.capture.workers.torch_device import device_of
from meshscope.capture.workers.torch_memory import SavedTensors
from meshscope.capture.workers.torch_profile import TorchProfile, finished
from meshscope.recording.entries import Checked, Compiled, RankStarted, StepDone

T = TypeVar("T")


class TorchWatch:
    """See ``workloads/watching.py`` for what a script may call, and when."""

    def __init__(self, post: Post) -> None:
        self._post, self._journal = post, post.journal
        self._device = device_of(post.experiment.device_kind, post.local_rank)
        self._horizon = Horizon(post.recording, is_bounded=post.experiment.stable_frac > 0)
        self._windows = AskedWindows(post.recording, post.journal, has_warmup=True)
        self._profile: TorchProfile | None = None
        self._account: Account | None = None
        self._step = -1
        self._loss: float | None = None
        self._wait_ns = self._cpu_ns = 0
        self._shape: tuple[int, ...] = ()
        self._is_compiling = False
        self._compiles = TorchCompiles(post.journal)
        self._is_after_window = self._has_updated = False
        self._gradient_sum: float | None = None
        self._gradient_replicas: dict[str, float] = {}
        self._journal.append(
            RankStarted(
                t_ns=self._journal.now_ns(),
                rank=post.rank,
                device=post.local_rank,
                device_name=self._device.name,
                device_kind=self._device.kind,
                pid=os.getpid(),
                device_uuid=self._device.uuid,
            )
        )

    def started(
        self, *, parameters: Callable[[], Any], optimizer: Callable[[], Any], compiled: Any = None, key: Any = None
    ) -> None:
        self._account = Account(parameters(), optimizer())
        # Between backward and the update every gradient is alive, whenever a script clears them.
        self._account.optimizer.register_step_pre_hook(self._before_update)
        self._journal.phase("training")

    def step(self, number: int) -> AbstractContextManager[None]:
        return self._stepping(number)

    @contextmanager
    def _stepping(self, number: int) -> Iterator[None]:
        self._begin(number)
        saved = SavedTensors() if self._is_measuring else None
        start_ns, self._cpu_ns = self._journal.now_ns(), -time.process_time_ns()
        with saved or nullcontext():
            yield
        end_ns, self._cpu_ns = self._journal.now_ns(), self._cpu_ns + time.process_time_ns()
        if saved is not None and saved.peak_bytes and self._account is not None:
            self._account.note_saved(saved.peak_bytes)
        self._done(start_ns, end_ns)
        self._end()

    def batch(self, fetch: Callable[[], T]) -> T:
        start, cpu_start = time.perf_counter_ns(), time.process_time_ns()
        fetched = fetch()
        self._wait_ns += time.perf_counter_ns() - start
        self._cpu_ns -= time.process_time_ns() - cpu_start
        self._shape = batch_shape(fetched)
        return fetched

    def loss(self, value: Any) -> float:
        if value is None:  # a stage of a pipeline before the last computes none
            return float("nan")
        self._loss = float(value.detach() if isinstance(value, torch.Tensor) else value)
        return self._loss

    @contextmanager
    def compiling(self, what: str) -> Iterator[None]:
        self._is_compiling = True
        self._compiles.take(self._step)
        start = time.perf_counter_ns()
        after = "training" if self._account is not None else "importing"
        with self._journal.beating("compiling", after=after, detail=what):
            yield
        self._compiles.skip()
        self._journal.append(
            Compiled(
                t_ns=self._journal.now_ns(),
                rank=self._post.rank,
                name=what,
                stage="compile",
                duration_ns=time.perf_counter_ns() - start,
                step=self._step,
            )
        )

    def finished(self) -> None:
        self._close_window(ends_step=False)
        self._journal.phase("ending")

    @property
    def _is_measuring(self) -> bool:
        """Whether this step's saved tensors are counted. Hooks would make torch.compile compile again."""
        return self._step == self._post.memory_step() and not getattr(self._post.options, "compile", False)

    def _begin(self, number: int) -> None:
        self._horizon.begin(number)
        self._compiles.take(self._step)
        self._step, self._wait_ns, self._loss, self._gradient_sum = number, 0, None, None
        self._gradient_replicas = {}
        window = self._windows.at(number)
        if window is not None and self._profile is None:
            self._journal.phase("warming profiler" if number < window.first_step else "profiling")
            self._profile = TorchProfile(window, number, has_cuda=self._device.is_cuda)
        profile = self._profile
        if profile is not None and profile.window.has_memory and number == profile.window.first_step and self._account:
            # Growth counts from the first recorded step: at warm-up the optimizer may have no state yet.
            self._account.note_window()
        self._device.reset_peak()

    def _done(self, start_ns: int, end_ns: int) -> None:
        has_compiled = self._compiles.take(self._step)
        counters = self._device.counters()
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
                allocated_bytes=counters.allocated,
                reserved_bytes=counters.reserved,
                peak_bytes=counters.peak,
                cpu_ns=max(self._cpu_ns, 0),
                is_profiled=self._profile is not None or self._is_after_window,
                is_compiling=self._is_compiling or has_compiled,
            )
        )
        # The step after a window waits for the ranks that stop their profiler last.
        self._is_after_window = self._is_compiling = False

    def _end(self) -> None:
        """What is done between two steps, so that it is in neither's time."""
        if self._step == self._post.memory_step():
            self._measure(peak_bytes=self._device.counters().peak, peak_how="measured")
        if self._post.is_check(self._step) and self._account is not None:
            self._check(self._account.module)
        if self._profile is None:
            return
        if self._profile.is_last_step:
            self._close_window(ends_step=True)
            return
        self._profile.advance()
        if self._step + 1 == self._profile.window.first_step:
            self._journal.phase("profiling")

    def _close_window(self, *, ends_step: bool) -> None:
        profile, self._profile = self._profile, None
        if profile is None:
            return
        with self._journal.beating("stopping profiler", after="training"):
            finished(profile, self._journal, self._post.recording, ends_step=ends_step)
            if profile.window.has_memory and not self._device.is_cuda:
                self._note_peak(profile)
        self._is_after_window = True

    def _note_peak(self, profile: TorchProfile) -> None:
        growth_bytes = profile.peak_growth_bytes()
        if growth_bytes is not None and self._account is not None:
            self._measure(peak_bytes=self._account.peak_bytes(growth_bytes), peak_how="derived")

    def _measure(self, *, peak_bytes: int, peak_how: str) -> None:
        if self._account is not None:
            self._journal.append(
                self._account.entry(self._post, self._device, self._step, peak_bytes=peak_bytes, peak_how=peak_how)
            )

    def _before_update(self, *_: Any) -> None:
        if self._account is None:
            return
        if self._step == self._post.memory_step():
            self._account.note_trees(is_first_update=not self._has_updated)
        self._has_updated = True
        if self._post.is_check(self._step):
            replicated = torch_memory.replicated(self._account.module)
            gradients = [p.grad for p in replicated if p.grad is not None]
            self._gradient_sum = torch_checks.checksum(gradients)
            self._gradient_replicas = torch_checks.replicas(gradients)

    def _check(self, module: torch.nn.Module) -> None:
        self._journal.append(
            Checked(
                t_ns=self._journal.now_ns(),
                rank=self._post.rank,
                step=self._step,
                parameters=torch_checks.checksum(torch_memory.replicated(module)) or 0.0,
                gradients=self._gradient_sum,
                replicas=torch_checks.replicas(torch_memory.replicated(module)),
                gradient_replicas=self._gradient_replicas,
                rng=torch_checks.random_state(has_cuda=self._device.is_cuda),
                batch_shape=self._shape,
            )
        )
