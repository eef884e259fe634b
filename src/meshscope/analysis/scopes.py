"""Device time by module and by annotation: what a kernel was launched for, where the trace records that.

Modules are there in a trace with stacks (``nn.Module`` frames), annotations wherever code uses ``record_function``.
A backward kernel is launched outside of any module; it is counted in the one in which its forward operator ran, where
autograd's numbers tell that operator. What no scope is known of is told as well. XLA's operations carry
the named scopes of their code (Flax modules are some) through differentiation, so that backward time is in its scope.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from meshscope import kinds
from meshscope.analysis.host_activity import cites, host_named, named
from meshscope.analysis.in_steps import begun_in_steps
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
    ``per_step_ns`` is of what begins in a complete step, in the mean over these and the ranks that have scopes; None
    where no step is complete.
    """

    name: str
    works: int
    total_ns: int
    frac: float
    backward_ns: int | None = None
    per_step_ns: float | None = None


@dataclass(frozen=True)
class Scopes:
    """One source over all ranks: the scopes by time, longest first.

    ``of_ns`` is the time of all device work, added up over spans and ranks; ``outside_ns`` of it was launched in no
    scope and ``unknown_ns`` shows no launch, or no path in a program. ``per_step_ns`` is all device work in a mean
    complete step, as that of its scopes.
    """

    source: str
    scopes: tuple[Scope, ...]
    of_ns: int
    outside_ns: int
    unknown_ns: int
    per_step_ns: float | None = None


@dataclass(frozen=True, eq=False)
class Scoped:
    """Where the k pieces of work of a window (as in :func:`places`) belong: ``code`` (k,) indexes ``names``, or is −1.

    ``is_known`` (k,) says whether a launch or a path tells; ``is_backward`` (k,) which are of the backward pass, None
    where no backward work is linked to a scope.
    """

    names: tuple[str, ...]
    code: Ints
    is_known: Flags
    is_backward: Flags | None


@dataclass(frozen=True)
class Part:
    """One window and source; by name the pieces of work, their time, and that of pieces that begin in a step."""

    works: Counter[str] = field(default_factory=Counter)
    time_ns: Counter[str] = field(default_factory=Counter)
    stepped_ns: Counter[str] = field(default_factory=Counter)
    backward_ns: Counter[str] = field(default_factory=Counter)
    has_backward: bool = False
    steps: int = 0
    of_ns: int = 0
    of_stepped_ns: int = 0
    outside_ns: int = 0
    unknown_ns: int = 0


@per_window
def scope_of(window: Window) -> dict[str, Scoped]:
    """By source; a source that the window has nothing of is absent."""
    spans = window.spans
    if window.device_kind == "none":
        return {}
    if window.framework != "torch":
        return _of_paths(window)
    module = cites(spans, kinds.FRAME) & named(spans, lambda name: name.startswith(_MODULE))
    annotation = cites(spans, kinds.ANNOTATION) & ~named(spans, _NO_SCOPE.search)
    here = places(window)
    found = {}
    # Backward runs on a thread of its own while the annotating one waits for it.
    for source, marks, search in (("module", module, around), ("annotation", annotation, beside)):
        if marks.any():
            scope = search(spans, marks, here)
            backward = _of_forward(spans, marks, here, scope) if source == "module" else None
            names = tuple(name.removeprefix(_MODULE) for name in spans.names)
            code = np.where(scope >= 0, spans.name[scope], -1).astype(np.int64)
            found[source] = Scoped(names, code, here.is_known, backward)
    return found


def _of_forward(spans: SpanTable, marks: Flags, here: Places, scope: Ints) -> Flags | None:
    """Sets the scope of backward work to that of its forward operator; which pieces those are, shape (k,)."""
    engine = host_named(spans, IN_ENGINE.search) & (spans.link >= 0)
    evaluation = around(spans, engine, here)
    backward = np.flatnonzero((scope < 0) & (evaluation >= 0))
    forward = spans.link[evaluation[backward]]
    lane, time_ns = spans.lane[forward].astype(np.int64), spans.start_ns[forward]
    scope[backward] = around(spans, marks, Places(here.row[backward], lane, time_ns))
    found = np.zeros(len(scope), dtype=bool)
    found[backward[scope[backward] >= 0]] = True
    return found if found.any() else None


