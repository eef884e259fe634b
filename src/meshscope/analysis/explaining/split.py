"""Where time goes, as a tree of figures: from the unions of each window up to the mean step and its shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from meshscope.analysis.breakdown import Breakdown, Part, of_step, parts
from meshscope.analysis.device_steps import device_step_ns
from meshscope.analysis.explaining.evidence import labels, stepped, whole
from meshscope.analysis.explaining.figure import (
    DIFFERENCE,
    QUOTIENT,
    ROUNDED_QUOTIENT,
    SUM,
    Figure,
    counted_of,
    made,
    total,
)
from meshscope.analysis.explaining.number import Asked
from meshscope.intervals import Intervals, union
from meshscope.spans import Window

PARTS = ("compute", "hidden", "exposed", "copy", "idle")
"""The five parts of a span that add up to it, as the comparison has them: compute is what hides no collective."""


@dataclass(frozen=True, eq=False)
class Counting:
    """A window and what counts of it: ``bounds``, and its share of the answer there. ``steps`` are those in it."""

    window: Window
    part: Breakdown
    bounds: Intervals
    steps: tuple[int, ...]
    is_whole: bool = False


def counting(asked: Asked, *, is_whole: bool = False) -> tuple[Counting, ...]:
    """Of every window with device work that is asked about: its complete steps, or all of it."""
    known = parts(asked.run)
    found = []
    for window in asked.run.windows:
        if window.device_kind == "none" or not asked.has(window.rank):
            continue
        if is_whole:
            found.append(Counting(window, known[window].total, whole(window), window.steps, is_whole=True))
        elif asked.step is None:
            found.append(_stepped(window, known[window]))
        elif asked.step in window.steps:
            found.append(_one_step(asked, window, asked.step))
    return tuple(found)


def _stepped(window: Window, part: Part) -> Counting:
    return Counting(window, part.stepped, stepped(window), part.steps)


def _one_step(asked: Asked, window: Window, step: int) -> Counting:
    part = of_step(asked.run, window, step)
    bounds = device_step_ns(window)[window.steps.index(step)]
    return Counting(window, part.stepped, union(bounds[:1], bounds[1:]), part.steps)


def totals(found: Sequence[Counting], when: str) -> dict[str, Figure]:
    """Each class of time over all that counts, window by window; without ``wait`` where one window does not know it."""

    names = labels([one.window for one in found])

    def joined(what: str, name: str) -> Figure:
        leaves = [Figure(called, getattr(one.part, f"{what}_ns")) for one, called in zip(found, names, strict=True)]
        return total(name, leaves)

    read = {
        "span": joined("span", f"span {when}"),
        "compute": joined("compute", f"compute {when}"),
        "collective": joined("collective", f"collectives {when}"),
        "copy": joined("copy", f"copies {when}"),
        "hidden": joined("hidden", f"hidden {when}"),
        "busy": joined("busy", f"busy {when}"),
    }
    if all(one.part.wait_ns is not None for one in found):
        read["wait"] = joined("wait", f"waiting {when}")
    exposed = made(f"exposed {when}", DIFFERENCE, read["collective"], read["hidden"])
    idle = made(f"idle {when}", DIFFERENCE, read["span"], read["busy"])
    return read | {"exposed": exposed, "idle": idle}


def means(found: Sequence[Counting]) -> dict[str, Figure]:
    """The mean complete step: five parts are rounded, and everything else is added up from them."""
    of = totals(found, "in complete steps")
    steps = counted_of(sum(len(one.steps) for one in found), "steps")

    def mean(name: str, figure: Figure) -> Figure:
        if steps.value == 1:  # a mean of one needs no division
            return replace(figure, name=name)
        return made(name, ROUNDED_QUOTIENT, figure, steps)

    hidden, exposed, idle = (mean(name, of[name]) for name in ("hidden", "exposed", "idle"))
    alone = mean("compute alone", made("compute alone in complete steps", DIFFERENCE, of["compute"], of["hidden"]))
    compute = made("compute", SUM, alone, hidden)
    copies = made("copies alone in complete steps", DIFFERENCE, of["busy"], of["compute"], of["exposed"])
    busy = made("busy", SUM, mean("copies alone", copies), compute, exposed)
    found_means = {
        "hidden": hidden,
        "exposed": exposed,
        "idle": idle,
        "compute": compute,
        "collective": made("collectives", SUM, hidden, exposed),
        "copy": mean("copies", of["copy"]),
        "busy": busy,
        "span": made("span of a step", SUM, busy, idle),
    }
    return found_means | ({"wait": mean("waiting", of["wait"])} if "wait" in of else {})


def share(name: str, of: dict[str, Figure]) -> Figure | None:
    """One of PARTS over the span; None without a span."""
    if not of["span"].value:
        return None
    part = {
        "compute": lambda: made("compute alone", DIFFERENCE, of["compute"], of["hidden"]),
        "copy": lambda: made("copies alone", DIFFERENCE, of["busy"], of["compute"], of["exposed"]),
    }.get(name, lambda: of[name])()
    return made(f"share of {name}", QUOTIENT, part, of["span"], unit="frac")
