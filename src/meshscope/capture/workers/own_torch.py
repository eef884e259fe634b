"""The watch of a torch script that knows nothing of it.

Steps are counted by the optimizer that steps first: gradient accumulation is then one step, and of two optimizers (a
GAN's) the first one's steps are the script's. The one that calls another from within its own step (ZeRO) is the first.
No collective is started, no device waited for, and no counter of the script's reset.
"""

from __future__ import annotations

import os
import sys
import time
import weakref
from typing import Any

import torch

from meshscope.capture.workers import own_modules, torch_checks, torch_flight
from meshscope.capture.workers.own_around import Around
from meshscope.capture.workers.own_loading import LoaderWaits
from meshscope.capture.workers.own_rank import Enlisted, Place, enlist, harmless, place, say
from meshscope.capture.workers.own_steps import OwnSteps
from meshscope.capture.workers.post import Post
from meshscope.capture.workers.torch_account import Account
from meshscope.capture.workers.torch_compiles import TorchCompiles
from meshscope.capture.workers.torch_device import Cpu, Cuda
from meshscope.capture.workers.torch_profile import TorchProfile, finished
from meshscope.recording.control import Ask
from meshscope.recording.entries import Checked, RankStarted, Recognized

_MEMORY_STEP = 3  # by then a second optimizer has stepped too, if it ever does


