"""Candidates as a simulated recording in a folder of its own."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from meshscope.advisor.ranking import Ranked
from meshscope.advisor.simulated import write
from meshscope.advisor.simulated_steps import simulated
from meshscope.errors import RecordingError
from meshscope.ui.advise.answer import Answer


def simulated_folder(of: Answer, picked: Sequence[Ranked], place: Path) -> Path:
    """Write the simulated steps of some candidates beneath ``place``; the folder of the comparison.

    Raises NotCovered where one has no simulated step, RecordingError where it cannot be written.
    """
    now_ns = time.time_ns()
    question = of.advice.question
    stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(now_ns / 1e9))
    folder = place / f"simulated-{_plain(question.architecture.name)}-{question.cluster.devices}-{stamp}"
    some = [simulated(question, one) for one in picked]
    try:
        write(folder, some, now_unix_ns=now_ns)
    except OSError as error:
        raise RecordingError(
            f"{folder} cannot be written: {error.strerror}.", hint="Start in another folder."
        ) from error
    return folder


def _plain(name: str) -> str:
    return "".join(c if c.isalnum() or c in "-._" else "-" for c in name)
