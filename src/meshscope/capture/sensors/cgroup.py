"""The memory that this process's control group may use: in a container or a batch job, less than the host's.

What is used counts without the file cache that the kernel can drop, as container tools count it. Reference:
Documentation/admin-guide/cgroup-v2.rst of Linux, "Memory".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")

_CACHED = re.compile(r"^inactive_file (\d+)$", re.MULTILINE)


@dataclass(frozen=True)
class MemoryLimit:
    used_bytes: int
    limit_bytes: int


def memory_limit(root: Path = ROOT, own: Path = OWN) -> MemoryLimit | None:
    """Of the group, or the one around it, that leaves the least; None where none is limited, and without cgroup v2."""
    folder = root / _group(own)
    groups = [folder, *folder.parents] if folder != root else [folder]
    found = [limit for group in groups if group.is_relative_to(root) and (limit := _limit(group))]
    return min(found, key=lambda limit: limit.limit_bytes - limit.used_bytes, default=None)


def _group(own: Path) -> str:
    """Relative to the root; "" for the root itself, which is all that a container sees."""
    lines = _text(own).splitlines()
    return next((line[3:].lstrip("/") for line in lines if line.startswith("0::")), "")


def _limit(group: Path) -> MemoryLimit | None:
    limit, used = _text(group / "memory.max").strip(), _text(group / "memory.current").strip()
    if not limit.isdecimal() or not used.isdecimal():
        return None
    cached = _CACHED.search(_text(group / "memory.stat"))
    return MemoryLimit(max(int(used) - int(cached[1] if cached else 0), 0), int(limit))


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
