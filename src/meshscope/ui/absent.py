"""Why something is not there that a key asks for: what was read holds none of it, or not yet."""

from __future__ import annotations

from collections.abc import Sequence

from meshscope.ui.panel import Panel
from meshscope.ui.scene import Scene
from meshscope.units import printable


def holding(scene: Scene) -> str:
    """``a memory snapshot``: what the files of a run are that hold no spans; "" where any does, or none is read."""
    run = scene.run
    if run is None or run.windows:
        return ""
    return " and ".join(f"a {printable(kind)}" for kind in dict.fromkeys(record.kind for record in run.records))


def no_panel(panels: Sequence[Panel], scene: Scene, number: int) -> str:
    """``panels`` are all there may be on this screen, those that do not suit the scene among them."""
    found = next((panel for panel in panels if panel.number == number), None)
    digit = number % 10
    if found is None:
        return f"No panel {digit} here: there is none of that number."
    return f"No panel {digit} here ({found.title}): {_why(found, scene)}."


def no_letter(panel: Panel, scene: Scene) -> str:
    return f"No panel {panel.key} here ({panel.title}): {_why(panel, scene)}."


def _why(panel: Panel, scene: Scene) -> str:
    if scene.run is None:
        return "none of the files could be read" if scene.is_read else "nothing is known of this run yet"
    if panel.name == "compile":
        return "nothing was compiled again" if scene.is_recorded else "the trace tells of no compilation"
    kinds = holding(scene)
    if kinds and panel.name not in ("memory", "devices", "log"):
        return f"{kinds} has no steps and no spans"
    return "what was read tells nothing of it"


def no_timeline(scene: Scene) -> str:
    """Why a run has none."""
    kinds = holding(scene)
    if kinds:
        return f"There is no timeline: {kinds} has no spans."
    if scene.is_of_traces:
        why = "none of the files could be read" if scene.is_read and scene.run is None else "nothing is read yet"
        return f"There is no timeline: {why if scene.run is None else 'what was read has no spans'}."
    if scene.run is not None and scene.run.ended is not None:
        return "There is no timeline: nothing of this run was profiled."
    return "There is no timeline: nothing of this run was profiled yet."
