"""What a comparison needs of one run: small enough to keep in a file, and all that is compared."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from meshscope.analysis.breakdown import measure
from meshscope.analysis.device_steps import device_step_ns
from meshscope.analysis.load import load
from meshscope.analysis.memory import memory
from meshscope.analysis.parts import per_run
from meshscope.analysis.standing import device_kind
from meshscope.analysis.steps import measured_steps
from meshscope.analysis.works import Works, works
from meshscope.intervals import Intervals, union
from meshscope.run import Run
from meshscope.spans import Kind, Window

PARTS = ("span", "compute", "collective", "exposed", "idle")
MOST_WORKS = 500


@dataclass(frozen=True)
class Figures:
    """One run. Tuples of steps are in order; ``-1`` and NaN mean not recorded.

    ``step_ns``, ``data_wait_ns``, ``others_cores`` and ``idle_cores`` have one entry per measured step (unprofiled,
    warm, not compiling; see ``analysis.steps``). ``parts_ns`` maps span, compute, collective, exposed and idle to
    one mean over ranks per profiled step. ``kinds`` names what each work is; ``works_left_ns`` is the time per step
    of the largest work that was left out. ``world`` is how many ranks the traces say the job has (0: untold), and
    ``seen_ranks`` are those that are here where they are not all. ``options`` and ``versions`` are text, to tell what
    was changed. ``faults`` were put in on purpose. ``simulated_by`` names what predicted a run that never ran, and
    ``predicted_ns`` bounds 90 % of the steps that it expects (0: not told).
    """

    strategy: str
    title: str
    framework: str
    device_kind: str
    ranks: int
    model: str
    global_batch: int
    sequence_length: int
    outcome: str
    host: str
    devices: tuple[str, ...]
    cores: int
    options: dict[str, str]
    versions: dict[str, str]
    step_ns: tuple[int, ...]
    samples_per_step: float
    data_wait_ns: tuple[int, ...]
    others_cores: tuple[float, ...]
    idle_cores: tuple[float, ...]
    finished_steps: int
    parts_ns: dict[str, tuple[float, ...]]
    works: Works
    works_left_ns: float
    peak_bytes: int
    peak_how: str
    world: int = 0
    seen_ranks: tuple[int, ...] = ()
    faults: tuple[str, ...] = ()
    simulated_by: str = ""
    predicted_ns: tuple[int, int] = (0, 0)


def figures(run: Run) -> Figures:
    """Of a recording, or of native traces (which have no measured step)."""
    kept, left_ns = _largest(works(run))
    return replace(paced(run), parts_ns=_parts(run), works=kept, works_left_ns=left_ns)


@per_run
def paced(run: Run) -> Figures:
    """Without what was profiled: all that a verdict on the step time rests on."""
    here, found = run.experiment, measured_steps(run)
    shared = load(run, found.start_ns, found.end_ns)
    peaks = [(rank.peak_bytes, rank.peak_how) for rank in memory(run) if rank.peak_bytes is not None]
    peak_bytes, peak_how = max(peaks, default=(-1, ""))
    return Figures(
        strategy=here.strategy,
        title=here.strategy or here.title,
        framework=here.framework,
        device_kind=device_kind(run),
        ranks=here.ranks,
        model=here.model,
        global_batch=here.global_batch,
        sequence_length=here.sequence_length,
        outcome=run.ended.outcome if run.ended else "lost" if run.is_lost else "",
        host=here.host,
        devices=_devices(run),
        cores=here.host_cores or here.cores,
        options={name: str(value) for name, value in sorted(here.options.items())},
        versions=dict(sorted(here.versions.items())),
        step_ns=tuple(found.duration_ns.tolist()),
        samples_per_step=float(np.median(found.samples)) if len(found.samples) else math.nan,
        data_wait_ns=tuple(found.data_wait_ns.tolist()),
        others_cores=_rounded(shared.others),
        idle_cores=_rounded(shared.idle),
        finished_steps=len(np.unique(run.steps.step)),
        parts_ns={},
        works=Works((), 0, ()),
        works_left_ns=0.0,
        peak_bytes=peak_bytes,
        peak_how=peak_how,
        world=(world := max((window.world for window in run.windows), default=0)),
        seen_ranks=seen if len(seen := tuple(sorted({w.rank for w in run.windows}))) < world else (),
        faults=tuple(here.faults),
        simulated_by=here.simulated.by if here.simulated else "",
        predicted_ns=(here.simulated.step_low_ns, here.simulated.step_high_ns) if here.simulated else (0, 0),
    )


def _rounded(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> tuple[float, ...]:
    return tuple(round(value, 3) for value in values.tolist())


def _devices(run: Run) -> tuple[str, ...]:
    names = [started.device_name for started in run.ranks if started.device_name] or run.experiment.devices
    return tuple(sorted(set(names)))


def _largest(found: Works) -> tuple[Works, float]:
    """The works that take most time, and the time per step of the largest of the rest."""
    left_ns = max((_mean(work.total_ns) for work in found.works[MOST_WORKS:]), default=0.0)
    return Works(found.steps, found.ranks, found.works[:MOST_WORKS]), left_ns


def _mean(values: tuple[float, ...]) -> float:
    return sum(values) / len(values) if values else math.nan


def _parts(run: Run) -> dict[str, tuple[float, ...]]:
    """Each profiled step that all ranks have, as means over them."""
    steps: dict[int, list[dict[str, int]]] = {}
    windows = [window for window in run.windows if window.device_kind != "none" and measure(window).steps]
    for window in windows:
        for step, parts in _split(window).items():
            steps.setdefault(step, []).append(parts)
    most = max((len(found) for found in steps.values()), default=0)
    whole = [steps[step] for step in sorted(steps) if len(steps[step]) == most]
    return {name: tuple(_mean(tuple(rank[name] for rank in ranks)) for ranks in whole) for name in PARTS}


def _split(window: Window) -> dict[int, dict[str, int]]:
    spans = window.spans
    compute, comm, copy = (spans.busy(kind) for kind in (Kind.COMPUTE, Kind.COLLECTIVE, Kind.COPY))
    found = {}
    for step, bounds in zip(window.steps, device_step_ns(window), strict=True):
        inside: Intervals = union(bounds[:1], bounds[1:])
        busy = (compute | comm | copy) & inside
        found[step] = {
            "span": inside.total_ns,
            "compute": (compute & inside).total_ns,
            "collective": (comm & inside).total_ns,
            "exposed": ((comm - compute) & inside).total_ns,
            "idle": inside.total_ns - busy.total_ns,
        }
    return found
