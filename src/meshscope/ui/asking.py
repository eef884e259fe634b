"""One question in flight per panel: when it answers, draw it and ask about the newest.

Questions run in threads, which cannot be stopped; dropping answers that are no longer the newest would starve a
slow panel, so every answer is drawn.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeVar

from meshscope.errors import MeshscopeError
from meshscope.ui.hands import Hands
from meshscope.ui.later import loading
from meshscope.ui.panel import Panel
from meshscope.ui.scene import Scene

T = TypeVar("T")

# Figures that change faster than this cannot be read; the clock and the keys are not held up by it.
BREATH_S = 0.25
# What costs more to ask and draw is asked less often, so that a dozen panels leave the cores to the run that they
# watch; but what is shown stays within a second of what is known.
_MOST_SHARE, _LONGEST_BREATH_S = 0.003, 0.55
# A clock that goes back and forth comes to where it was asked before.
_KEPT = 6


@dataclass(frozen=True, eq=False)
class Answered:
    """What a panel's question came to, for the run of one strategy: an answer, or an error a person can act on.

    One answering is equal to itself only. ``cost_s`` is the CPU time that it took to work out.
    """

    strategy: str
    key: Hashable
    answer: Any = None
    error: MeshscopeError | None = None
    cost_s: float = 0.0


async def in_thread(work: Callable[[], T]) -> T:
    """The result of ``work``, done in a thread of its own that no exit of the program waits for."""
    hands = Hands()
    try:
        return await hands.do(work)
    finally:
        hands.close()


class Asking:
    """The question of one panel, worked out by ``hands``. ``want`` names the newest scene.

    ``answers`` has for each strategy the one to show: the newest, or an earlier one that was recalled. ``drawn_s`` is
    the CPU time that drawing the newest answer took.
    """

    def __init__(self, panel: Panel, hands: Hands | None = None) -> None:
        self.panel = panel
        self._hands = hands or Hands()
        self.answers: dict[str, Answered] = {}
        self._kept: dict[Hashable, Answered] = {}
        self._wanted: tuple[Hashable, Scene] | None = None
        self.drawn_s = 0.0
        self._is_in_flight = False
        self._asked_s = -math.inf

    def is_fresh(self, strategy: str, least_s: float = 0.0) -> bool:
        """Whether this strategy was asked about so lately that nobody could read a newer answer yet.

        ``least_s`` is for how long an answer does at least.
        """
        known = self.answers.get(strategy)
        if known is None:
            return False
        breath_s = min(max((known.cost_s + self.drawn_s) / _MOST_SHARE, BREATH_S), _LONGEST_BREATH_S)
        return time.monotonic() - self._asked_s < max(breath_s, least_s)

    @property
    def is_at_rest(self) -> bool:
        """Whether the newest that was wanted has been answered."""
        return not self._is_in_flight and self._wanted is None

    def recall(self, scene: Scene) -> None:
        """Show the answer to this very question again, where it is one of the last few: then it needs no asking."""
        found = self._kept.get(self._key(scene))
        if found is not None:
            self.answers[scene.selected] = found

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
        """Ask until nothing newer is wanted, handing over every answer. Nothing where that is under way already."""
        if self._is_in_flight:
            return
        self._is_in_flight = True
        try:
            while self._wanted is not None:
                key, scene = self._wanted
                self._wanted = None
                self._asked_s = time.monotonic()
                answered = await self._hands.do(lambda key=key, scene=scene: self._answered(key, scene))  # type: ignore[misc]
                self.answers[scene.selected] = answered
                self._keep(answered)
                draw(answered)
        finally:
            self._is_in_flight = False

    def _keep(self, answered: Answered) -> None:
        self._kept.pop(answered.key, None)
        while len(self._kept) >= _KEPT:
            del self._kept[next(iter(self._kept))]
        self._kept[answered.key] = answered

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
