"""Which process group each collective of a window is of, where there are several.

gloo's spans do not say it; torch's flight recorder does.
"""

from __future__ import annotations

import json
import pickle
from typing import Any

KEY = "meshscopeCalls"
"""What stands in the head of a Kineto file: ``[unix ns, operation, process group, sequence number]`` of each call."""


def stamped(content: bytes, since_unix_ns: int) -> bytes:
    """The JSON object of a trace with the calls since a time at its head; as it is where no recorder knows any."""
    head, brace, rest = content.partition(b"{")
    calls = _calls(since_unix_ns)
    if not calls or head.strip():
        return content
    return head + brace + json.dumps({KEY: calls}).encode()[1:-1] + b"," + rest


def _has_several_groups() -> bool:
    """With one group nothing is unclear, and reading the recorder (2000 calls) takes a rank 20 ms."""
    import torch.distributed.distributed_c10d as c10d

    return len(getattr(getattr(c10d, "_world", None), "pg_map", ())) > 1


def _calls(since_unix_ns: int) -> list[list[Any]]:
    import torch.distributed as dist

    if not (dist.is_available() and dist.is_initialized() and "gloo" in dist.get_backend() and _has_several_groups()):
        return []
    from torch._C import _distributed_c10d as c10d

    recorder = getattr(c10d, "_dump_fr_trace", None)
    if recorder is None:
        return []
    dump = pickle.loads(recorder(includeCollectives=True, includeStackTraces=False, onlyActive=False))
    return [
        [entry["time_created_ns"], _operation(entry["profiling_name"]), entry["process_group"][0], _sequence(entry)]
        for entry in dump.get("entries", ())
        if entry["time_created_ns"] >= since_unix_ns
    ]


def _operation(name: str) -> str:
    """``gloo:all_reduce`` → ``all_reduce``."""
    return name.rpartition(":")[2]


def _sequence(entry: dict[str, Any]) -> int:
    return int(entry["p2p_seq_id" if entry.get("is_p2p") else "collective_seq_id"])
