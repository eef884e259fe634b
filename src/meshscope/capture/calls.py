"""What a flight recorder's dump says at once: how far a rank has come in each process group."""

from __future__ import annotations

from typing import Any


def newest(found: dict[str, Any]) -> dict[str, int]:
    """The number of the last collective called, by process group, of a dump as it was unpickled or read from JSON."""
    last: dict[str, int] = {}
    for entry in found.get("entries", ()):
        if not entry.get("is_p2p"):
            group = str(entry["process_group"][0])
            last[group] = max(last.get(group, -1), int(entry["collective_seq_id"]))
    return last


def waits_in(found: dict[str, Any]) -> str:
    """``all_reduce 57 of group 0``: the oldest call of a dump that is not done; "" where all are."""
    for entry in found.get("entries", ()):
        if not entry.get("retired", True):
            name = str(entry.get("profiling_name", "")).rpartition(":")[2] or "a collective"
            number = entry.get("p2p_seq_id" if entry.get("is_p2p") else "collective_seq_id", "?")
            return f"{name} {number} of group {entry['process_group'][0]}"
    return ""
