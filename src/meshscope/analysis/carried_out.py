"""Collectives whose spans are called after another: gloo carries out a reduce-scatter by an all-reduce."""

from __future__ import annotations

import numpy as np

from meshscope import kinds
from meshscope.analysis.calls import is_gloo
from meshscope.analysis.parts import per_window
from meshscope.run import Run
from meshscope.spans import Kind, Window

Carried = frozenset[tuple[str, str]]


@per_window
def measure(window: Window) -> Carried:
    """(name of the spans, collective that they carry out), each once; nothing but on gloo."""
    if not is_gloo(window):
        return frozenset()
    spans = window.spans
    rows = np.flatnonzero((spans.kind == Kind.COLLECTIVE) & (spans.collective >= 0) & (spans.name >= 0))
    pairs = np.unique(np.stack((spans.name[rows], spans.collective[rows])), axis=1).T.tolist()
    return frozenset((spans.names[name], spans.collectives[collective]) for name, collective in pairs)


def carried_out(run: Run) -> dict[str, str]:
    """What is to be said of a name of spans that carry out another collective than it says; by that name."""
    seen: Carried = frozenset[tuple[str, str]]().union(*map(measure, run.windows))
    found: dict[str, str] = {}
    for name in sorted({name for name, _ in seen}):
        carried = sorted(collective for other, collective in seen if other == name)
        if any(collective != kinds.collective(name) for collective in carried):
            found[name] = f"{name} carries out {' and '.join(carried)} here: that is how gloo does it"
    return found
