"""What a call was given beside its tensors: the ``Concrete Inputs`` that a trace with shapes records of it."""

from __future__ import annotations

from functools import lru_cache

import msgspec

PASSING = frozenset({"c10d::send", "c10d::recv_"})
"""Calls that pass something between two ranks: ``send(tensors, group, rank, tag)``, and ``recv_`` alike."""

_RANK_AT = 2


@lru_cache(maxsize=1024)
def peer(values: bytes) -> int:
    """The number of the other rank among the inputs of such a call, −1 where they are not recorded."""
    try:
        found = msgspec.json.decode(values or b"[]")
    except (msgspec.DecodeError, RecursionError):
        return -1
    number = found[_RANK_AT] if isinstance(found, list) and len(found) > _RANK_AT else ""
    is_number = isinstance(number, str) and number.isascii() and number.isdigit() and len(number) < 7
    return int(number) if is_number else -1
