"""What the hooks of a command's processes have left: why nothing was recorded, where nothing was."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from meshscope.recording.layout import LOGS

HOOK_LOG = "hook.txt"
_NO_PYTHON = (
    "No Python of the command loaded meshscope's hook: python -S, -I and -E leave it out, and so does a launcher "
    "that drops PYTHONPATH."
)
_NO_MSGSPEC = "To have it watched: {python} -m pip install msgspec"
_REFUSED = re.compile(r"^refused: (?P<python>.+) cannot be watched: msgspec is not installed for it$")
_NO_FRAMEWORK = "No process of the command imported torch or JAX: there was nothing to profile."
_NO_STEP = {
    "torch": "No step of a torch optimizer was seen. Where yours is none of torch's, or its step is compiled, call "
    "meshscope.step() once per step.",
    "jax": "No training step was seen: enter jax.profiler.StepTraceAnnotation around each, or call meshscope.step() "
    "once per step.",
}


def unwatched(recording: Path, *, has_ranks: bool) -> list[tuple[str, str]]:
    """(text, level) of what is worth knowing: each failure of a hook once, and why there is no rank where there is
    none."""
    lines = _lines(recording / LOGS / HOOK_LOG)
    troubles = [line for line in lines if line.startswith(("refused: ", "failed: "))]
    said = [(line.partition(": ")[2], "warning") for line in dict.fromkeys(troubles)]
    said += [(_NO_MSGSPEC.format(python=python), "warning") for python in _without_msgspec(troubles)]
    if has_ranks or said:
        return said
    imported = [line.removeprefix("imported: ") for line in lines if line.startswith("imported: ")]
    if imported:
        return [(_NO_STEP[name], "warning") for name in dict.fromkeys(imported) if name in _NO_STEP]
    return [(_NO_FRAMEWORK if lines else _NO_PYTHON, "warning")]


def _without_msgspec(troubles: list[str]) -> list[str]:
    """The Pythons that ran unwatched for want of it, as a shell wants them."""
    found = (_REFUSED.match(line) for line in troubles)
    return [shlex.quote(python) for python in dict.fromkeys(one["python"] for one in found if one is not None)]


def _lines(log: Path) -> list[str]:
    """Without the process ids in front."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return [line.partition(" ")[2] for line in text.splitlines()]
