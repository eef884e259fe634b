"""The panels' questions of a board: which are to be put now, and what came of them, told together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from meshscope.ui.asking import Answered
from meshscope.ui.errands import Errands
from meshscope.ui.hands import Hands
from meshscope.ui.panel import Panel
from meshscope.ui.scene import Scene
from meshscope.ui.view import PanelView

_COVERED_S = 5.0
_TOGETHER_S = 0.05
"""An answer is drawn together with those that come within this, or as soon as no other is being worked out."""


class Questions:
    """The views of ``panels``, and their questions. ``told`` draws the views that have news: one drawing of several has
    Textual go over the screen once. ``failed`` is given what a question raises.
    """

    def __init__(
        self,
        panels: Sequence[Panel],
        told: Callable[[set[PanelView]], None],
        failed: Callable[[BaseException], object],
    ) -> None:
        self.errands = Errands(failed)
        self._hands = Hands()
        self._told = told
        self._news: set[PanelView] = set()
        self.views = {panel.name: PanelView(panel, self._hands) for panel in panels}

    @property
    def is_told(self) -> bool:
        """Whether the newest that was wanted has been answered and drawn."""
        return not (self._is_asking or self._news)

    def close(self) -> None:
        """With the screen."""
        self.errands.cancel()
        self._hands.close()

    def recall(self, scene: Scene) -> None:
        """Have every view of one run show what it answered about it before."""
        for view in self.views.values():
            if not view.panel.is_overall:
                view.asking.recall(scene)

    def put(self, scene: Scene, selected: str, *, is_covered: bool) -> None:
        """Put every question whose answer can be seen (and the overall one's, which the header needs).

        While another screen covers them, only the overall one, and seldom: the shell is told of it in the end.
        """
        is_moving = not (scene.stance.is_paused or scene.stance.is_at_end)
        for view in self.views.values():
            panel = view.panel
            if is_covered and not panel.is_overall:
                continue
            subject = "" if panel.is_overall else selected
            # What can be counted is told in the footer, seen or not.
            is_told = panel.is_overall or panel.is_told or view.display
            if not is_told or (is_moving and view.asking.is_fresh(subject, _COVERED_S if is_covered else 0.0)):
                continue
            if view.asking.want(scene.looking_at(subject)):
                self.errands.start(self._question(view))

    @property
    def _is_asking(self) -> bool:
        return any(not view.asking.is_at_rest for view in self.views.values())

    async def _question(self, view: PanelView) -> None:
        await view.asking.ask(partial(self._answered, view))
        if not self._is_asking:
            self._tell()

    def _answered(self, view: PanelView, _: Answered) -> None:
        is_first, self._news = not self._news, {*self._news, view}
        if is_first:
            self.errands.start(self._tell_soon())

    async def _tell_soon(self) -> None:
        await asyncio.sleep(_TOGETHER_S)
        self._tell()

    def _tell(self) -> None:
        news, self._news = self._news, set()
        self._told(news)
