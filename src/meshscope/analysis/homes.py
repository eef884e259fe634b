"""Which module, annotation or named scope each kernel and operator was launched for, as far as the trace tells."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from meshscope.analysis.parts import per_window
from meshscope.analysis.places import places
from meshscope.analysis.scopes import SOURCES, scope_of, weights
from meshscope.kinds import Kind
from meshscope.run import Run
from meshscope.spans import Window
from meshscope.units import ratio

Key = tuple[str, str]
"""The name of an operation and its kind."""


@dataclass(frozen=True)
class Home:
    """The scope that has most of an operation's time: ``frac`` of it, over ``scopes`` that have any."""

    source: str
    scope: str
    frac: float
    scopes: int


Part = dict[str, dict[Key, Counter[str]]]
"""By source and operation, the time (ns) in each scope; "" is what is in none."""


@per_window
def measure(window: Window) -> Part:
    found = scope_of(window)
    if not found:
        return {}
    spans, row = window.spans, places(window).row
    weight_ns = weights(window, row)
    names = (*spans.names, "")  # −1, no name, finds the last
    operation = (spans.name[row].astype(np.int64) % len(names)) * len(Kind) + spans.kind[row]
    part: Part = {}
    for source, scoped in found.items():
        width = len(scoped.names) + 1
        codes, number = np.unique(operation * width + scoped.code + 1, return_inverse=True)
        total_ns = np.zeros(len(codes), dtype=np.int64)
        np.add.at(total_ns, number.reshape(-1), weight_ns)
        for code, ns in zip(codes.tolist(), total_ns.tolist(), strict=True):
            which, scope = divmod(code, width)
            key = (names[which // len(Kind)], Kind(which % len(Kind)).name.lower())
            part.setdefault(source, {}).setdefault(key, Counter())[scoped.names[scope - 1] if scope else ""] += ns
    return part


def homes(run: Run) -> dict[Key, Home]:
    """By operation; one that is in no scope is absent. Modules come before annotations where a trace has both."""
    found: dict[str, dict[Key, Counter[str]]] = {}
    for window in run.windows:
        for source, operations in measure(window).items():
            kept = found.setdefault(source, {})
            for key, times_ns in operations.items():
                kept.setdefault(key, Counter()).update(times_ns)
    source = next((one for one in SOURCES if one in found), "")
    return {key: home for key, times_ns in found.get(source, {}).items() if (home := _home(source, times_ns))}


def _home(source: str, times_ns: Counter[str]) -> Home | None:
    inside = {scope: ns for scope, ns in times_ns.items() if scope and ns}
    if not inside:
        return None
    scope = min(inside, key=lambda one: (-inside[one], one))
    return Home(source, scope, ratio(inside[scope], times_ns.total()), len(inside))
