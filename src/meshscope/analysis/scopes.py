"""Device time by module and by annotation: what a kernel was launched for, where the trace records that.

Modules are there in a trace with stacks (``nn.Module`` frames), annotations wherever code uses ``record_function``.
A backward kernel is launched outside of any module; it is counted in the one in which its forward operator ran, where
autograd's numbers tell that operator. What no scope is known of is told as well. XLA's operations carry
the named scopes of their code (Flax modules are some) through differentiation, so that backward time is in its scope.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from meshscope import kinds
from meshscope.analysis.host_activity import cites, host_named, named
from meshscope.analysis.nesting import nest
from meshscope.analysis.parts import per_window
from meshscope.analysis.phase_names import BACKWARD, IN_ENGINE
from meshscope.analysis.places import Places, around, beside, places
from meshscope.analysis.xla_paths import NO_PATHS, place
from meshscope.run import Run
from meshscope.spans import SpanTable, Window
from meshscope.units import ratio

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_MODULE = "nn.Module: "
# The profiler's steps are everywhere, and a collective's annotation says no more than its kernel.
_NO_SCOPE = re.compile(r"^(ProfilerStep#|nccl:|gloo:|enumerate\(DataLoader\))")

_NO_SCOPES = "no operation stands in a named scope"
_NAMED_SCOPE = "named scope"
SOURCES = ("module", "annotation", _NAMED_SCOPE)


@dataclass(frozen=True)
class Scope:
    """The device work launched in a scope and in none within it: ``frac`` is its share of ``Scopes.of_ns``.

    ``backward_ns`` of ``total_ns`` are of the backward pass; None where no backward work is linked to a scope.
    """

    name: str
    works: int
    total_ns: int
    frac: float
    backward_ns: int | None = None


@dataclass(frozen=True)
class Scopes:
    """One source over all ranks: the scopes by time, longest first.

    ``of_ns`` is the time of all device work, added up over spans and ranks; ``outside_ns`` of it was launched in no
    scope and ``unknown_ns`` shows no launch, or no path in a program.
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
    backward_ns: Counter[str] = field(default_factory=Counter)
    of_ns: int = 0
    outside_ns: int = 0
    unknown_ns: int = 0


@per_window
def measure(window: Window) -> dict[str, Part]:
    """By source; a source that the window has nothing of is absent."""
    spans = window.spans
    if window.device_kind == "none":
        return {}
    if window.framework != "torch":
        return _of_paths(window)
    module = cites(spans, kinds.FRAME) & named(spans, lambda name: name.startswith(_MODULE))
    annotation = cites(spans, kinds.ANNOTATION) & ~named(spans, _NO_SCOPE.search)
    here = places(window)
    weight_ns = _weights(window, here.row)
    found = {}
    # Backward runs on a thread of its own while the annotating one waits for it.
    for source, marks, search in (("module", module, around), ("annotation", annotation, beside)):
        if marks.any():
            scope = search(spans, marks, here)
            backward = _of_forward(spans, marks, here, scope) if source == "module" else None
            found[source] = _part(spans, scope, here.is_known, weight_ns, backward)
    return found


def _of_forward(spans: SpanTable, marks: Flags, here: Places, scope: Ints) -> Flags:
    """Sets the scope of backward work to that of its forward operator; which pieces those are, shape (k,)."""
    engine = host_named(spans, IN_ENGINE.search) & (spans.link >= 0)
    evaluation = around(spans, engine, here)
    backward = np.flatnonzero((scope < 0) & (evaluation >= 0))
    forward = spans.link[evaluation[backward]]
    lane, time_ns = spans.lane[forward].astype(np.int64), spans.start_ns[forward]
    scope[backward] = around(spans, marks, Places(here.row[backward], lane, time_ns))
    found = np.zeros(len(scope), dtype=bool)
    found[backward[scope[backward] >= 0]] = True
    return found


def _of_paths(window: Window) -> dict[str, Part]:
    spans = window.spans
    row = places(window).row
    path = spans.path[row]
    is_scope = np.array([bool(place(one).scope) for one in spans.paths] + [False], dtype=bool)
    if not is_scope[path].any():
        return {}
    weight_ns = _weights(window, row)
    part = Part(of_ns=int(weight_ns.sum()), unknown_ns=int(weight_ns[path < 0].sum()))
    outside_ns = 0
    for code in np.unique(path[path >= 0]).tolist():
        here, mine = place(spans.paths[code]), path == code
        total_ns = int(weight_ns[mine].sum())
        if not here.scope:
            outside_ns += total_ns
            continue
        part.works[here.scope] += int(mine.sum())
        part.time_ns[here.scope] += total_ns
        part.backward_ns[here.scope] += total_ns * (here.phase == BACKWARD)
    return {_NAMED_SCOPE: replace(part, outside_ns=outside_ns)}


def _weights(window: Window, row: Ints) -> Ints:
    """Device time of each piece; of nested operators what each does itself, so that they add up."""
    spans = window.spans
    if window.device_kind != "cpu":
        return spans.end_ns[row] - spans.start_ns[row]
    return nest(spans.lane[row], spans.start_ns[row], spans.end_ns[row]).own_ns()


def _part(spans: SpanTable, scope: Ints, is_known: Flags, weight_ns: Ints, backward: Flags | None) -> Part:
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
        if backward is not None and backward[is_in][mine].any():
            part.backward_ns[spans.names[code]] += int(weight_ns[is_in][mine & backward[is_in]].sum())
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
    jax = [window for window in run.windows if window.framework != "torch" and window.device_kind != "none"]
    if jax and not any(measure(window) for window in jax):
        has_paths = any((window.spans.path >= 0).any() for window in jax)
        return (("scopes", _NO_SCOPES if has_paths else NO_PATHS),)
    return ()


def _scopes(source: str, parts: Iterable[Part]) -> Scopes:
    parts = list(parts)
    works: Counter[str] = Counter()
    time_ns: Counter[str] = Counter()
    backward_ns: Counter[str] = Counter()
    for part in parts:
        works.update(part.works)
        time_ns.update(part.time_ns)
        backward_ns.update(part.backward_ns)
    has_backward = bool(backward_ns)
    of_ns = sum(part.of_ns for part in parts)
    rows = [
        Scope(
            name=name.removeprefix(_MODULE),
            works=works[name],
            total_ns=ns,
            frac=ratio(ns, of_ns),
            backward_ns=backward_ns[name] if has_backward else None,
        )
        for name, ns in time_ns.items()
    ]
    return Scopes(
        source=source,
        scopes=tuple(sorted(rows, key=lambda one: (-one.total_ns, one.name))),
        of_ns=of_ns,
        outside_ns=sum(part.outside_ns for part in parts),
        unknown_ns=sum(part.unknown_ns for part in parts),
    )
