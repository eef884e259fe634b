"""The recordings of a run's nodes as one run: ranks over all of them, on the clock of the first node.

Which recordings belong together is what they say of themselves: the place where the nodes met, the strategy and its
options, and different node numbers. Of several runs that met at one place the first of each node belong together, then
the second ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from msgspec import structs

from meshscope.analysis.node_clocks import Offset, in_words, offset
from meshscope.experiment import Experiment
from meshscope.recording.entries import Ended, Entry, Log
from meshscope.run import Run
from meshscope.samples import STEP_COLUMNS, SampleTable, StepTable
from meshscope.spans import Window

Move = Callable[[Window, int], Window]

_ENTRIES = (
    "phases", "ranks", "windows_asked", "traces", "compiles", "memory", "checks", "sensor_failures", "logs", "settled",
    "rank_ends",
)  # fmt: skip
_NEAR_NS = 3600 * 1_000_000_000
_LOST = " has lost "


@dataclass(frozen=True)
class Joined:
    """``notes`` say how the clocks of the nodes were set, and what is missing."""

    runs: tuple[Run, ...]
    notes: tuple[str, ...] = ()


def joined(runs: Iterable[Run], move: Move = Window.shifted) -> Joined:
    """The runs, those of several nodes joined, each in the place of its first. ``move`` puts a window later."""
    runs = tuple(runs)
    homes: dict[int, list[Run]] = {}
    for group in _groups(runs):
        homes[next(at for at, run in enumerate(runs) if run is group[0])] = group
    taken = {id(run) for group in homes.values() for run in group}
    found: list[Run] = []
    notes: list[str] = []
    for at, run in enumerate(runs):
        if at in homes:
            one, said = _joined(homes[at], move)
            found.append(one)
            notes += said
        elif id(run) not in taken:
            found.append(run)
    return Joined(tuple(found), tuple(notes))


def _groups(runs: Sequence[Run]) -> list[list[Run]]:
    """Recordings of one run each, by node; only those of several nodes."""
    by_job: dict[object, dict[int, list[Run]]] = {}
    for run in runs:
        here = run.experiment
        if here.nodes > 1 and here.rendezvous:
            job = here.rendezvous, here.strategy, here.nodes, here.ranks, here.model, repr(sorted(here.options.items()))
            by_job.setdefault(job, {}).setdefault(here.node_rank, []).append(run)
    groups = []
    for nodes in by_job.values():
        series = [sorted(mine, key=lambda run: run.experiment.t0_unix_ns) for _, mine in sorted(nodes.items())]
        for number in range(max(map(len, series))):
            group = [mine[number] for mine in series if number < len(mine)]
            group = [run for run in group if _is_near(group[0], run)]
            if len(group) > 1:
                groups.append(group)
    return groups


def _is_near(a: Run, b: Run) -> bool:
    """Clocks of nodes may be off, but not by so much that a run of an hour before would be this one."""
    return abs(a.experiment.t0_unix_ns - b.experiment.t0_unix_ns) <= _NEAR_NS


def _joined(group: list[Run], move: Move) -> tuple[Run, list[str]]:
    first, *others = group
    offsets = [Offset(), *(offset(first, other) for other in others)]
    names = _names(group)
    notes = [in_words(first, one, name) for one, name in zip(offsets[1:], names[1:], strict=True)]
    t0_ns = first.experiment.t0_unix_ns
    parts, gpus = [], 0
    for run, one, name in zip(group, offsets, names, strict=True):
        by_ns = run.experiment.t0_unix_ns - t0_ns - one.ahead_ns
        parts.append(_placed(run, by_ns, name, gpus, move))
        gpus += _gpus(run)
    if len(group) < first.experiment.nodes:
        notes.append(
            f"{first.name}: {len(group)} of {first.experiment.nodes} nodes are here, without the ranks of others."
        )
    told = tuple(Log(t_ns=0, level="info", text=note) for note in notes)
    whole = _summed(group, parts, names)
    return replace(whole, logs=(*told, *whole.logs)), notes


def _names(group: list[Run]) -> list[str]:
    """``gpu01``; with its number where two nodes have one name."""
    hosts = [run.experiment.host or "a host without a name" for run in group]
    return [
        host if hosts.count(host) == 1 else f"{host} (node {run.experiment.node_rank})"
        for host, run in zip(hosts, group, strict=True)
    ]


def _gpus(run: Run) -> int:
    """One more than the largest number that a device of a node has."""
    numbers = [started.device for started in run.ranks]
    numbers += [int(name[4:]) for name in run.samples.devices if name.startswith("gpu ") and name[4:].isdecimal()]
    return max(numbers, default=-1) + 1


def _placed(run: Run, by_ns: int, name: str, gpus: int, move: Move) -> Run:
    """A node's run on the first node's clock, with devices that no other node has."""
    moved: dict[str, Any] = {
        kind: tuple(_entry(entry, by_ns, name, gpus) for entry in getattr(run, kind)) for kind in _ENTRIES
    }
    windows = (move(window, by_ns) for window in run.windows)
    return replace(
        run,
        now_ns=run.now_ns,
        last_entry_ns=run.last_entry_ns + by_ns,
        steps=replace(run.steps, start_ns=run.steps.start_ns + by_ns, end_ns=run.steps.end_ns + by_ns),
        samples=replace(
            run.samples,
            time_ns=run.samples.time_ns + by_ns,
            devices=tuple(_device(device, name, gpus) for device in run.samples.devices),
        ),
        windows=tuple(replace(window, host=name, device=window.device + gpus) for window in windows),
        records=tuple(record.shifted(by_ns) for record in run.records),
        refused=tuple((f"{run.path}/{path}", why, hint) for path, why, hint in run.refused),
        ended=run.ended and structs.replace(run.ended, t_ns=run.ended.t_ns + by_ns),
        **moved,
    )


def _entry(entry: Entry, by_ns: int, name: str, gpus: int) -> Entry:
    changes: dict[str, Any] = {"t_ns": entry.t_ns + by_ns}
    device = getattr(entry, "device", None)
    if isinstance(device, str):
        changes["device"] = _device(device, name, gpus)
    elif isinstance(device, int) and device >= 0:
        changes["device"] = device + gpus
    return structs.replace(entry, **changes)


def _device(device: str, name: str, gpus: int) -> str:
    """GPUs are counted on from node to node; whatever is of the machine as a whole is told with its name."""
    if device.startswith("rank "):
        return device
    if device.startswith("gpu ") and device[4:].isdecimal():
        return f"gpu {int(device[4:]) + gpus}"
    return f"{device} {name}"


def _summed(group: list[Run], parts: list[Run], names: list[str]) -> Run:
    first = parts[0]
    entries: dict[str, Any] = {
        kind: tuple(sorted((entry for part in parts for entry in getattr(part, kind)), key=_order)) for kind in _ENTRIES
    }
    windows = [window for part in parts for window in part.windows]
    return replace(
        first,
        experiment=_experiment([run.experiment for run in group], names),
        last_entry_ns=max(part.last_entry_ns for part in parts),
        steps=_steps([part.steps for part in parts]),
        samples=_samples([part.samples for part in parts]),
        lost_losses=tuple(lost for part in parts for lost in part.lost_losses),
        windows=tuple(sorted(windows, key=lambda window: (window.rank, window.start_ns, window.source))),
        records=tuple(record for part in parts for record in part.records),
        refused=tuple(refusal for part in parts for refusal in part.refused),
        skipped_lines=sum(part.skipped_lines for part in parts),
        ended=_ended(parts),
        **entries,
    )


def _order(entry: Entry) -> tuple[int, int]:
    return entry.t_ns, getattr(entry, "rank", -1)


def _experiment(heads: list[Experiment], names: list[str]) -> Experiment:
    """A run whose nodes are all here is as one machine's, of which there are more cores."""
    first = heads[0]
    return structs.replace(
        first,
        host=", ".join(names),
        hosts=names,
        cores=sum(head.cores for head in heads),
        host_cores=sum(head.host_cores for head in heads),
        devices=[device for head in heads for device in head.devices],
        nodes=1 if len(heads) == first.nodes else first.nodes,
    )


