"""``meshscope advise --save-simulated``: the steps of the listed candidates as a recording, which says what it is."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from meshscope.advisor.answer import Answer

_MOST = 4


def saved(found: Answer, folder: Path, *, top: int) -> None:
    """Writes the first of them (at most four: ranks are drawn one by one) into a new folder, and says so on stderr.

    Raises RecordingError where something stands there, InputError where no candidate has a simulated step.
    """
    from meshscope.advisor.simulated import Simulated, write
    from meshscope.errors import InputError
    from meshscope.units import counted, printable

    question = found.posed.question
    able = [each for each in (*found.advice.ranked, *found.advice.close) if each.time is not None and each.time.spans]
    chosen = able[: min(top, _MOST)]
    if not chosen:
        raise InputError("No candidate has a simulated step.", hint="Ask for other devices or strategies.")
    simulated = [Simulated(question.architecture, each.candidate, question.cluster, each.forecast) for each in chosen]
    write(folder, simulated, t0_unix_ns=time.time_ns())
    where = printable(str(folder))
    click.echo(f"note: {counted(len(chosen), 'simulated step')} in {where}: meshscope replay {where}", err=True)
