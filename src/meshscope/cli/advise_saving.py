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

    Raises RecordingError where something stands there, InputError or NotCovered where a candidate has no simulated
    step.
    """
    from meshscope.advisor.simulated import write
    from meshscope.advisor.simulated_steps import simulated
    from meshscope.errors import InputError
    from meshscope.units import counted, printable

    able = [each for each in (*found.advice.ranked, *found.advice.close) if each.time is not None]
    chosen = [simulated(found.posed.question, each) for each in able[: min(top, _MOST)]]
    if not chosen:
        raise InputError("No candidate has a simulated step.", hint="Ask for other devices or strategies.")
    write(folder, chosen, now_unix_ns=time.time_ns())
    where = printable(str(folder))
    click.echo(f"note: {counted(len(chosen), 'simulated step')} in {where}: meshscope replay {where}", err=True)
