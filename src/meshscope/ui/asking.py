"""One question in flight per panel: when it answers, draw it and ask about the newest.

Questions run in threads, which cannot be stopped; dropping answers that are no longer the newest would starve a
slow panel, so every answer is drawn.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeVar

from meshscope.errors import MeshscopeError
from meshscope.ui.later import loading
from meshscope.ui.panel import Panel
from meshscope.ui.scene import Scene

T = TypeVar("T")

# Figures that change faster than this cannot be read; the clock and the keys are not held up by it.
_BREATH_S = 0.25
# A question that costs more is put less often, so that a panel takes a thirtieth of a core at most; but what is shown
# stays within a second of what is known.
_MOST_SHARE, _LONGEST_BREATH_S = 0.03, 0.6


@dataclass(frozen=True, eq=False)
class Answered:
    """What a panel's question came to, for the run of one strategy: an answer, or an error a person can act on.

    One answering is equal to itself only. ``cost_s`` is the CPU time it took.
    """

    strategy: str
    key: Hashable
    answer: Any = None
    error: MeshscopeError | None = None
    cost_s: float = 0.0


async def in_thread(work: Callable[[], T]) -> T:
    """The result of ``work``, done in a thread that no exit of the program waits for."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(setter: Callable[[Any], None], value: object) -> None:
        # The screen may be gone by now, and its loop with it.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(lambda: None if future.done() else setter(value))

    def run() -> None:
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001  # not handled here: carried to the one who awaits it
            settle(future.set_exception, error)
        else:
            settle(future.set_result, result)

    threading.Thread(target=run, name="meshscope-question", daemon=True).start()
    return await future


class Asking:
    """The question of one panel. ``want`` names the newest scene; ``pending`` is the one to ask next, if any."""

    def __init__(self, panel: Panel) -> None:
        self.panel = panel
        self.answers: dict[str, Answered] = {}
        self._wanted: tuple[Hashable, Scene] | None = None
        self._is_in_flight = False
        self._asked_s = -math.inf

    def is_fresh(self, strategy: str) -> bool:
        """Whether this strategy was asked about so lately that nobody could read a newer answer yet."""
        known = self.answers.get(strategy)
        if known is None:
            return False
        breath_s = min(max(known.cost_s / _MOST_SHARE, _BREATH_S), _LONGEST_BREATH_S)
        return time.monotonic() - self._asked_s < breath_s

    @property
    def is_at_rest(self) -> bool:
        """Whether the newest that was wanted has been answered."""
        return not self._is_in_flight and self._wanted is None

    def want(self, scene: Scene) -> bool:
        """Take note of a scene. True when a question should be started now (see ``ask``)."""
        key = self._key(scene)
        known = self.answers.get(scene.selected)
        if known is not None and known.key == key:
            self._wanted = None
            return False
        self._wanted = (key, scene)
        return not self._is_in_flight

    async def ask(self, draw: Callable[[Answered], None]) -> None:
        """Ask until nothing newer is wanted, handing over every answer."""
        self._is_in_flight = True
        try:
            while self._wanted is not None:
                key, scene = self._wanted
                self._wanted = None
                self._asked_s = time.monotonic()
                answered = await in_thread(lambda key=key, scene=scene: self._answered(key, scene))  # type: ignore[misc]
                self.answers[scene.selected] = answered
                draw(answered)
        finally:
            self._is_in_flight = False

    def _key(self, scene: Scene) -> Hashable:
        # At the end the time itself counts: a run is seen to be lost only by the clock.
        end = scene.stance.now_unix_ns if scene.stance.is_at_end else 0
        return (scene.selected, self.panel.depends(scene), end)

    def _answered(self, key: Hashable, scene: Scene) -> Answered:
        begun_s = time.thread_time()
        try:
            with loading():
                answer = self.panel.question(scene)
            return Answered(scene.selected, key, answer, cost_s=time.thread_time() - begun_s)
        except MeshscopeError as error:
            return Answered(scene.selected, key, error=error)
