"""Memory as frameworks plan it, as text and as JSON."""

from __future__ import annotations

import sys
from typing import Any

from meshscope.advisor.exact import ExactMemory
from meshscope.advisor.planned import Planned, Plans
from meshscope.reports.advice_json import encoded, figure_values, laid_values, memory_values
from meshscope.reports.columns import encodable, table, wrapped
from meshscope.units import UNKNOWN, printable, size


def planned_json(found: Plans) -> str:
    """``{"format", "model", "plans": […]}``, in bytes."""
    values: dict[str, Any] = {
        "format": 1,
        "predicted": True,
        "model": printable(found.model),
        "devices": found.cluster.devices,
        "device": printable(found.cluster.device.name),
        "global_batch": found.batch,
        "plans": [_values(each) for each in found.found],
    }
    return encoded(values)


def _values(each: Planned) -> dict[str, Any]:
    exact = each.exact
    said: dict[str, Any] = laid_values(each.candidate)
    said |= {"exact": None if exact is None else _exact(exact)}
    said |= {"analytic": memory_values(each.analytic) if each.analytic else None}
    return said | ({"cannot_say": printable(each.why)} if each.why else {})


def _exact(exact: ExactMemory) -> dict[str, Any]:
    return {
        "workload": exact.strategy,
        "version": exact.version,
        "rank": exact.rank,
        "sizes": {name: figure_values(figure) for name, figure in exact.sizes.items()},
        "peak": figure_values(exact.peak) if exact.peak else None,
        "at_peak": {name: figure_values(figure) for name, figure in exact.at_peak.items()},
        "notes": [printable(note) for note in exact.notes],
    }


def planned_report(found: Plans, *, encoding: str | None = None) -> str:
    """A table per strategy: what the framework says, and the formulas beside it where the model's shape is known."""
    where = found.cluster
    lines = wrapped(
        f"{found.model} on {where.devices} × {where.device.name}, {found.batch} samples a step: memory of the rank "
        "that needs most, asked of the framework itself. Nothing ran on the devices.",
        indent="", hanging="  ",
    )  # fmt: skip
    for each in found.found:
        lines += ["", *_one(each)]
    text = "\n".join(printable(line) for line in lines)
    return encodable(text, encoding or getattr(sys.stdout, "encoding", None) or "utf-8")


def _one(each: Planned) -> list[str]:
    if each.exact is None:
        return wrapped(f"{each.name}: {each.why}", indent="", hanging="  ")
    exact, formulas = each.exact, each.analytic
    lines = [f"{each.name} ({exact.strategy}, {exact.framework} {exact.version}, rank {exact.rank} of {exact.ranks})"]
    names = list(dict.fromkeys((*exact.sizes, *(exact.at_peak if exact.peak else ()))))
    rows = [
        (name, _size(exact, name), size(exact.at_peak[name].value) if name in exact.at_peak else UNKNOWN,
         size(formulas.categories[name].value) if formulas and name in formulas.categories else UNKNOWN)
        for name in names
    ]  # fmt: skip
    if exact.peak:
        allocated = size(formulas.allocated.value) if formulas else UNKNOWN
        rows.append(("= peak", "", size(exact.peak.value), allocated))
    lines += table(("", "most in a step", "at the peak", "by formulas"), rows)
    for note in exact.notes:
        lines += wrapped(f"– {note}", indent="  ", hanging="  ")
    return lines


def _size(exact: ExactMemory, name: str) -> str:
    return size(exact.sizes[name].value) if name in exact.sizes else UNKNOWN
