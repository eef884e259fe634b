"""Threads that wait for the next piece of work, so that a question that takes a millisecond starts none.

Work is done in the order in which it came, by one thread as long as that is quick: several that compute only take the
interpreter from each other. What has waited for PATIENCE_S is not left behind something slow: it gets another thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

PATIENCE_S = 0.05


class _Job:
    """A piece of work, and where to tell what became of it."""

    def __init__(self, work: Callable[[], Any], loop: asyncio.AbstractEventLoop) -> None:
        self.future: asyncio.Future[Any] = loop.create_future()
        self.has_begun = False
        self._work = work
        self._loop = loop

    def do(self) -> None:
        self.has_begun = True
        try:
            result = self._work()
        except BaseException as error:  # noqa: BLE001  # not handled here: carried to the one who awaits it
            self._settle(self.future.set_exception, error)
        else:
            self._settle(self.future.set_result, result)

    def _settle(self, setter: Callable[[Any], None], value: object) -> None:
        # The screen may be gone by now, and its loop with it.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(lambda: None if self.future.done() else setter(value))


class Hands:
    """Does work in threads that no exit of the program waits for. ``do`` is called by one event loop.

    ``started`` counts the threads so far.
    """

    def __init__(self, name: str = "meshscope-question") -> None:
        self.started = 0
        self._name = name
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0

    async def do(self, work: Callable[[], T]) -> T:
        """The result of ``work``."""
        loop = asyncio.get_running_loop()
        job = _Job(work, loop)
        self._jobs.put(job)
        if not self.started:
            self._start()
        relief = loop.call_later(PATIENCE_S, self._relieve, job)
        try:
            found: T = await job.future
            return found
        finally:
            relief.cancel()

    def close(self) -> None:
        """End the threads once what they do is done; nothing may be given to them any more."""
        for _ in range(self.started):
            self._jobs.put(None)

    def _relieve(self, job: _Job) -> None:
        if not job.has_begun:
            self._start()

    def _start(self) -> None:
        self.started += 1
        threading.Thread(target=self._run, name=self._name, daemon=True).start()

    def _run(self) -> None:
        while (job := self._next()) is not None:
            job.do()
            del job  # what it found is not kept alive until the next one comes

    def _next(self) -> _Job | None:
        """None where another thread waits for work already: one is enough."""
        with self._lock:
            if self._idle and self._jobs.empty():
                return None
            self._idle += 1
        job = self._jobs.get()
        with self._lock:
            self._idle -= 1
        return job