def _of_paths(window: Window) -> dict[str, Scoped]:
    spans = window.spans
    path = spans.path[places(window).row]
    told = [place(one) for one in spans.paths]
    names = tuple(dict.fromkeys(one.scope for one in told if one.scope))
    number = {name: at for at, name in enumerate(names)}
    numbers = [*(number.get(one.scope, -1) for one in told), -1]  # −1, no path, finds the last
    of_path = np.array(numbers, dtype=np.int64)
    code = of_path[path]
    if not (code >= 0).any():
        return {}
    is_backward = np.array([*(one.phase == BACKWARD for one in told), False], dtype=bool)[path]
    return {_NAMED_SCOPE: Scoped(names, code, path >= 0, is_backward)}


@per_window
def measure(window: Window) -> dict[str, Part]:
    """By source; a source that the window has nothing of is absent."""
    return {source: _part(window, found) for source, found in scope_of(window).items()}


def weights(window: Window, row: Ints) -> Ints:
    """Device time of each piece; of nested operators what each does itself, so that they add up."""
    spans = window.spans
    if window.device_kind != "cpu":
        return spans.end_ns[row] - spans.start_ns[row]
    return nest(spans.lane[row], spans.start_ns[row], spans.end_ns[row]).own_ns()


def _part(window: Window, found: Scoped) -> Part:
    row = places(window).row
    weight_ns = weights(window, row)
    is_in = found.code >= 0
    is_stepped = begun_in_steps(window, window.spans.start_ns[row])
    backward = found.is_backward
    return Part(
        works=_summed(found, is_in, np.ones(len(row), dtype=np.int64)),
        time_ns=_summed(found, is_in, weight_ns),
        stepped_ns=_summed(found, is_in & is_stepped, weight_ns),
        backward_ns=_summed(found, is_in & backward, weight_ns) if backward is not None else Counter(),
        has_backward=backward is not None,
        steps=len(window.steps),
        of_ns=int(weight_ns.sum()),
        of_stepped_ns=int(weight_ns[is_stepped].sum()),
        outside_ns=int(weight_ns[found.is_known & ~is_in].sum()),
        unknown_ns=int(weight_ns[~found.is_known].sum()),
    )


def _summed(found: Scoped, rows: Flags, values: Ints) -> Counter[str]:
    """The values of some pieces of work, added up by the name of their scope."""
    total = np.zeros(len(found.names), dtype=np.int64)
    np.add.at(total, found.code[rows], values[rows])
    by_name: Counter[str] = Counter()
    for code in np.unique(found.code[rows]).tolist():
        by_name[found.names[code]] += int(total[code])
    return by_name


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


def _added(counters: Iterable[Counter[str]]) -> Counter[str]:
    """Names that count nothing stay."""
    total: Counter[str] = Counter()
    for one in counters:
        total.update(one)
    return total


def _scopes(source: str, parts: Sequence[Part]) -> Scopes:
    steps = sum(part.steps for part in parts)
    works, time_ns, stepped_ns, backward_ns = (
        _added(getattr(part, name) for part in parts) for name in ("works", "time_ns", "stepped_ns", "backward_ns")
    )
    has_backward = any(part.has_backward for part in parts)
    of_ns = sum(part.of_ns for part in parts)
    rows = [
        Scope(
            name=name,
            works=works[name],
            total_ns=ns,
            frac=ratio(ns, of_ns),
            backward_ns=backward_ns[name] if has_backward else None,
            per_step_ns=stepped_ns[name] / steps if steps else None,
        )
        for name, ns in time_ns.items()
    ]
    return Scopes(
        source=source,
        scopes=tuple(sorted(rows, key=lambda one: (-one.total_ns, one.name))),
        of_ns=of_ns,
        outside_ns=sum(part.outside_ns for part in parts),
        unknown_ns=sum(part.unknown_ns for part in parts),
        per_step_ns=sum(part.of_stepped_ns for part in parts) / steps if steps else None,
    )
