"""What a watcher asks of the supervisor, and the supervisor of the ranks: small files renamed into place.

Files rather than a socket: they work in containers, over a network file system and after the watcher is gone,
and they are part of the record. A rank looks with one ``stat`` per step.
"""

from __future__ import annotations

import time
import uuid
from pathlib import Path

import msgspec

from meshscope.recording.layout import CONTROL, write_whole

STAND = "stand"
_TICK_NS = 100_000_000


class Ask(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``what``: ``stop`` (end the whole run), ``profile`` (one extra window now); to the ranks ``window``, ``until``
    (steps below ``end_step`` may begin), ``end`` (those from ``end_step`` on never will) and ``stand`` (tell where you
    stand).

    A window is steps [first_step, end_step), after ``warmup`` steps that the profiler only watches.
    """

    what: str
    first_step: int = -1
    end_step: int = -1
    warmup: int = 1
    has_memory: bool = False
    reason: str = ""


def ask(folder: Path, request: Ask) -> None:
    """Leave a request in ``folder/control``."""
    name = f"{time.time_ns():020d}-{request.what}-{uuid.uuid4().hex[:8]}.json"
    write_whole(folder / CONTROL / name, msgspec.json.encode(request))


class Asked:
    """The requests in ``folder/control`` that were not returned before."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / CONTROL
        self._seen: set[str] = set()
        self._changed_ns = -1

    def new(self) -> list[Ask]:
        """Requests since the last call, oldest first; costs one ``stat`` when there are none."""
        try:
            changed_ns = self._folder.stat().st_mtime_ns
        except FileNotFoundError:
            return []
        if changed_ns == self._changed_ns:
            return []
        # File systems stamp folders with the kernel's tick (up to 10 ms): a young stamp may hide a second change.
        self._changed_ns = changed_ns if time.time_ns() - changed_ns > _TICK_NS else -1
        fresh = sorted(p for p in self._folder.glob("[0-9]*.json") if p.name not in self._seen)
        self._seen.update(path.name for path in fresh)
        return [msgspec.json.decode(path.read_bytes(), type=Ask) for path in fresh]
