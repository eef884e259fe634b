"""What a snapshot of torch's allocator still says when its file ends early: whole segments, and whole histories.

A pickle fills its dicts and lists from the inside out, so everything that lies open where the file ends stands on the
pickle's stack. What was put down before the last thing is whole; the last thing itself may not be.
"""

from __future__ import annotations

from itertools import takewhile
from typing import Any, NamedTuple

from meshscope.readers.pickles import Unfinished


class Kept(NamedTuple):
    """All segments, and the histories by device: those of devices from number ``whole`` on are cut or missing."""

    segments: list[Any]
    traces: list[Any]
    whole: int


def kept(found: Unfinished) -> Kept | None:
    """None where the segments are not all there: the state at the end would be that of a part of the memory."""
    pairs = _open_pairs(found)
    names = [name for name, _, _ in pairs]
    if "segments" not in names[:-1]:
        return None
    values = {name: (value, pending) for name, value, pending in pairs}
    segments, _ = values["segments"]
    traces, pending = values.get("device_traces", ([], []))
    if not isinstance(segments, list) or not isinstance(traces, list):
        return None
    if "device_traces" in names[:-1]:
        return Kept(segments, traces, len(traces))
    begun = list(takewhile(_is_list, pending))
    lists = [*traces, *begun]
    whole = max(len(lists) - 1, 0)
    if lists:
        lists[whole] = [*lists[whole], *_whole_calls(pending[len(begun) :])]
    return Kept(segments, lists, whole)


def _open_pairs(found: Unfinished) -> list[tuple[str, Any, list[Any]]]:
    """The pairs of the outermost dict as far as they go: each key, its value, and what was to be put into the last.

    The last one may not be whole.
    """
    stack, marks = found
    if not stack or type(stack[0]) is not dict:
        return []
    pairs: list[tuple[str, Any, list[Any]]] = [(key, value, []) for key, value in stack[0].items()]
    at = 1
    while at + 1 < len(stack) and isinstance(stack[at], str):
        pairs.append((stack[at], stack[at + 1], []))
        at += 2
        if at in marks or (at < len(stack) and not isinstance(stack[at], str)):
            pairs[-1][2].extend(stack[at:])
            return pairs
    if at < len(stack) or not marks:  # a key whose value is not there, or a dict that was closed
        pairs.append(("", None, []))
    return pairs


def _whole_calls(pending: list[Any]) -> list[Any]:
    """Calls that were to be put into a history, without the last of them: what follows may belong to it."""
    return list(takewhile(lambda one: type(one) is dict, pending))[:-1]


def _is_list(value: Any) -> bool:
    return type(value) is list
