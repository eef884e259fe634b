"""FSDP checked, module by module: are all-gathers under the compute of others, and is a module gathered twice?

FSDP2 annotates each all-gather with the module it is for. FSDP1 does not, so nothing is said of its modules.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from meshscope.analysis.host_activity import host_named
from meshscope.analysis.parts import per_run, per_window, per_windows
from meshscope.analysis.phase_names import BACKWARD, PHASES
from meshscope.analysis.phases import phase_of
from meshscope.analysis.places import around, places
from meshscope.intervals import Intervals, difference, union
from meshscope.run import Run
from meshscope.spans import Kind, Window
from meshscope.units import ratio

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_GATHER = re.compile(r"^FSDP::all_gather(?: \((.*)\))?$")
_REDUCE = re.compile(r"^FSDP::post_backward_reduce(?: \((.*)\))?$")
_AHEAD = re.compile(r"^FSDP::(backward_prefetch for|forward_prefetch for) ")
_FSDP1 = re.compile(r"^FullyShardedDataParallel\.")
_ANY = re.compile(r"^FSDP::")

ROOT = ""
"""The name of the outermost module."""

HIDDEN_FRAC = 0.5
"""A collective counts as hidden when it has at least this share of its time under compute."""


@dataclass(frozen=True, eq=False)
class Moved:
    """k collectives of one module in one window: all-gathers in the forward or backward pass, or reduce-scatters.

    ``hidden_ns`` is under any compute. ``is_ahead`` tells which were asked for by a prefetch. Shape (k,), as are the
    ``start_ns`` and ``end_ns`` of each, on ``row`` of the window's spans.
    """

    module: str
    what: str
    rank: int
    size_bytes: Ints
    busy_ns: Ints
    hidden_ns: Ints
    is_ahead: Flags
    start_ns: Ints
    end_ns: Ints
    row: Ints


@dataclass(frozen=True)
class Module:
    """One module's collectives of a kind (``forward`` or ``backward`` all-gather, ``reduce_scatter``), over all ranks.

    ``hidden`` of ``count`` have at least half of their time under compute, ``ahead`` were asked for by a prefetch.
    ``per_step`` is how many there are in a complete step of a rank, NaN where no step is complete.
    """

    module: str
    what: str
    count: int
    per_step: float
    size_bytes: int | None
    busy_ns: int
    hidden_ns: int
    exposed_ns: int
    hidden: int
    ahead: int


@dataclass(frozen=True)
class Fsdp:
    """``hidden_frac`` is the share of all-gathers' time that is under compute; ``exposed_frac`` the share of the
    windows' length (``covered_ns``) in which all-gathers and reduce-scatters run and nothing is computed.

    ``root_again`` counts all-gathers of the root module in backward passes: it was freed after its forward pass though
    it is needed again at once, for ``root_again_ns`` of exposed time.
    """

    ranks: tuple[int, ...]
    modules: tuple[Module, ...]
    gathers: int
    hidden: int
    hidden_frac: float
    exposed_ns: int
    covered_ns: int
    exposed_frac: float
    root_again: int
    root_again_ns: int


@per_window
def moved(window: Window) -> tuple[Moved, ...]:
    """Empty where FSDP2 does not annotate the window."""
    spans = window.spans
    gathering, reducing = host_named(spans, _GATHER.match), host_named(spans, _REDUCE.match)
    if window.framework != "torch" or not gathering.any():
        return ()
    here = places(window)
    is_comm = spans.kind[here.row] == Kind.COLLECTIVE
    ahead = around(spans, host_named(spans, _AHEAD.match), here) >= 0
    phase = phase_of(window)
    is_backward = np.zeros(len(here.row), dtype=bool) if phase is None else phase == PHASES.index(BACKWARD)
    compute = spans.busy(Kind.COMPUTE)
    found = []
    for marks, pattern, names in (
        (gathering, _GATHER, ("forward", "backward")),
        (reducing, _REDUCE, ("reduce_scatter",)),
    ):
        scope = np.where(is_comm, around(spans, marks, here), -1)
        half = is_backward.astype(np.int64) if len(names) > 1 else np.zeros(len(scope), dtype=np.int64)
        for code in np.unique(spans.name[scope[scope >= 0]]).tolist():
            said = pattern.match(spans.names[code])
            for number, what in enumerate(names):
                mine = np.flatnonzero((scope >= 0) & (spans.name[scope] == code) & (half == number))
                if len(mine):
                    module = (said[1] or ROOT) if said else ROOT
                    found.append(_moved(window, module, what, here.row[mine], compute, ahead[mine]))
    return tuple(found)


def _moved(window: Window, module: str, what: str, row: Ints, compute: Intervals, is_ahead: Flags) -> Moved:
    spans = window.spans
    start_ns, end_ns = spans.start_ns[row], spans.end_ns[row]
    alone = [difference(union(start_ns[at : at + 1], end_ns[at : at + 1]), compute).total_ns for at in range(len(row))]
    busy_ns = end_ns - start_ns
    hidden_ns = busy_ns - np.array(alone, dtype=np.int64)
    return Moved(module, what, window.rank, spans.size_bytes[row], busy_ns, hidden_ns, is_ahead, start_ns, end_ns, row)


@per_run
def fsdp(run: Run) -> Fsdp | None:
    """None where no trace says of which module an all-gather is."""
    windows = [window for window in run.windows if moved(window)]
    if not windows:
        return None
    steps = sum(len(window.steps) for window in windows)
    groups: dict[tuple[str, str], list[Moved]] = {}
    for window in windows:
        for one in moved(window):
            groups.setdefault((one.module, one.what), []).append(one)
    modules = tuple(_module(some, steps) for some in groups.values())
    gathers = [one for one in modules if one.what != "reduce_scatter"]
    again = [one for one in modules if one.module == ROOT and one.what == "backward"]
    covered_ns = sum(window.end_ns - window.start_ns for window in windows)
    exposed_ns = sum(exposed(window).total_ns for window in windows)
    return Fsdp(
        ranks=tuple(sorted({window.rank for window in windows})),
        modules=tuple(sorted(modules, key=lambda one: (-one.exposed_ns, one.module, one.what))),
        gathers=sum(one.count for one in gathers),
        hidden=sum(one.hidden for one in gathers),
        hidden_frac=ratio(sum(one.hidden_ns for one in gathers), sum(one.busy_ns for one in gathers)),
        exposed_ns=exposed_ns,
        covered_ns=covered_ns,
        exposed_frac=ratio(exposed_ns, covered_ns),
        root_again=sum(one.count for one in again),
        root_again_ns=sum(one.exposed_ns for one in again),
    )


def _module(some: Sequence[Moved], steps: int) -> Module:
    sizes, busy_ns, hidden_ns, is_ahead = (
        np.concatenate([getattr(one, name) for one in some])
        for name in ("size_bytes", "busy_ns", "hidden_ns", "is_ahead")
    )
    known = np.unique(sizes)
    return Module(
        module=some[0].module,
        what=some[0].what,
        count=len(sizes),
        per_step=ratio(len(sizes), steps),
        size_bytes=int(known[0]) if len(known) == 1 and known[0] >= 0 else None,
        busy_ns=int(busy_ns.sum()),
        hidden_ns=int(hidden_ns.sum()),
        exposed_ns=int((busy_ns - hidden_ns).sum()),
        hidden=int((hidden_ns >= HIDDEN_FRAC * busy_ns).sum()),
        ahead=int(is_ahead.sum()),
    )


def exposed(window: Window) -> Intervals:
    """FSDP's own collectives only: others, as that of the gradient norm, are none that it could hide."""
    found = moved(window)
    own = union(np.concatenate([one.start_ns for one in found]), np.concatenate([one.end_ns for one in found]))
    return difference(own, window.spans.busy(Kind.COMPUTE))


@per_windows
def is_fsdp1(run: Run) -> bool:
    """Whether a trace shows a model that FullyShardedDataParallel wraps, the older way."""
    return any(bool(host_named(window.spans, _FSDP1.match).any()) for window in run.windows)


@per_windows
def doubts(run: Run) -> tuple[tuple[str, str], ...]:
    """Why modules are not known although FSDP is there."""
    for window in run.windows:
        if moved(window):
            continue
        if host_named(window.spans, _FSDP1.match).any():
            return (("fsdp", "FSDP1 does not say which module an all-gather is for"),)
        if host_named(window.spans, _ANY.match).any():
            return (("fsdp", "the trace does not show which all-gather FSDP asked for"),)
    return ()
