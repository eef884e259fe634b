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
