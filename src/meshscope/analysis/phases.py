"""Forward, backward, optimizer: device time by the phase of the step in which the host asked for it.

The autograd engine and the optimizers mark what they do. Work that was asked for outside of both, and before a backward
pass of the same step, is called forward: it holds the loss and the copy of the batch as well. XLA's operations say by
themselves where their code stands (:mod:`meshscope.analysis.xla_paths`): there only what is differentiated is forward.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from meshscope.analysis.host_activity import host_named
from meshscope.analysis.in_steps import rank_steps, steps_of
from meshscope.analysis.parts import per_window
from meshscope.analysis.phase_names import BACKWARD, FORWARD, IN_ENGINE, OPTIMIZER, OTHER, PHASES, UNKNOWN
from meshscope.analysis.places import around, places
from meshscope.analysis.xla_paths import NO_PATHS, place
from meshscope.intervals import Intervals, union
from meshscope.run import Run
from meshscope.spans import Kind, SpanTable, Window
from meshscope.units import ratio

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

IN_BACKWARD = re.compile(
    r"^autograd::engine::evaluate_function:|^torch(\.|::)distributed(\.ddp\.|::)reducer::"
    r"|^FSDP::(pre_backward|post_backward|root_post_backward|backward_prefetch)"
)
IN_OPTIMIZER = re.compile(r"^Optimizer\.(step|zero_grad)#")
_STEPS = re.compile(r"^Optimizer\.step#")
_NOT_DIFFERENTIATED = "no operation is of what JAX differentiates (jvp, transpose), and none of an optimizer's scope"


@dataclass(frozen=True)
class Phase:
    """One phase over ranks and windows: unions of device time, so that hidden communication counts once in ``busy_ns``.

    ``frac`` is the share of all phases' ``busy_ns``, added up: phases overlap where the device still does one's work
    while the next is running on another stream. ``per_step_ns`` is what of ``busy_ns`` lies in complete steps, in the
    mean over the ranks that mark phases and their steps; None where no step is complete.
    """

    name: str
    works: int
    busy_ns: int
    compute_ns: int
    collective_ns: int
    copy_ns: int
    frac: float
    per_step_ns: float | None = None


@per_window
def phase_of(window: Window) -> Ints | None:
    """Per piece of work (as in :func:`places`) the number of its phase; None where the trace marks no phase."""
    spans = window.spans
    if window.device_kind == "none":
        return None
    if window.framework != "torch":
        return _of_paths(window)
    engine = host_named(spans, IN_ENGINE.search)
    stepping = host_named(spans, IN_OPTIMIZER.search)
    if not engine.any() and not stepping.any():
        return None
    here = places(window)
    backward = host_named(spans, IN_BACKWARD.search)
    number = np.full(len(here.row), PHASES.index(OTHER), dtype=np.int64)
    number[before_backward(window, here.time_ns)] = PHASES.index(FORWARD)
    number[around(spans, stepping, here) >= 0] = PHASES.index(OPTIMIZER)
    number[around(spans, backward, here) >= 0] = PHASES.index(BACKWARD)
    number[~here.is_known] = PHASES.index(UNKNOWN)
    return number


def _of_paths(window: Window) -> Ints | None:
    spans = window.spans
    told = [place(path).phase for path in spans.paths]
    if not {FORWARD, BACKWARD, OPTIMIZER} & set(told):
        return None
    number = np.array([*map(PHASES.index, told), PHASES.index(UNKNOWN)], dtype=np.int64)
    found: Ints = number[spans.path[places(window).row]]  # −1, no path, finds the last
    return found


def before_backward(window: Window, time_ns: Ints) -> Flags:
    """Whether a backward pass comes next: before the optimizer's step, and within the same profiled step, (n,)."""
    spans = window.spans
    backward_ns = np.sort(spans.start_ns[host_named(spans, IN_ENGINE.search)])
    optimizer_ns = np.sort(spans.start_ns[host_named(spans, _STEPS.search)])
    next_ns = _next(backward_ns, time_ns)
    until_ns = np.minimum(_next(optimizer_ns, time_ns), _next(np.sort(window.step_ns[:, 1]), time_ns))
    return next_ns < until_ns


_NEVER = np.iinfo(np.int64).max


def _next(sorted_ns: Ints, time_ns: Ints) -> Ints:
    """The first moment after each; the end of time where there is none."""
    at = np.searchsorted(sorted_ns, time_ns, side="right")
    return np.append(sorted_ns, _NEVER)[at]


@dataclass(frozen=True, eq=False)
class Part:
    """One phase of one window; ``inside`` is the time of its complete steps."""

    works: int
    compute: Intervals
    collective: Intervals
    copy: Intervals
    inside: Intervals

    @property
    def busy(self) -> Intervals:
        return self.compute | self.collective | self.copy


@per_window
def measure(window: Window) -> tuple[Part, ...] | None:
    """In the order of :data:`meshscope.analysis.phase_names.PHASES`."""
    number = phase_of(window)
    if number is None:
        return None
    row = places(window).row
    inside = steps_of(window)
    return tuple(_part(window.spans, row[number == phase], inside) for phase in range(len(PHASES)))


def _part(spans: SpanTable, row: Ints, inside: Intervals) -> Part:
    kind = spans.kind[row]
    compute, collective, copy = (
        union(spans.start_ns[row[kind == one]], spans.end_ns[row[kind == one]])
        for one in (Kind.COMPUTE, Kind.COLLECTIVE, Kind.COPY)
    )
    return Part(len(row), compute, collective, copy, inside)


def phases(run: Run) -> tuple[Phase, ...]:
    """In the order of a step; empty where no trace marks phases."""
    parts = [part for window in run.windows if (part := measure(window)) is not None]
    if not parts:
        return ()
    all_ns = sum(part.busy.total_ns for window in parts for part in window)
    steps = rank_steps(window for window in run.windows if measure(window) is not None)
    found = [_phase(name, [window[at] for window in parts], all_ns, steps) for at, name in enumerate(PHASES)]
    return tuple(phase for phase in found if phase.works)


def _phase(name: str, parts: Iterable[Part], all_ns: int, steps: int) -> Phase:
    parts = list(parts)
    busy_ns = sum(part.busy.total_ns for part in parts)
    return Phase(
        name=name,
        works=sum(part.works for part in parts),
        busy_ns=busy_ns,
        compute_ns=sum(part.compute.total_ns for part in parts),
        collective_ns=sum(part.collective.total_ns for part in parts),
        copy_ns=sum(part.copy.total_ns for part in parts),
        frac=ratio(busy_ns, all_ns),
        per_step_ns=sum((part.busy & part.inside).total_ns for part in parts) / steps if steps else None,
    )


def doubts(run: Run) -> tuple[tuple[str, str], ...]:
    """Why phases are missing, or cover a part only."""
    said: dict[str, None] = {}
    for window in run.windows:
        if window.device_kind == "none":
            continue
        if measure(window) is not None and window.framework != "torch":
            continue
        if window.framework != "torch":
            has_paths = bool((window.spans.path >= 0).any())
            said[_NOT_DIFFERENTIATED if has_paths else NO_PATHS] = None
        elif measure(window) is None:
            said["the trace marks neither autograd nor an optimizer's step"] = None
        elif not host_named(window.spans, IN_ENGINE.search).any():
            said["the trace does not mark autograd, so forward and backward are not told apart"] = None
    return tuple(("phases", why) for why in said)
