"""Device time by module and by annotation: what a kernel was launched for, where the trace records that.

Modules are there in a trace with stacks (``nn.Module`` frames), annotations wherever code uses ``record_function``.
A backward kernel is launched outside of any module: what no scope is known of is told as well.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from meshscope import kinds
from meshscope.analysis.host_activity import cites, named
from meshscope.analysis.nesting import nest
from meshscope.analysis.parts import per_window
from meshscope.analysis.places import around, beside, places
from meshscope.run import Run
from meshscope.spans import SpanTable, Window
from meshscope.units import ratio

Ints = npt.NDArray[np.int64]

_MODULE = "nn.Module: "
# The profiler's steps are everywhere, and a collective's annotation says no more than its kernel.
_NO_SCOPE = re.compile(r"^(ProfilerStep#|nccl:|gloo:|enumerate\(DataLoader\))")

SOURCES = ("module", "annotation")


@dataclass(frozen=True)
class Scope:
    """The device work launched in a scope and in none within it: ``frac`` is its share of ``Scopes.of_ns``."""

    name: str
    works: int
    total_ns: int
    frac: float


@dataclass(frozen=True)
class Scopes:
    """One source over all ranks: the scopes by time, longest first.

    ``of_ns`` is the time of all device work, added up over spans and ranks; ``outside_ns`` of it was launched in no
    scope and ``unknown_ns`` shows no launch.
    """

    source: str
    scopes: tuple[Scope, ...]
    of_ns: int
    outside_ns: int
    unknown_ns: int


@dataclass(frozen=True)
class Part:
    """One window and source; by name the pieces of work and their time."""

    works: Counter[str] = field(default_factory=Counter)
    time_ns: Counter[str] = field(default_factory=Counter)
    of_ns: int = 0
    outside_ns: int = 0
    unknown_ns: int = 0


@per_window
def measure(window: Window) -> dict[str, Part]:
    """By source; a source that the window has nothing of is absent."""
    spans = window.spans
    if window.framework != "torch" or window.device_kind == "none":
        return {}
    module = cites(spans, kinds.FRAME) & named(spans, lambda name: name.startswith(_MODULE))
    annotation = cites(spans, kinds.ANNOTATION) & ~named(spans, _NO_SCOPE.search)
    here = places(window)
    weight_ns = _weights(window, here.row)
    found = {}
    # Backward runs on a thread of its own while the annotating one waits for it.
    for source, marks, search in (("module", module, around), ("annotation", annotation, beside)):
        if marks.any():
            found[source] = _part(spans, search(spans, marks, here), here.is_known, weight_ns)
    return found


def _weights(window: Window, row: Ints) -> Ints:
    """Device time of each piece; of nested operators what each does itself, so that they add up."""
    spans = window.spans
    if window.device_kind != "cpu":
        return spans.end_ns[row] - spans.start_ns[row]
    return nest(spans.lane[row], spans.start_ns[row], spans.end_ns[row]).own_ns()


def _part(spans: SpanTable, scope: Ints, is_known: npt.NDArray[np.bool_], weight_ns: Ints) -> Part:
    part = Part(
        of_ns=int(weight_ns.sum()),
        outside_ns=int(weight_ns[is_known & (scope < 0)].sum()),
        unknown_ns=int(weight_ns[~is_known].sum()),
    )
    is_in = scope >= 0
    names = spans.name[scope[is_in]]
    for code in np.unique(names).tolist():
        mine = names == code
        part.works[spans.names[code]] += int(mine.sum())
        part.time_ns[spans.names[code]] += int(weight_ns[is_in][mine].sum())
    return part


def scopes(run: Run) -> tuple[Scopes, ...]:
    """One for each source that some trace has."""
    parts: dict[str, list[Part]] = {}
    for window in run.windows:
        for source, part in measure(window).items():
            parts.setdefault(source, []).append(part)
    return tuple(_scopes(source, parts[source]) for source in SOURCES if source in parts)


def doubts(run: Run) -> tuple[tuple[str, str], ...]:
    """Why there are no scopes."""
    if any(window.framework != "torch" and window.device_kind != "none" for window in run.windows):
        return (("scopes", "XLA's named scopes are in the metadata of its operations, which is not read"),)
    return ()


def _scopes(source: str, parts: Iterable[Part]) -> Scopes:
    parts = list(parts)
    works: Counter[str] = Counter()
    time_ns: Counter[str] = Counter()
    for part in parts:
        works.update(part.works)
        time_ns.update(part.time_ns)
    of_ns = sum(part.of_ns for part in parts)
    rows = [Scope(name.removeprefix(_MODULE), works[name], ns, ratio(ns, of_ns)) for name, ns in time_ns.items()]
    return Scopes(
        source=source,
        scopes=tuple(sorted(rows, key=lambda one: (-one.total_ns, one.name))),
        of_ns=of_ns,
        outside_ns=sum(part.outside_ns for part in parts),
        unknown_ns=sum(part.unknown_ns for part in parts),
    )
