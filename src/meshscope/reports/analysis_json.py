"""``analyze --json``: one object that other programs rely on (format 1).

A number that cannot be known is absent, and ``cannot_say`` tells why; nothing that is not finite is ever written.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

import msgspec

from meshscope.analysis.axes import axes
from meshscope.analysis.breakdown import Breakdown, RankBreakdown, breakdown
from meshscope.analysis.device_steps import MARKS
from meshscope.analysis.devices import devices
from meshscope.analysis.doubts import doubts as told_doubts
from meshscope.analysis.efficiency import efficiency
from meshscope.analysis.hosts_ahead import hosts_ahead
from meshscope.analysis.kernels import kernels
from meshscope.analysis.memory import RankMemory, memory
from meshscope.analysis.memory_doubts import memory_doubts
from meshscope.analysis.not_finite import not_finite
from meshscope.analysis.several_devices import several_devices
from meshscope.analysis.standing import device_kind
from meshscope.analysis.steps import NO_TOKENS, Steps, steps
from meshscope.analysis.traced_memory import SOURCE, traced_memory
from meshscope.analysis.waiting import meets
from meshscope.reports.collectives_json import collectives_json
from meshscope.reports.comparison_json import comparison_json
from meshscope.reports.efficiency_text import efficiency_values
from meshscope.reports.findings_json import findings_json, looked_for_json
from meshscope.reports.losses_json import losses_json
from meshscope.reports.memory_json import headroom_json, measured_json, memory_json_doubts, out_of_memory_json
from meshscope.reports.pipeline_json import pipeline_json
from meshscope.reports.records_json import memory_record_json, records_json
from meshscope.reports.stacks import stacks_json
from meshscope.reports.waiting_json import waiting_json
from meshscope.reports.why_json import why_json
from meshscope.run import Run
from meshscope.units import counted, printable

FORMAT = 1

Doubts = dict[str, list[str]]

_NO_STEP = "no profiled step lies wholly in a window"
_NO_JOURNAL = "a trace alone shows only steps that were being profiled"
_NO_MEASURED = "no unprofiled step past warm-up"
_STEP_NS = ("median_ns", "p95_ns", "spread_ns", "first_ns", "compile_ns", "profiled_median_ns")
_STEP_RATES = ("samples_per_s", "samples_per_s_spread", "tokens_per_s", "data_wait_frac", "loss_last",
               "profiled_slowdown_frac", "profiler_cost_frac")  # fmt: skip


def analysis_json(
    runs: Sequence[Run], refused: Iterable[tuple[str, str, str]] = (), *, with_kernels: bool = False
) -> str:
    """The object as text. ``refused`` lists (path, why, hint) of what could not be read at all.

    ``with_kernels`` adds to each recording ``kernels``: which rule took which names for what.
    """
    said = analysis(runs, refused, with_kernels=with_kernels)
    return msgspec.json.format(msgspec.json.encode(said), indent=1).decode()


def analysis(
    runs: Sequence[Run], refused: Iterable[tuple[str, str, str]] = (), *, with_kernels: bool = False
) -> dict[str, Any]:
    """The same as plain values."""
    inside = [(f"{run.path}/{path}", why, hint) for run in runs for path, why, hint in run.refused]
    said = {
        "format": FORMAT,
        "recordings": [_recording(run) | (_kernels(run) if with_kernels else {}) for run in runs],
        "comparison": comparison_json(runs),
        "losses": losses_json(runs),
        "refused": [{"path": path, "why": why, "hint": hint} for path, why, hint in (*refused, *inside)],
    }
    return {name: _encodable(value) for name, value in said.items()}


def _encodable(said: Any) -> Any:
    """Names of files may hold bytes that are no text: JSON has no way to say them."""
    if isinstance(said, dict):
        return {_encodable(name): _encodable(value) for name, value in said.items()}
    if isinstance(said, list):
        return [_encodable(value) for value in said]
    return printable(said) if isinstance(said, str) and _has_surrogate(said) else said


def _has_surrogate(text: str) -> bool:
    return not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)


def _recording(run: Run) -> dict[str, Any]:
    doubts: Doubts = {}
    for what, why in told_doubts(run):
        _doubt(doubts, what, why)
    if run.skipped_lines:
        _doubt(doubts, "journal", f"{counted(run.skipped_lines, 'line')} of it could not be read")
    told, untold = collectives_json(run)
    for what, why in untold:
        _doubt(doubts, what, why)
    said: dict[str, Any] = (
        {
            "path": run.path,
            "framework": run.experiment.framework or None,
            "strategy": run.experiment.strategy or None,
            "device_kind": device_kind(run),
            "outcome": run.ended.outcome if run.ended else "lost" if run.is_lost else None,
            "ranks": [_rank(run, rank, doubts) for rank in breakdown(run)],
            "collectives": told,
            "memory": [_memory(run, rank) for rank in memory(run)],
            "headroom": headroom_json(run),
            "out_of_memory": out_of_memory_json(run),
            "steps": _steps(run, steps(run), doubts),
            "efficiency": _efficiency(run, doubts),
            "devices": _devices(run, doubts),
            "findings": findings_json(run),
            "looked_for": looked_for_json(run),
        }
        | waiting_json(run)
        | pipeline_json(run)
    )
    causes, unexplained = why_json(run)
    said |= causes
    for what, why in unexplained:
        _doubt(doubts, what, why)
    if run.settled:
        said["stable"] = msgspec.to_builtins(run.settled[-1]) | {"wanted_frac": run.experiment.stable_frac}
    said |= _nature(run)
    if not run.experiment.strategy:
        said["files"] = sorted({window.source for window in run.windows})
        said["allocations"] = [asdict(rank) | {"source": SOURCE} for rank in traced_memory(run)]
    for what, why in (*memory_doubts(run), *memory_json_doubts(run)):
        _doubt(doubts, what, why)
    said |= records_json(run)
    listed = [{"what": what, "why": why} for what, whys in sorted(doubts.items()) for why in whys]
    return said | {"cannot_say": listed}


def _nature(run: Run) -> dict[str, Any]:
    """What kind of run it was, each only where it was of that kind."""
    said: dict[str, Any] = {}
    if along := axes(run):
        said["axes"] = [asdict(axis) for axis in along]
    head = run.experiment
    if head.simulated is not None:
        said["simulated"] = msgspec.to_builtins(head.simulated)
    if head.strategy and not head.model and head.title and not head.is_attached:
        said["seen"] = {"strategy": head.seen or None, "title": head.title}
    if run.stacks:
        said["stacks"] = stacks_json(run)
    if (lost := not_finite(run)).evidence:
        said["not_finite"] = {
            "loss_since_step": lost.loss_step,
            "parameters_since_step": lost.parameters_step,
            "ranks": list(lost.ranks),
        }
    if head.faults:
        said["injected"] = list(head.faults)
    if head.hosts:
        said["hosts"] = list(head.hosts)
    if head.nodes > 1:
        said["node"] = {"rank": head.node_rank, "nodes": head.nodes, "rendezvous": head.rendezvous}
    return said


def _kernels(run: Run) -> dict[str, Any]:
    return {"kernels": [msgspec.to_builtins(rank) for rank in kernels(run)]}


def _doubt(doubts: Doubts, what: str, why: str) -> None:
    whys = doubts.setdefault(what, [])
    if why not in whys:
        whys.append(why)


def _rank(run: Run, rank: RankBreakdown, doubts: Doubts) -> dict[str, Any]:
    mine = [window for window in run.windows if window.rank == rank.rank]
    said: dict[str, Any] = {
        "rank": rank.rank,
        "device": rank.device,
        "rank_from": rank.rank_from,
        "windows": [
            {"start_ns": w.start_ns, "end_ns": w.end_ns, "steps": list(w.steps), "complete": w.is_complete}
            for w in mine
        ],
    }
    if rank.device_kind != "none":
        said["breakdown"] = _breakdown(rank.total)
        if rank.per_step is not None:
            said["per_step"] = _breakdown(rank.per_step) | {"steps": len(rank.steps)}
        elif all(window.is_complete for window in mine):
            _doubt(doubts, "per_step", _NO_STEP)
        for one in hosts_ahead(run):
            if one.rank == rank.rank:
                said["device_steps"] = {"by": one.by} | ({"host_ahead_ns": one.ahead_ns} if one.by != MARKS else {})
        if any(meets(window) for window in mine):
            said["wait_source"] = "rendezvous"
        own = [one for one in several_devices(run) if one.rank == rank.rank]
        if own:
            said["devices"] = [{"device": one.device, "breakdown": _breakdown(one.total)} for one in own]
    said["events"] = {
        "read": rank.events_read,
        "device": rank.events_device,
        "dropped": rank.dropped,
        "repaired": rank.repaired,
    }
    return said


def _breakdown(found: Breakdown) -> dict[str, int]:
    return {name: value for name, value in asdict(found).items() if value is not None}


def _memory(run: Run, rank: RankMemory) -> dict[str, Any]:
    device = rank.device if rank.device >= 0 else None
    step = {"step": rank.step} if rank.step >= 0 else {}
    said: dict[str, Any] = {"rank": rank.rank, "device": device, **step, "source": rank.source}
    known = {"peak_bytes": rank.peak_bytes, "reserved_bytes": rank.pool_bytes, "in_use_bytes": rank.in_use_bytes}
    said |= {name: value for name, value in known.items() if value is not None}
    if rank.peak_bytes is not None:
        said["peak_how"] = rank.peak_how
    said["categories"] = {c.name: {"bytes": c.size_bytes, "how": c.how} for c in rank.categories}
    return said | measured_json(run, rank) | memory_record_json(rank)


def _steps(run: Run, found: Steps, doubts: Doubts) -> dict[str, Any]:
    said: dict[str, Any] = {
        "count": found.count,
        "planned": found.planned,
        "measured": found.measured,
        "profiled": found.profiled,
        "compilations": found.compilations,
        "recompilations": found.recompilations,
    }
    if not found.count:
        _doubt(doubts, "steps", _no_step_why(run))
        return said
    for name in (*_STEP_NS, *_STEP_RATES):
        value = getattr(found, name)
        if math.isfinite(value):
            said[name] = round(value) if name in _STEP_NS else value
        else:
            _doubt(doubts, f"steps.{name}", _step_why(name, found))
    return said


def _efficiency(run: Run, doubts: Doubts) -> dict[str, Any]:
    found = efficiency(run)
    if found.why:
        _doubt(doubts, "efficiency.mfu_frac", found.why)
    return efficiency_values(found)


def _no_step_why(run: Run) -> str:
    if run.experiment.strategy:
        return "no step has finished"
    return _NO_JOURNAL if run.windows else "there is neither a journal nor a trace of steps"


def _step_why(name: str, found: Steps) -> str:
    if name == "compile_ns":
        return "no compilation was recorded"
    if name == "first_ns":
        return "nothing tells when the first step began"
    if name.startswith("profiled") and not found.profiled:
        return "no step was profiled"
    if name == "tokens_per_s" and found.measured:
        return NO_TOKENS
    return "not recorded" if found.measured else _NO_MEASURED


def _devices(run: Run, doubts: Doubts) -> list[dict[str, Any]]:
    found = devices(run)
    for device, name, why in found.failed:
        _doubt(doubts, f"{device} {name}", why)
    return [
        {"device": f.device, "field": f.field, "count": f.count, "mean": f.mean, "max": f.maximum, "last": f.last}
        for f in found.fields
    ]