def _steps(tables: list[StepTable]) -> StepTable:
    columns = {name: np.concatenate([getattr(table, name) for table in tables]) for name in STEP_COLUMNS}
    return StepTable(**columns).where(np.lexsort((columns["step"], columns["rank"])))


def _samples(tables: list[SampleTable]) -> SampleTable:
    """Readings of all nodes by time, with tables of names that hold those of each."""
    devices = tuple(sorted({name for table in tables for name in table.devices}))
    fields = tuple(sorted({name for table in tables for name in table.fields}))
    device = np.concatenate([_renumbered(table.device, table.devices, devices) for table in tables])
    field = np.concatenate([_renumbered(table.field, table.fields, fields) for table in tables])
    time_ns = np.concatenate([table.time_ns for table in tables])
    order = np.lexsort((field, device, time_ns))
    value = np.concatenate([table.value for table in tables])
    return SampleTable(time_ns[order], device[order], field[order], value[order], devices, fields)


def _renumbered(numbers: Any, names: tuple[str, ...], known: tuple[str, ...]) -> Any:
    place = np.array([known.index(name) for name in names] or [0], dtype=np.int32)
    return place[numbers]


def _ended(parts: list[Run]) -> Ended | None:
    """Failed where one node failed, and first of all what a node says that did not only lose another; None while one
    goes on."""
    ends = [part.ended for part in parts if part.ended is not None]
    failed = sorted((end for end in ends if end.outcome == "failed"), key=lambda end: (_LOST in end.why, end.t_ns))
    if failed:
        why = "; ".join(dict.fromkeys(end.why for end in failed))
        return structs.replace(failed[0], why=why, t_ns=max(end.t_ns for end in ends))
    if len(ends) < len(parts):
        return None
    last = max(ends, key=lambda end: (end.outcome != "done", end.t_ns))
    return structs.replace(last, t_ns=max(end.t_ns for end in ends))
