"""``meshscope advise --against`` and ``--calibration``: what was measured beside, or under, what is predicted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

    from meshscope.advisor.against import Against
    from meshscope.advisor.multipliers import Multipliers
    from meshscope.run import Run


def compared(path: Path, calibration: Path | None, devices: str | None, *, is_json: bool, folder: Path | None) -> int:
    """Prints each run of the recording beside its prediction. Raises InputError where none can be predicted."""
    from meshscope.advisor.against import against
    from meshscope.advisor.coverage import NotCovered
    from meshscope.advisor.hardware import cluster
    from meshscope.advisor.multipliers import NEUTRAL
    from meshscope.errors import InputError
    from meshscope.units import printable

    known = multipliers(calibration) if calibration is not None else NEUTRAL
    where = cluster(devices, folder) if devices else None
    found: list[Against] = []
    refused: list[tuple[str, str, str]] = []
    for run in _runs(path):
        try:
            found.append(against(run, where, known))
        except NotCovered as uncovered:
            refused.append((run.name, uncovered.reason, uncovered.hint))
    if not found and refused:
        raise InputError(f"{refused[0][0]}: {refused[0][1]}", hint=refused[0][2] or "Give a run of a bundled model.")
    click.echo(_json(found, refused) if is_json else _text(found))
    for name, why, _ in refused:
        click.echo(f"meshscope: {printable(f'{name}: {why}')}", err=True)
    return 0


def multipliers(path: Path) -> Multipliers:
    """What a recording, or a file that ``meshscope calibrate`` wrote, says of the machine.

    Raises InputError where it says nothing.
    """
    from meshscope.advisor.against import ran_on
    from meshscope.advisor.calibration import calibration
    from meshscope.advisor.coverage import NotCovered
    from meshscope.advisor.recorded import recorded
    from meshscope.errors import InputError

    reasons = []
    for run in _runs(path):
        try:
            return calibration(run, ran_on(recorded(run))).multipliers
        except NotCovered as uncovered:
            reasons.append(f"{run.name}: {uncovered.reason}")
    why = reasons[0] if reasons else "it holds no run"
    raise InputError(f"{path} cannot be calibrated on: {why}.", hint="Record a bundled model: meshscope run ddp")


def _runs(path: Path) -> list[Run]:
    from meshscope.cli.opening import open_paths
    from meshscope.errors import InputError

    opened = open_paths((path,))
    if not opened.runs:
        name, why, hint = opened.refused[0]
        raise InputError(why if name in why else f"{name}: {why}", hint=hint)
    return list(opened.runs)


def _text(found: Sequence[Against]) -> str:
    import sys

    from meshscope.reports.against_text import against_text
    from meshscope.reports.columns import encodable

    text = "\n\n".join(against_text(each) for each in found)
    return encodable(text, getattr(sys.stdout, "encoding", None) or "utf-8")


def _json(found: Sequence[Against], refused: Sequence[tuple[str, str, str]]) -> str:
    from meshscope.reports.advice_json import encoded
    from meshscope.reports.against_json import against_json
    from meshscope.units import printable

    told = [{"path": printable(name), "why": printable(why), "hint": hint} for name, why, hint in refused]
    return encoded({"format": 1, "against": [against_json(each) for each in found], "refused": told})
