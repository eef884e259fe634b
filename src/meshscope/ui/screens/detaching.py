"""The question before a job is left that was attached to: it is somebody else's, and goes on either way."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType

from meshscope.ui.scene import Scene
from meshscope.ui.screens.dialog import Leaving


class Detaching(Leaving):
    """``stop`` ends the recording, ``leave`` lets it go on; neither touches the job."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("d", "answer('stop')", show=False)]
    TITLE: ClassVar[str] = "attached to a running job"
    STOPPING: ClassVar[str] = "Detaching: the job goes on as it was…"
    CHOICES: ClassVar[tuple[tuple[str, str, str | None], ...]] = (
        ("d", "detach: the recording ends, the job goes on as it was", "stop"),
        ("l", "leave it recording; meshscope watch rejoins it", "leave"),
        ("c", "cancel: back to the screen", None),
    )


def leaving(scene: Scene) -> type[Leaving]:
    """The question that suits what is live."""
    return Detaching if any(run.experiment.is_attached for run in scene.runs) else Leaving
