"""The machine and the process groups that a Kineto file declares, in its head (since torch 2.3) or with kernels."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from meshscope.spans import ProcessGroup

_NOTHING: Mapping[str, object] = MappingProxyType({})
_WHOLE = re.compile(r"^\[\s*\d{1,10}(\s*,\s*\d{1,10})*\s*\]$")


def host(metadata: dict[str, Any]) -> str:
    """The machine that wrote the file, "" where it does not say."""
    name = metadata.get("host_name")
    return name if isinstance(name, str) else ""


def process_groups(metadata: dict[str, Any], told: Mapping[str, object] = _NOTHING) -> tuple[ProcessGroup, ...]:
    """``distributedInfo.pg_config``, and of other groups, or where it names no ranks, what their kernels say.

    A list of ranks that is not as long as its group was cut short: it is left out. ``told`` is by the group's name.
    """
    about = metadata.get("distributedInfo")
    declared = about.get("pg_config") if isinstance(about, dict) else None
    entries = declared if isinstance(declared, list) else []
    groups = {group.name: group for group in map(_group, filter(_is_group, entries))}
    for name, ranks in told.items():
        known, listed = groups.get(name), _listed(ranks)
        if listed and (known is None or (not known.ranks and known.size in (0, len(listed)))):
            groups[name] = ProcessGroup(name, len(listed), listed)
    return tuple(groups.values())


def _is_group(entry: object) -> bool:
    return isinstance(entry, dict) and "pg_name" in entry


def _listed(ranks: object) -> tuple[int, ...]:
    """``[0, 1]`` as ranks; none where the list was cut short (``[0, 1, ...]``)."""
    if not isinstance(ranks, str) or not _WHOLE.match(ranks):
        return ()
    numbers = tuple(sorted({int(number) for number in ranks.strip("[] ").split(",")}))
    return numbers if numbers[-1] < 2**31 else ()


def _group(entry: dict[str, Any]) -> ProcessGroup:
    ranks = entry.get("ranks")
    numbers = ranks if isinstance(ranks, list) else []
    known = tuple(sorted({rank for rank in numbers if _is_count(rank)}))
    size = entry["pg_size"] if _is_count(entry.get("pg_size")) else len(known)
    return ProcessGroup(str(entry["pg_name"]), size, known if len(known) == size else ())


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31
