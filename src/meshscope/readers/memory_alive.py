"""Which allocations were alive at a moment of a snapshot's history.

The blocks are the state at the end, the history leads there and may begin in the middle (it is a ring buffer). So
whatever the history made and had not freed by then was alive; and so was what it never made, if it is still there at
the end, or if the history frees it only later. Of the latter nothing tells where it was made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from meshscope.readers.memory_segments import device_of
from meshscope.readers.memory_sites import Sites
from meshscope.records import Alive
from meshscope.units import counted, printable

_LARGEST = 1 << 50
_NOTE_WIDTH = 80


@dataclass(frozen=True)
class Block:
    """One block that is allocated at the end. ``size_bytes`` is as asked for, where the file tells that."""

    address: int
    size_bytes: int
    frames: Any = None
    note: Any = None


class Unfitting(Exception):  # noqa: N818  # no error of the program: the caller says why it cannot tell
    """The history does not lead to the blocks, in words."""


def blocks(segments: Iterable[Any]) -> dict[int, list[Block]]:
    """What is allocated, by device. Blocks without an address follow each other within their segment."""
    found: dict[int, list[Block]] = {}
    for segment in segments:
        if isinstance(segment, dict):
            found.setdefault(device_of(segment), []).extend(_blocks(segment))
    return found


def _blocks(segment: dict[str, Any]) -> Iterator[Block]:
    listed = segment.get("blocks")
    following = _number(segment.get("address")) or 0
    for block in listed if isinstance(listed, list) else ():
        size_bytes = _number(block.get("size"), _LARGEST) if isinstance(block, dict) else None
        if size_bytes is None:
            continue
        told = _number(block.get("address"))
        address = following if told is None else told
        following = address + size_bytes
        if block.get("state") == "active_allocated":
            asked = _number(block.get("requested_size"), _LARGEST)
            yield Block(address, size_bytes if asked is None else asked, _stack(block), block.get("user_metadata"))


def _stack(block: dict[str, Any]) -> Any:
    """Torch 2.0 kept the stacks of a block in a list of those that it had served."""
    frames = block.get("frames")
    past = block.get("history")
    if not frames and isinstance(past, list) and past and isinstance(past[0], dict):
        frames = past[0].get("frames")
    return frames


def _number(value: Any, limit: int = 1 << 64) -> int | None:
    return value if type(value) is int and 0 <= value < limit else None


def alive(last: list[Block], calls: list[dict[str, Any]], after: int, *, frees: str, moment: str = "peak") -> Alive:
    """What was alive once call number ``after`` was done (−1: before the first). ``frees`` is the action that ends one.

    Raises Unfitting where the calls do not lead to ``last``, the blocks at the end.
    """
    made, older = _walk(calls, after, frees)
    made_at_end, older_freed = _walk(calls, len(calls) - 1, frees)
    at_end = {block.address: block for block in last}
    if len(at_end) < len(last):
        raise Unfitting("several blocks have the same address")
    lost = made_at_end.keys() - at_end.keys()
    seen = {call.get("addr") for call in calls if call["action"] in ("alloc", frees)}
    untouched = [block for block in last if block.address not in made_at_end]
    odd = len(lost) + sum(block.address in seen for block in untouched)
    if odd:
        raise Unfitting(f"{counted(odd, 'block')} that it leads to or leaves alone cannot be what is there at the end")
    freed_later = [calls[number] for address, number in older_freed.items() if address not in older]
    held = [
        *((calls[number].get("size", 0), calls[number].get("frames"), calls[number].get("user_metadata"), False)
          for number in made.values()),
        *((block.size_bytes, block.frames, block.note, True) for block in untouched),
        *((call.get("size", 0), None, call.get("user_metadata"), True) for call in freed_later),
    ]  # fmt: skip
    return _alive(held, moment)


def alive_at_end(last: list[Block]) -> Alive:
    """What the blocks tell by themselves; ``is_older`` is so of none, since there is no history to be older than."""
    return _alive([(block.size_bytes, block.frames, block.note, False) for block in last], "end")


def _walk(calls: list[dict[str, Any]], after: int, frees: str) -> tuple[dict[int, int], dict[int, int]]:
    """Address → number of the call that made what is alive after call ``after``; and of that which freed older ones."""
    made: dict[int, int] = {}
    older: dict[int, int] = {}
    seen: set[int] = set()
    for number, call in enumerate(calls[: after + 1]):
        action = call["action"]
        if action not in ("alloc", frees):
            continue
        address = call.get("addr")
        if type(address) is not int:
            raise Unfitting("its calls do not tell addresses")
        if action == "alloc":
            if address in made:
                raise Unfitting(f"it allocates address {address:#x} twice without freeing it")
            made[address] = number
        elif made.pop(address, None) is None:
            if address in seen:
                raise Unfitting(f"it frees address {address:#x} twice")
            older[address] = number
        seen.add(address)
    return made, older


def _alive(held: list[tuple[int, Any, Any, bool]], moment: str) -> Alive:
    sites, notes = Sites(), dict[str, int]()
    held.sort(key=lambda one: -one[0])
    numbers = [sites.numbers(frames) for _, frames, _, _ in held]
    return Alive(
        moment=moment,
        time_ns=0,
        size_bytes=np.array([size for size, _, _, _ in held], dtype=np.int64),
        site=np.array([number for number, _ in numbers], dtype=np.int32),
        part=np.array([part for _, part in numbers], dtype=np.int8),
        note=np.array([_note(note, notes) for _, _, note, _ in held], dtype=np.int32),
        is_older=np.array([is_older for _, _, _, is_older in held], dtype=np.bool_),
        sites=sites.words,
        notes=tuple(notes),
    )


def _note(said: Any, notes: dict[str, int]) -> int:
    if not isinstance(said, str) or not said:
        return -1
    return notes.setdefault(printable(said[:_NOTE_WIDTH]), len(notes))
