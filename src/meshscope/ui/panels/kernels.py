"""Which kernels and operators take a step's device time, and for what: by name, by module or scope, by phase."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from textual.strip import Strip

from meshscope.analysis.carried_out import carried_out
from meshscope.analysis.exposed_names import exposed_fracs
from meshscope.analysis.homes import homes
from meshscope.analysis.operations import Operation, operations
from meshscope.analysis.phases import Phase, phases
from meshscope.analysis.scopes import Scopes, scopes
from meshscope.run import Run
from meshscope.ui.about import kernels as about
from meshscope.ui.marks.cells import strips
from meshscope.ui.panel import Frame, Fresh, Panel, note
from meshscope.ui.panels.kernel_rows import Grouping, Row, lines
from meshscope.ui.profiled import UNASKED, Profiled, depends, empty, profiled, suits
from meshscope.ui.scene import Scene
from meshscope.units import UNKNOWN, counted, durations, percent, ratio

_LENGTHS = {"p50": "median", "p95": "p95", "mean": "mean"}


@dataclass(frozen=True)
class Kernels:
    """The same device work grouped in several ways; ``at`` numbers the one that is looked at."""

    groupings: tuple[Grouping, ...] = ()
    at: int = 0
    profiled: Profiled = UNASKED

    @property
    def grouping(self) -> Grouping:
        return self.groupings[self.at]


def question(scene: Scene) -> Kernels:
    """All operations of the run that is looked at, and the scopes and phases where its traces tell any."""
    run = scene.run
    if run is None:
        return Kernels()
    found = operations(run)
    if not found:
        return Kernels(profiled=profiled(scene))
    groupings = [_by_name(run, found), *map(_by_scope, scopes(run)), *_by_phase(phases(run))]
    return Kernels(tuple(groupings), profiled=profiled(scene))


def _by_name(run: Run, found: Sequence[Operation]) -> Grouping:
    is_stepped = any(one.per_step_ns is not None for one in found)
    of_ns = sum(_ns(one.per_step_ns, one.total_ns) for one in found)
    home, exposed, carried = homes(run), exposed_fracs(run), carried_out(run)
    rows = []
    for one in found:
        if is_stepped and not one.per_step_count:
            continue  # the profiler saw it outside of the steps alone
        ns = _ns(one.per_step_ns, one.total_ns)
        at = home.get((one.name, one.kind))
        rows.append(
            Row(
                name=one.name,
                ns=ns,
                frac=ratio(ns, of_ns),
                calls=float(one.count if one.per_step_count is None else one.per_step_count),
                lengths_ns=(one.mean_ns, one.median_ns, one.p95_ns),
                kind=one.kind,
                exposed_frac=exposed.get(one.name, math.nan) if one.kind == "collective" else math.nan,
                cites=_cites(f"operations.{one.name or UNKNOWN}", is_stepped=is_stepped) | _single(one.name),
                home=at.scope if at else "",
                about=(
                    _told(one),
                    carried.get(one.name, "") if one.kind == "collective" else "",
                    f"{percent(at.frac)} of its time in {at.source} {at.scope}" if at else "",
                ),
            )
        )
    return Grouping("name", "names", _longest_first(rows), of_ns, is_stepped=is_stepped)


def _cites(number: str, *, is_stepped: bool) -> dict[str, str]:
    """What the figures of a row are explained by: those of the mean step, or of all that was traced."""
    if is_stepped:
        return {"ns": f"{number}.per_step", "share": f"{number}.per_step_share", "calls": f"{number}.per_step_count"}
    return {"ns": number, "share": f"{number}.share", "calls": f"{number}.count"}


def _single(name: str) -> dict[str, str]:
    return {column: f"operations.{name or UNKNOWN}.{what}" for column, what in _LENGTHS.items()}


def _cited_ns(number: str, *, is_stepped: bool) -> dict[str, str]:
    """The share of a mean step stands in no report: only the one of all that was traced can be explained."""
    return {"ns": f"{number}.per_step"} if is_stepped else {"ns": number, "share": f"{number}.share"}


def _ns(per_step_ns: float | None, total_ns: int) -> float:
    """Per step where any step is complete, as all rows have it then."""
    return float(total_ns if per_step_ns is None else per_step_ns)


def _longest_first(rows: Sequence[Row]) -> tuple[Row, ...]:
    return tuple(sorted(rows, key=lambda row: -row.ns))


def _told(one: Operation) -> str:
    ranks = counted(one.ranks, "rank")
    said = f"{one.kind} by the rule «{one.rule}»; {counted(one.count, 'call')} on {ranks}"
    mean, median, p95, longest = durations(one.mean_ns, one.median_ns, one.p95_ns, one.max_ns)
    return f"{said}: mean {mean}, median {median}, p95 {p95}, longest {longest}"


def _by_scope(found: Scopes) -> Grouping:
    of_ns = _ns(found.per_step_ns, found.of_ns)
    is_stepped = found.per_step_ns is not None
    rows = []
    for one in found.scopes:
        ns = _ns(one.per_step_ns, one.total_ns)
        backward = math.nan if one.backward_ns is None else ratio(one.backward_ns, one.total_ns)
        pieces = counted(one.works, "piece") + " of device work traced"
        back = "" if one.backward_ns is None else f"{percent(backward)} of its time is backward"
        rows.append(
            Row(
                one.name,
                ns,
                ratio(ns, of_ns),
                backward_frac=backward,
                about=(pieces, back),
                cites=_cited_ns(f"scopes.{found.source}.{one.name}", is_stepped=is_stepped),
            )
        )
    return Grouping(found.source, f"{found.source}s", _longest_first(rows), of_ns, is_stepped=is_stepped)


def _by_phase(found: Sequence[Phase]) -> list[Grouping]:
    if not found:
        return []
    of_ns = sum(_ns(one.per_step_ns, one.busy_ns) for one in found)
    is_stepped = any(one.per_step_ns is not None for one in found)
    rows = []
    for one in found:
        ns = _ns(one.per_step_ns, one.busy_ns)
        parts = (("compute", one.compute_ns), ("collectives", one.collective_ns), ("copies", one.copy_ns))
        busy, *each = durations(one.busy_ns, *(part for _, part in parts))
        words = ", ".join(f"{name} {said}" for (name, part), said in zip(parts, each, strict=True) if part)
        about = f"in all windows {busy} busy: {words}" if words else ""
        rows.append(
            Row(
                one.name,
                ns,
                ratio(ns, of_ns),
                about=(about, counted(one.works, "piece") + " of device work"),
                cites=_cited_ns(f"phases.{one.name}", is_stepped=is_stepped),
            )
        )
    return [Grouping("phase", "phases", tuple(rows), of_ns, is_stepped=is_stepped, is_union=True)]


def turned(answer: Kernels, by: int) -> Kernels:
    return replace(answer, at=by % len(answer.groupings)) if answer.groupings else answer


def count(answer: Kernels) -> int:
    return len(answer.grouping.rows) if answer.groupings else 0


def draw(answer: Kernels, frame: Frame) -> list[Strip]:
    if not answer.groupings:
        return note(empty(answer.profiled, PANEL.promise, what="which kernels take the time", fills=_FILLS), frame)
    others = [one.by for one in answer.groupings]
    others = others[answer.at + 1 :] + others[: answer.at]
    return strips(lines(answer.grouping, others, frame), frame.width, frame.height, frame.look)


_FILLS = "the kernels and operators that take the most device time"


def _fresh(answer: Kernels) -> Fresh:
    return answer.profiled.fresh if answer.groupings else Fresh()


PANEL = Panel(
    name="kernels",
    title="kernels & operators",
    number=11,
    key="K",
    promise="Which kernels and operators take a step's device time, how often they run, how evenly, and for what.",
    question=question,
    draw=draw,
    fresh=_fresh,
    depends=depends,
    of=("recording", "traces"),
    suits=suits,
    count=count,
    chooses=lambda answer: "kernel" if answer.grouping.by == "name" else answer.grouping.by,
    turned=turned,
    help=about.HELP,
    data=lambda answer: about.rows(answer.grouping if answer.groupings else None),
)
