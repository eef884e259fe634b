"""The machine and the process groups that the head of a Kineto file declares (since torch 2.3)."""

from __future__ import annotations

from typing import Any

from meshscope.spans import ProcessGroup


def host(metadata: dict[str, Any]) -> str:
    """The machine that wrote the file, "" where it does not say."""
    name = metadata.get("host_name")
    return name if isinstance(name, str) else ""


def process_groups(metadata: dict[str, Any]) -> tuple[ProcessGroup, ...]:
    """``distributedInfo.pg_config``. A list of ranks that is not as long as its group was cut short: it is left out."""
    about = metadata.get("distributedInfo")
    declared = about.get("pg_config") if isinstance(about, dict) else None
    if not isinstance(declared, list):
        return ()
    return tuple(_group(entry) for entry in declared if isinstance(entry, dict) and "pg_name" in entry)


def _group(entry: dict[str, Any]) -> ProcessGroup:
    ranks = entry.get("ranks")
    numbers = ranks if isinstance(ranks, list) else []
    known = tuple(sorted({rank for rank in numbers if _is_count(rank)}))
    size = entry["pg_size"] if _is_count(entry.get("pg_size")) else len(known)
    return ProcessGroup(str(entry["pg_name"]), size, known if len(known) == size else ())


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31
