"""Coroutines that a screen starts many times a second: plain tasks, each of which costs a tenth of a Textual worker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class Errands:
    """What a screen has under way. ``failed`` is told what one raises; ``cancel`` ends all of them, with the screen."""

    def __init__(self, failed: Callable[[BaseException], object]) -> None:
        self._failed = failed
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, errand: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(errand)
        self._tasks.add(task)  # a loop keeps no task alive by itself
        task.add_done_callback(self._done)

    def cancel(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failed(error)
