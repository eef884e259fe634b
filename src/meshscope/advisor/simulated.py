"""A plan as a recording: the simulated step of candidates, written so that it opens like any trace.

It is a comparison as capture writes one: ``plan.json``, and a recording of each candidate with a trace for every rank
that is drawn. It says that it is simulated in the name of every strategy, in the head of every recording and of every
trace, in its log and in the instrument of every number, so that no screen, report or export can show it as measured.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from meshscope import __version__
from meshscope.advisor import constants as frozen
from meshscope.advisor.architecture import Architecture
from meshscope.advisor.candidate import Candidate
from meshscope.advisor.cluster import Cluster
from meshscope.advisor.coverage import NotCovered
from meshscope.advisor.forecast import Forecast, TimeForecast
from meshscope.advisor.simulated_entries import STEP, described, device_kind, entries, experiment, step_ns
from meshscope.advisor.simulated_ranks import Drawn, drawn
from meshscope.advisor.simulated_trace import SIMULATED, Sketch, trace
from meshscope.experiment import Experiment, Plan, PlannedRun, Simulation
from meshscope.recording.entries import Ended, Log
from meshscope.recording.journal import Journal
from meshscope.recording.layout import TRACES, create, create_plan, write_whole
from meshscope.units import NS_PER_S, ranges

_APART_NS = 1_000_000_000
"""Recordings of one plan begin so far apart, or a bit more than the longest of them takes."""


@dataclass(frozen=True)
class Simulated:
    """One candidate, and what is predicted of it on a cluster."""

    architecture: Architecture
    candidate: Candidate
    cluster: Cluster
    forecast: Forecast

    @property
    def time(self) -> TimeForecast:
        """Raises NotCovered where the step cannot be predicted, or where it has no shape on a CPU."""
        time = self.forecast.time
        if time is None or not time.spans:
            why = "; ".join(self.forecast.cannot_say) or "its step was not simulated"
            raise NotCovered(f"{self.candidate.strategy} has no simulated step: {why}")
        if device_kind(self.cluster) == "cpu":
            raise NotCovered("a simulated step is drawn as kernels of a GPU, which CPU ranks have none of")
        return time


@cache
def constants_version() -> str:
    """Of the frozen constants that predictions stand on: a digest of the file, equal as long as that is."""
    return hashlib.blake2b(Path(frozen.__file__).read_bytes(), digest_size=4).hexdigest()


def write(folder: Path, simulated: Sequence[Simulated], *, now_unix_ns: int, constants: str = "") -> Plan:
    """Write the comparison into a new folder and return its plan.

    ``now_unix_ns`` is when all of it is said to have ended: a recording needs a time to be shown at, and none that is
    still to come. ``constants`` is the version of the constants that the prediction stands on, those of this meshscope
    where none is given. Raises RecordingError where something stands there already, NotCovered where a candidate has no
    simulated step: then nothing is written.
    """
    names = _names([one.candidate for one in simulated])
    constants = constants or constants_version()
    each_ns = max((step_ns(one.time) for one in simulated), default=0) + _APART_NS
    t0_unix_ns = now_unix_ns - len(simulated) * each_ns
    plan = _plan(simulated, names, t0_unix_ns)
    create_plan(folder, plan)
    for number, (one, name) in enumerate(zip(simulated, names, strict=True)):
        _write_one(folder / _slug(name), one, name, t0_unix_ns=t0_unix_ns + number * each_ns, constants=constants)
    journal = Journal(folder, "supervisor", t0_unix_ns=t0_unix_ns)
    text = "Simulated: predicted by a model of cost. Nothing ran, and no number here was measured."
    journal.append(Log(t_ns=0, level="warning", text=text))
    journal.append(Ended(t_ns=len(simulated) * each_ns, outcome="done"))
    journal.close()
    return plan


def _write_one(folder: Path, one: Simulated, name: str, *, t0_unix_ns: int, constants: str) -> None:
    time, candidate = one.time, one.candidate
    classes = tuple(sorted({span.rank_class for span in time.spans}))
    ranks = drawn(candidate, classes)
    simulation = _simulation(one, ranks, constants)
    head = experiment(name, one.architecture, candidate, one.cluster, simulation, t0_unix_ns=t0_unix_ns)
    create(folder, head)
    files = {rank.rank: _write_trace(folder, one, rank, head) for rank in ranks}
    for writer, lines in entries(ranks, candidate, one.cluster, time, one.forecast.memory, files).items():
        journal = Journal(folder, writer, t0_unix_ns=t0_unix_ns)
        journal.append_all(lines)
        journal.close()


def _write_trace(folder: Path, one: Simulated, rank: Drawn, head: Experiment) -> tuple[str, int]:
    """The trace of a rank; its path in the recording and its size in bytes."""
    assert head.simulated is not None
    spans = tuple(span for span in one.time.spans if span.rank_class == rank.rank_class)
    sketch = Sketch(rank.rank, rank.rank % one.cluster.per_node, spans, STEP, step_ns(one.time))
    at_ns = head.t0_unix_ns + 1_000_000
    content = trace(sketch, one.candidate, head.simulated, t0_unix_ns=at_ns, device_name=one.cluster.device.name)
    path = f"{TRACES}/rank{rank.rank}-step{STEP}-{SIMULATED}.pt.trace.json.gz"
    write_whole(folder / path, content)
    return path, len(content)


def _simulation(one: Simulated, ranks: Sequence[Drawn], constants: str) -> Simulation:
    step = one.time.step_s
    return Simulation(
        by=f"meshscope {__version__}",
        constants=constants,
        cluster=cluster_words(one.cluster),
        step_low_ns=round(step.low * NS_PER_S),
        step_high_ns=round(step.high * NS_PER_S),
        stands_for={str(rank.rank): ranges(rank.stands_for) for rank in ranks if len(rank.stands_for) > 1},
    )


def cluster_words(cluster: Cluster) -> str:
    """``8 × H100 (NVLink)``; ``64 × H100, 8 per node (NVLink, InfiniBand)``."""
    many = f"{cluster.devices} × {cluster.device.name}"
    if cluster.nodes == 1:
        return f"{many} ({cluster.inside.name})"
    return f"{many}, {cluster.per_node} per node ({cluster.inside.name}, {cluster.between.name})"


def _plan(simulated: Sequence[Simulated], names: Sequence[str], t0_unix_ns: int) -> Plan:
    return Plan(
        t0_unix_ns=t0_unix_ns,
        runs=[_planned(one, name) for one, name in zip(simulated, names, strict=True)],
        ranks=max(one.candidate.devices for one in simulated),
        model=simulated[0].architecture.name,
        notes=[f"Simulated for {cluster_words(simulated[0].cluster)}: nothing ran, no number here was measured."],
        is_simulated=True,
    )


def _planned(one: Simulated, name: str) -> PlannedRun:
    return PlannedRun(
        strategy=name,
        workload=one.candidate.strategy,
        title=f"simulated, never run: {described(one.candidate)}",
        framework=one.candidate.framework,
        folder=_slug(name),
        device_kind=device_kind(one.cluster),
        ranks=one.candidate.devices,
        parameters=one.architecture.parameters,
    )


def _names(candidates: Sequence[Candidate]) -> list[str]:
    """``ddp simulated``; candidates of one strategy are told apart by what differs, else by a number."""
    found: list[str] = []
    for candidate in candidates:
        alike = [other for other in candidates if other.strategy == candidate.strategy]
        words = [candidate.strategy, *_differing(candidate, alike), SIMULATED]
        name = " ".join(words)
        found.append(name if name not in found else f"{name} {1 + sum(one.startswith(name) for one in found)}")
    return found


def _differing(candidate: Candidate, alike: Sequence[Candidate]) -> list[str]:
    short = (("micro_batch", "mb"), ("tensor", "tp"), ("pipeline", "pp"), ("context", "cp"), ("shard", "shard"))
    words = [
        f"{word}{getattr(candidate, field):g}"
        for field, word in short
        if len({getattr(other, field) for other in alike}) > 1
    ]
    return words + ([f"ckpt-{candidate.checkpointing}"] if len({one.checkpointing for one in alike}) > 1 else [])


def _slug(name: str) -> str:
    return "-".join("".join(c if c.isalnum() or c in "-._" else " " for c in name).split())
