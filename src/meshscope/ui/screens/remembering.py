"""A board that begins with the panel, and at the size, that it was left with."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from meshscope.ui.look import Look
from meshscope.ui.scene import Scene
from meshscope.ui.screens.keeping import Keeping

if TYPE_CHECKING:
    from meshscope.ui.commanding import Commanding


class Remembering(Keeping):
    """What was chosen by hand is remembered when the board is left; what it began with is not written again."""

    def __init__(self, look: Look, scene: Scene, *, of: str, fps: float) -> None:
        super().__init__(look, scene, of=of, fps=fps)
        self._of = of
        self._begun_with = (self._focused, self._is_maximised)
        self._is_recalled = False

    def _look_at(self, scene: Scene) -> None:
        super()._look_at(scene)
        if not self._is_recalled and self.scene.run is not None:
            self._is_recalled = True
            self._recall()

    def _recall(self) -> None:
        """Once there is a run, since which panels there are depends on it; unless somebody was faster."""
        if (self._focused, self._is_maximised) != self._begun_with:
            return
        kept = cast("Commanding", self.app).options.memory.remembered
        name = kept.focused.get(self._of, self._focused)
        if any(panel.name == name for panel in self._shown()):
            self._focused, self._is_maximised = name, kept.maximised.get(self._of, False)
            self._begun_with = (self._focused, self._is_maximised)
            self._refresh()
            self._ask()

    def on_unmount(self) -> None:
        if (self._focused, self._is_maximised) == self._begun_with:
            return
        memory = cast("Commanding", self.app).options.memory
        kept = memory.remembered
        memory.keep(
            focused=kept.focused | {self._of: self._focused}, maximised=kept.maximised | {self._of: self._is_maximised}
        )
