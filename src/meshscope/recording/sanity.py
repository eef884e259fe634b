"""Entries that are well-formed and yet cannot be: one of them must not blank what the others say."""

from __future__ import annotations

from meshscope.recording.entries import (
    Checked,
    Compiled,
    Entry,
    MemoryMeasured,
    StepDone,
    TraceWritten,
    WindowAsked,
)

_OF_A_RANK = (StepDone, TraceWritten, Compiled, MemoryMeasured, Checked)
_OF_A_STEP = (StepDone, MemoryMeasured, Checked)
_END_NUMBER = 2**31
_END_NS = 2**63
_MOST_STEPS = 1_000_000


def is_possible(entry: Entry, ranks: int) -> bool:
    """Whether a recording of so many ranks (unknown when 0) can hold the entry."""
    return _has_possible_numbers(entry) and _has_possible_place(entry, ranks) and _has_possible_stretch(entry)


def _has_possible_numbers(entry: Entry) -> bool:
    """Numbers are kept in 64 bits."""
    values = [getattr(entry, name) for name in entry.__struct_fields__]
    counts = entry.categories.values() if isinstance(entry, MemoryMeasured) else ()
    is_small = all(-_END_NS <= value < _END_NS for value in values if isinstance(value, int))
    return is_small and all(0 <= count < _END_NS for count in counts)


def _has_possible_place(entry: Entry, ranks: int) -> bool:
    """The rank is one of the run's (−1, the supervisor, where it may speak too) and the step no negative one."""
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