class TorchSteps(OwnSteps):
    """One rank's steps, windows and memory."""

    dumps = (torch_flight.dump_where_on,)

    def __init__(self) -> None:
        super().__init__()
        self._leader: weakref.ref[torch.optim.Optimizer] | None = None
        self._stepped: weakref.WeakSet[torch.optim.Optimizer] = weakref.WeakSet()
        self._post: Post | None = None
        self._device: Cpu | Cuda = Cpu()
        self._account: Account | None = None
        self._compiles: TorchCompiles | None = None
        self._loading = LoaderWaits()
        self._profile: TorchProfile | None = None
        self._is_after_window = self._has_compiled = False
        self._around: Around | None = None
        self._has_engine = False

    # The optimizers' hooks

    def before(self, optimizer: torch.optim.Optimizer) -> None:
        """An optimizer's step begins: every gradient is alive."""
        if self._leader is None or self._leader() is None:
            self._leader = weakref.ref(optimizer)
        if self.me is None or self.step <= _MEMORY_STEP:
            self._stepped.add(optimizer)
        is_leader = self._leader() is optimizer
        if is_leader and self._around is not None and self._around.is_due:
            # The script calls the step by another name than the optimizer's own.
            self._around.is_due = False
            self._around.is_of_use = False
            self.turned()
        if is_leader and self._account is not None and self.step == _MEMORY_STEP:
            self._account.note_trees(is_first_update=False)

    def after(self, optimizer: torch.optim.Optimizer) -> None:
        """An optimizer's step is over, but for the end of torch's own record of it."""
        if self.is_marked or self._has_engine or self._leader is None or self._leader() is not optimizer:
            return
        if self._around is not None and self._around.is_of_use:
            self._around.is_due = True
        else:
            self.turned()

    def updates(self) -> None:
        """An engine begins an update: it tells the steps from here on, and its optimizers do not."""
        self._has_engine = True

    def updated(self) -> None:
        """An engine has made an update."""
        if not self.is_marked:
            self.turned()

    def _passed(self) -> None:
        """The leader's step has returned while a window is open: its record is whole."""
        if self._around is not None and self._around.is_due:
            self._around.is_due = False
            self.turned()

    # What OwnSteps asks

    def enlist(self) -> Enlisted | None:
        here = _place()
        me = enlist(here.rank)
        if me is None:
            return None
        optimizers = own_modules.Optimizers(self._stepped)
        modules = own_modules.roots(optimizers)
        self._device = _device(optimizers)
        local_rank = torch.cuda.current_device() if self._device.is_cuda else here.local_rank
        self._announce(me, here, local_rank, modules, optimizers)
        self._post = Post(me.recording, me.experiment, me.journal, None, here.rank, local_rank, 0)
        self._compiles = TorchCompiles(me.journal)
        self._loading.listen()
        return me

    def _announce(
        self,
        me: Enlisted,
        here: Place,
        local_rank: int,
        modules: list[torch.nn.Module],
        optimizers: own_modules.Optimizers,
    ) -> None:
        journal, device = me.journal, self._device
        started = RankStarted(
            t_ns=journal.now_ns(), rank=here.rank, device=local_rank, device_name=device.name, device_kind=device.kind,
            pid=os.getpid(), device_uuid=device.uuid,
        )  # fmt: skip
        module = own_modules.whole(modules)
        found = own_modules.approach(module, optimizers, here.ranks)
        if self._has_engine:
            found = own_modules.DEEPSPEED  # Under ZeRO its optimizer holds parameters that no module does.
        recognized = Recognized(
            t_ns=journal.now_ns(), rank=here.rank, framework="torch", ranks=here.ranks, device_kind=device.kind,
            seen=found.seen, title=found.title, parameters=own_modules.parameter_count(module),
            versions={"torch": str(torch.__version__), "python": sys.version.split()[0]},
        )  # fmt: skip
        journal.append(started)
        journal.append(recognized)
        if not modules:
            journal.log("info", "No module holds the optimizer's parameters: memory is not told apart.")
        else:
            self._account = Account(module, optimizers)  # it has what an Account reads

    def _account_anew(self) -> None:
        """With the optimizers that have stepped since the first one did."""
        optimizers = own_modules.Optimizers(self._stepped)
        if self._account is not None and optimizers.parameter_ids() != self._account.optimizer.parameter_ids():
            module = own_modules.whole(own_modules.roots(optimizers))
            self._account = Account(module, optimizers)

    def started(self, window: Any) -> None:
        assert self._post is not None
        if window is not None and self._profile is None:
            self._post.journal.phase("warming profiler" if self.step < window.first_step else "profiling")
            self._profile = TorchProfile(window, self.step, has_cuda=self._device.is_cuda)
            self._surround()
        if self.step == _MEMORY_STEP:
            self._account_anew()
        profile = self._profile
        if profile is not None and profile.window.has_memory and self.step == profile.window.first_step:
            if self._account is not None:
                self._account.note_window()
            self._post.journal.phase("profiling")
        self._loading.take()

    def told(self) -> dict[str, Any]:
        assert self._compiles is not None
        counters = self._device.counters()
        has_compiled = self._compiles.take(self.step)
        is_profiled = self._profile is not None or self._is_after_window
        self._is_after_window = False
        return {
            "data_wait_ns": self._loading.take(),
            "allocated_bytes": counters.allocated,
            "reserved_bytes": counters.reserved,
            "peak_bytes": counters.peak,
            "is_profiled": is_profiled,
            "is_compiling": has_compiled,
        }

    def ended(self, *, is_last: bool) -> None:
        assert self._compiles is not None
        if self.step <= 0:
            self._compiles.take(0)
        if self.step == _MEMORY_STEP and not is_last:
            self._measure(peak_bytes=self._device.counters().peak, peak_how="measured")
        if self._profile is None:
            return
        if is_last or self._profile.is_last_step:
            self._close_window(ends_step=not is_last)
            return
        self._profile.advance()

    # Windows

    def _surround(self) -> None:
        leader = self._leader() if self._leader is not None else None
        if leader is not None and not (self.is_marked or self._has_engine):
            self._around = Around(leader, harmless(self._passed, on_failure=self.drop))

    def _close_window(self, *, ends_step: bool) -> None:
        profile, self._profile = self._profile, None
        if profile is None or self._post is None:
            return
        if self._around is not None:
            self._around.leave()
            self._around = None
        with self._post.journal.beating("stopping profiler", after="training"):
            if self._device.is_cuda:
                began_ns = time.perf_counter_ns()
                torch.cuda.synchronize(self._post.local_rank)  # the profiler's stop would wait as well
                self.note_backlog(time.perf_counter_ns() - began_ns)
            finished(profile, self._post.journal, self._post.recording, ends_step=ends_step)
            if ends_step:
                self._close_accounts(profile.window, profile)
        self._is_after_window = True

    def abandon(self) -> None:
        profile, self._profile = self._profile, None
        if self._around is not None:
            self._around.leave()
        if profile is not None:
            profile.stop()

    def _close_accounts(self, window: Ask, profile: TorchProfile) -> None:
        """What is read once per window, where the ranks stand still anyway."""
        assert self._post is not None
        if self._account is None:
            return
        if window.has_memory and not self._device.is_cuda:
            growth_bytes = profile.peak_growth_bytes()
            if growth_bytes is not None:
                self._measure(peak_bytes=self._account.peak_bytes(growth_bytes), peak_how="derived")
        self._post.journal.append(
            Checked(
                t_ns=self._post.journal.now_ns(),
                rank=self._post.rank,
                step=self.step,
                parameters=torch_checks.checksum(self._account.module.parameters()) or 0.0,
                rng=torch_checks.random_state(has_cuda=self._device.is_cuda),
            )
        )

    def _measure(self, *, peak_bytes: int, peak_how: str) -> None:
        if self._account is not None and self._post is not None:
            entry = self._account.entry(self._post, self._device, self.step, peak_bytes=peak_bytes, peak_how=peak_how)
            self._post.journal.append(entry)


def _place() -> Place:
    """By torch.distributed where the script has joined a group, else by the environment."""
    told = place()
    dist = torch.distributed
    if not (dist.is_available() and dist.is_initialized()):
        return told
    rank, ranks = dist.get_rank(), dist.get_world_size()
    return Place(rank, ranks, told.local_rank if told.ranks == ranks else rank)


def _device(optimizers: own_modules.Optimizers) -> Cpu | Cuda:
    """Where the first parameter lies."""
    parameters = (p for one in optimizers.members for group in one.param_groups for p in group["params"])
    first = next(parameters, None)
    if first is None or first.device.type != "cuda":
        if first is not None and first.device.type != "cpu":
            say(f"note: parameters on {first.device.type}: its memory is not counted")
        return Cpu()
    return Cuda(first.device.index or 0)
