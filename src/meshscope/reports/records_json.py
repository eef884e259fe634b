"""What ``analyze --json`` says of files without spans: allocators, flight recorders, device logs."""

from __future__ import annotations

from typing import Any

from meshscope.analysis.flight import Flight, Mismatch, Unfinished, flight
from meshscope.analysis.memory import RankMemory
from meshscope.records import Call, FlightRecord, Record
from meshscope.reports.memory_json import alive_json, failure_json
from meshscope.run import Run


def records_json(run: Run) -> dict[str, Any]:
    """``files`` and, where there is one, ``flight_recorder``; empty for a run of traces alone."""
    said: dict[str, Any] = {}
    if run.records:
        said["files"] = [_file(record) for record in run.records]
    found = flight(run)
    if found is not None:
        said["flight_recorder"] = _flight(found)
    return said


def _file(record: Record) -> dict[str, Any]:
    said: dict[str, Any] = {"path": record.source, "kind": record.kind}
    if record.rank >= 0:
        said |= {"rank": record.rank, "rank_from": record.rank_from}
    return said | {
        "start_ns": record.start_ns,
        "end_ns": record.end_ns,
        "complete": record.is_complete,
        "events": {
            "read": record.counts.read, "dropped": record.counts.dropped, "repaired": record.counts.repaired,
        },
    }  # fmt: skip


def memory_record_json(rank: RankMemory) -> dict[str, Any]:
    """The part of a rank's memory that only an allocator's own file tells."""
    record = rank.record
    if record is None:
        return {}
    known = {"end_bytes": record.end_bytes, "preexisting_bytes": record.preexisting_bytes}
    said: dict[str, Any] = {name: value for name, value in known.items() if value is not None}
    if record.alive is not None:
        said["alive"] = alive_json(record.alive)
    if record.failure is not None:
        said["failure"] = failure_json(record.failure)
    parts = {"allocator": record.figures, "history": record.history, "actions": record.actions}
    return said | {name: values for name, values in parts.items() if values}


def _flight(found: Flight) -> dict[str, Any]:
    return {
        "ranks": [_rank(record) for record in found.records],
        "collectives": [
            {
                "name": called.collective, "group": called.group, "ranks": list(called.ranks), "count": called.count,
                "unfinished": called.unfinished, "last_sequence": called.last_sequence,
            }
            for called in found.calls
        ],
        "unfinished": [_unfinished(one) for one in found.unfinished],
        "mismatches": [_mismatch(one) for one in found.mismatches],
        "entries": [_entry(record.rank, call) for record in found.records for call in record.calls],
    }  # fmt: skip


def _rank(record: FlightRecord) -> dict[str, Any]:
    return {
        "rank": record.rank,
        "version": record.version,
        "calls": len(record.calls),
        "unfinished": sum(not call.is_done for call in record.calls),
        "groups": [
            {
                "name": group.name, "description": group.description, "ranks": list(group.ranks),
                "last_enqueued": group.enqueued, "last_started": group.started, "last_completed": group.completed,
            }
            for group in record.groups.values()
        ],
    }  # fmt: skip


def _unfinished(one: Unfinished) -> dict[str, Any]:
    return {
        "collective": one.collective,
        "group": one.group,
        "description": one.description,
        "sequence": one.sequence,
        "waiting": list(one.waiting),
        "done": list(one.done),
        "absent": list(one.absent),
        "unknown": list(one.unknown),
        "last": {str(rank): words for rank, words in one.last.items()},
        "since_unix_ns": one.since_ns or None,
        "where": one.where or None,
    }


def _mismatch(one: Mismatch) -> dict[str, Any]:
    return {
        "group": one.group,
        "description": one.description,
        "sequence": one.sequence,
        "of": one.of,
        "calls": {what: list(ranks) for what, ranks in one.calls.items()},
    }


def _entry(rank: int, call: Call) -> dict[str, Any]:
    said = {
        "rank": rank,
        "group": call.group,
        "sequence": call.sequence,
        "collective": call.collective,
        "name": call.name,
        "input_sizes": [list(shape) for shape in call.input_sizes],
        "output_sizes": [list(shape) for shape in call.output_sizes],
        "input_dtypes": list(call.input_dtypes),
        "output_dtypes": list(call.output_dtypes),
        "state": call.state,
        "done": call.is_done,
    }
    times = {"created_unix_ns": call.created_ns, "started_unix_ns": call.started_ns,
             "completed_unix_ns": call.completed_ns}  # fmt: skip
    return said | {name: value for name, value in times.items() if value}
