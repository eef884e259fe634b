"""Whether strategies learn what one device learns, as a table of the text report."""

from __future__ import annotations

import math
from collections.abc import Sequence

from meshscope.analysis.losses import EARLY_STEPS, TOLERANCE_FRAC, Agreement, losses
from meshscope.reports.columns import table, wrapped
from meshscope.run import Run
from meshscope.units import UNKNOWN, counted

_HEADING = ("strategy", "against", "losses", "largest difference", "at step", "steps")


def loss_lines(runs: Sequence[Run]) -> list[str]:
    """Nothing where no framework's single-device run is there."""
    found = losses(tuple(runs))
    compared = [one for one in found if one.against]
    if not compared:
        return []
    lines = ["", "The loss of each step, against that on one device:"]
    lines += table(_HEADING, [_row(one) for one in compared], indent="")
    lines += wrapped(
        f"agree: within {TOLERANCE_FRAC:g} of one device's loss, as far as fp32 sums taken in another order go, in "
        f"each of the first {counted(EARLY_STEPS, 'step')} at most. Steps count from 0.",
        indent="",
    )
    whys: dict[str, list[str]] = {}
    for one in found:
        if one.why:
            whys.setdefault(f"{one.state}: {one.why}", []).append(one.strategy)
    for why, names in whys.items():
        lines += wrapped(f"– {', '.join(names)}: {why}.", indent="", hanging="  ")
    return lines


def _row(found: Agreement) -> tuple[str, ...]:
    is_told = found.at_step >= 0
    largest = f"{found.largest_frac:.1e}" if math.isfinite(found.largest_frac) else UNKNOWN
    at = str(found.at_step) if is_told else UNKNOWN
    return (found.strategy, found.against, found.state, largest, at, str(found.steps))
