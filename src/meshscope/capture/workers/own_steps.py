"""The steps of a user's own script: from one turn to the next, whoever tells the turns.

What tells them (an optimizer's hook, a step annotation, ``meshscope.step()``) tells an end. So a step lasts from one
turn to the next, its data, logging and evaluation included, and the first, whose beginning nobody told, is counted and
not timed. Nothing here waits for a device: the step times of a script that never waits are those of its host.
"""

from __future__ import annotations

import atexit
import os
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import Any

from meshscope import marking
from meshscope.capture.workers import own_stalls, stalls
from meshscope.capture.workers.asked_windows import AskedWindows
from meshscope.capture.workers.own_rank import Enlisted, harmless, on_error
from meshscope.recording.entries import RankEnded, StepDone

_NOTABLE_NS = 1_000_000


class OwnSteps(ABC):
    """Subclasses say who they are when the first step is over, and what is done between two steps.

    ``step`` is the number of the step under way, −1 before the first turn. Times are unix ns, 0 where not known.
    """

    has_warmup = True
    dumps: tuple[stalls.Dump, ...] = ()
    """What a rank leaves beside its stacks when it is asked where it stands."""

    def __init__(self) -> None:
        self.step = -1
        self.me: Enlisted | None = None
        self.is_marked = False
        self._is_out = False
        self._pid = os.getpid()
        self._shortest_ns = 0
        self._has_backlog = False
        self._windows: AskedWindows | None = None
        self._start_ns = self._start_cpu_ns = 0
        self._by_mark = harmless(self._turned, on_failure=self.drop)
        self._by_begin = harmless(self._begun, on_failure=self.drop)
        self._by_finish = harmless(self._finished, on_failure=self.drop)

    # What a script says itself (meshscope.marking.Marked)

    def begin(self) -> None:
        self._by_begin()

    def turn(self, *, loss: float | None = None, samples: int = -1, tokens: int = -1) -> None:
        self._by_mark(loss=loss, samples=samples, tokens=tokens)

    def finish(self) -> None:
        self._by_finish()

    # What subclasses tell

    @abstractmethod
    def enlist(self) -> Enlisted | None:
        """Take a rank, and announce it; None where another process has it."""

    @abstractmethod
    def ended(self, *, is_last: bool) -> None:
        """The step ``self.step`` has ended: what is done between two steps, so that it is in neither's time."""

    @abstractmethod
    def started(self, window: Any) -> None:
        """The step ``self.step`` begins; ``window`` is one to be profiled from here on, or None."""

    @abstractmethod
    def abandon(self) -> None:
        """Stop profiling, and keep nothing."""

    @abstractmethod
    def told(self) -> dict[str, Any]:
        """Further fields of the entry of the step that has just ended."""

    # Steps

    def turned(self, **given: Any) -> None:
        """One step has ended and the next begins."""
        end_ns, cpu_ns = time.time_ns(), time.process_time_ns()
        if self._is_out:
            return
        if self.me is None:
            if not self._joined():
                return
            self.step = 0
        if self._start_ns:
            self._done(end_ns, cpu_ns, given)
        self.ended(is_last=False)
        self._next()

    def _turned(self, *, loss: Any, samples: int, tokens: int) -> None:
        self.is_marked = True
        self.turned(loss=None if loss is None else float(loss), samples=int(samples), tokens=int(tokens))

    def _begun(self) -> None:
        """Step 0 begins. Who this process is can be said when it is over: then everything is in its place."""
        if self.me is None:
            self._start_ns, self._start_cpu_ns = time.time_ns(), time.process_time_ns()

    def _joined(self) -> bool:
        self._pid = os.getpid()
        self.me = self.enlist()
        if self.me is None:
            self._is_out = True
            return False
        self._windows = AskedWindows(self.me.recording, self.me.journal, has_warmup=self.has_warmup)
        on_error(harmless(self._failed, on_failure=lambda: None))
        atexit.register(self._by_finish)
        own_stalls.listen(self.me, *self.dumps)
        self.me.journal.phase("training")
        return True

    def _next(self) -> None:
        assert self.me is not None
        assert self._windows is not None
        self.step += 1
        self.started(self._windows.at(self.step))
        self._start_ns, self._start_cpu_ns = time.time_ns(), time.process_time_ns()

    def _done(self, end_ns: int, cpu_ns: int, given: dict[str, Any]) -> None:
        assert self.me is not None
        lasted_ns = max(end_ns - self._start_ns, 1)
        self._shortest_ns = min(lasted_ns, self._shortest_ns or lasted_ns)
        journal = self.me.journal
        fields = self.told() | {name: value for name, value in given.items() if value is not None}
        journal.append(
            StepDone(
                t_ns=journal.now_ns(),
                rank=journal.rank,
                step=self.step,
                start_ns=self._start_ns - journal.t0_unix_ns,
                end_ns=max(end_ns, self._start_ns) - journal.t0_unix_ns,
                **({"cpu_ns": max(cpu_ns - self._start_cpu_ns, 0)} | fields),
            )
        )

    def note_backlog(self, backlog_ns: int) -> None:
        """``backlog_ns``: how long the devices still worked when the host was through with a step."""
        assert self.me is not None
        if backlog_ns > max(self._shortest_ns, _NOTABLE_NS) and not self._has_backlog:
            self._has_backlog = True
            self.me.journal.log(
                "warning",
                f"The host was {backlog_ns / 1e6:.1f} ms ahead of its devices at step {self.step}: the script does "
                "not wait for them, so single step times are the host's; over many steps they add up to the devices'.",
            )

    # Endings

    def _finished(self) -> None:
        """The loop is over, or the script: the step under way is none."""
        if self.me is None or self._is_out or os.getpid() != self._pid:
            return
        self._is_out = True
        self.ended(is_last=True)
        self.me.journal.phase("ending")
        marking.hear(None)

    def _failed(self, error: BaseException) -> None:
        if self.me is None or os.getpid() != self._pid:
            return
        journal = self.me.journal
        why = f"{type(error).__name__}: {error}".strip().splitlines()[0][:500]
        for rank in self.ranks:
            journal.append(RankEnded(t_ns=journal.now_ns(), rank=rank, exit_code=1, why=why))

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks that this process speaks for."""
        return (self.me.journal.rank,) if self.me is not None else ()

    def drop(self) -> None:
        """Something failed: nothing is recorded any more, and no profiler goes on."""
        self._is_out = True
        marking.hear(None)
        with suppress(Exception):
            self.abandon()
