"""Between which two ranks a send or a receive passes something: they are its group, in the order of its direction.

A kernel of NCCL's says the other rank outright. A call of gloo's records a number within its process group, and the
file may not say which group: then it tells a rank where every group that it may be of gives the same one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from meshscope.kinds import Kind
from meshscope.readers.kineto_columns import Columns
from meshscope.readers.kineto_groups import process_groups
from meshscope.readers.told import Told

Ints = npt.NDArray[np.int64]

_EMBEDDING = "embedding"


def paired(columns: Columns, told: Told, call: Ints | None, rank: int) -> Columns:
    """With the two ranks of each send and receive as its group, where they are told.

    ``call`` has the row of the call that a span of gloo's carries out (−1 none); None where kernels speak themselves.
    """
    codes = [code for code, name in enumerate(told.collectives) if name in ("send", "recv")]
    if not codes:
        return columns
    rows = np.flatnonzero(np.isin(told.collective, codes) & (told.kind == Kind.COLLECTIVE))
    says = rows if call is None else call[rows]
    number = np.where(says >= 0, columns.peer[says], -1)
    rows, number = rows[number >= 0], number[number >= 0]
    group, groups = columns.group.copy(), list(columns.groups)
    each = np.stack((told.collective[rows], number, columns.group[rows]), axis=1)
    for code, other, within in np.unique(each, axis=0).tolist():
        name = columns.groups[within] if within >= 0 else ""
        peer = other if call is None else _rank(other, rank, name, columns.metadata)
        if peer >= 0:
            group[rows[(each == (code, other, within)).all(axis=1)]] = len(groups)
            groups.append(_pair(told.collectives[code], rank, peer))
    return replace(columns, group=group, groups=tuple(groups))


def _pair(collective: str, own: int, other: int) -> str:
    source, target = (own, other) if collective == "send" else (other, own)
    return f"ranks {source} to {target}"


def _rank(number: int, own: int, name: str, metadata: dict[str, Any]) -> int:
    """The rank that has a number within its group, by those that the file declares; −1 where they differ in it.

    ``name`` is the group's, "" where it is not told.

    A group that shares an embedding between the ends of a pipeline (Megatron-LM describes it so, and the bundled
    pipelines do) passes nothing on.
    """
    shared = {str(group.get("pg_name")) for group in _declared(metadata) if _shares_embedding(group)}
    declared = process_groups(metadata)
    named = [group for group in declared if group.name == name and name]
    groups = named or [group for group in declared if group.name not in shared and own in group.ranks]
    found = {group.ranks[number] for group in groups if number < len(group.ranks)} - {own}
    return found.pop() if len(found) == 1 else -1


def _shares_embedding(group: dict[str, Any]) -> bool:
    return _EMBEDDING in str(group.get("pg_desc", "")).lower()


def _declared(metadata: dict[str, Any]) -> list[dict[str, Any]]:
    about = metadata.get("distributedInfo")
    declared = about.get("pg_config") if isinstance(about, dict) else None
    return [group for group in declared if isinstance(group, dict)] if isinstance(declared, list) else []
