"""Entries that are well-formed and yet cannot be: one of them must not blank what the others say."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import attrgetter

import msgspec

from meshscope.recording.entries import (
    Checked,
    Compiled,
    Entry,
    FlightWritten,
    MemoryMeasured,
    Sampled,
    StacksTaken,
    StepDone,
    TraceWritten,
    WindowAsked,
)

_OF_A_RANK = (StepDone, FlightWritten, StacksTaken, TraceWritten, Compiled, MemoryMeasured, Checked)
_OF_A_STEP = (StepDone, MemoryMeasured, Checked)
_END_NUMBER = 2**31
_END_NS = 2**63
_MOST_STEPS = 1_000_000


def is_possible(entry: Entry, ranks: int) -> bool:
    """Whether a recording of so many ranks (unknown when 0) can hold the entry."""
    return _has_possible_numbers(entry) and _has_possible_place(entry, ranks) and _has_possible_stretch(entry)


def _has_possible_numbers(entry: Entry) -> bool:
    """Numbers are kept in 64 bits."""
    values = _numbers_of(type(entry))(entry)
    if not (min(values) >= -_END_NS and max(values) < _END_NS):
        return False
    return not isinstance(entry, MemoryMeasured) or all(0 <= count < _END_NS for count in entry.categories.values())


@cache
def _numbers_of(kind: type[Entry]) -> Callable[[Entry], tuple[int, ...]]:
    """What gets the whole numbers of an entry: there are many entries."""
    names = [field.name for field in msgspec.structs.fields(kind) if field.type is int]
    return attrgetter(*names, "t_ns")  # one name more, since a single one would give no tuple


def _has_possible_place(entry: Entry, ranks: int) -> bool:
    """The rank is one of the run's (−1, the supervisor, where it may speak too) and the step no negative one."""
    if isinstance(entry, Sampled):
        return True
    rank = getattr(entry, "rank", -1)
    step = getattr(entry, "step", -1)
    first_rank = 0 if isinstance(entry, _OF_A_RANK) else -1
    first_step = 0 if isinstance(entry, _OF_A_STEP) else -1
    return first_rank <= rank < (ranks if ranks > 0 else _END_NUMBER) and first_step <= step < _END_NUMBER


def _has_possible_stretch(entry: Entry) -> bool:
    """Nothing ends before it begins."""
    if isinstance(entry, StepDone):
        return entry.start_ns <= entry.end_ns
    if isinstance(entry, Compiled):
        return entry.duration_ns >= 0
    if isinstance(entry, TraceWritten | WindowAsked):
        return 0 <= entry.first_step <= entry.end_step < _END_NUMBER and (
            entry.end_step - entry.first_step <= _MOST_STEPS
        )
    return True
