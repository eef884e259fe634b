"""Why another candidate was not chosen, in figures."""

from __future__ import annotations

from collections.abc import Callable

from meshscope.advisor.candidate import Candidate
from meshscope.advisor.forecast import MemoryForecast, TimeForecast
from meshscope.advisor.naming import layout_name
from meshscope.advisor.ranking import Advice, Ranked
from meshscope.units import NS_PER_S, durations, percent, ratio, size

_SHARE = 0.005
"""Of a step: differences below it are not worth a word."""


def against(advice: Advice, is_met: Callable[[Candidate], bool]) -> str:
    """What the best such candidate lacks against the choice; what is in its way where none can be chosen."""
    fits = (each for each in (*advice.ranked, *advice.settings) if is_met(each.candidate))
    rival = min(fits, key=lambda each: each.step_s, default=None)
    if rival is not None and advice.choice is not None:
        return slower(rival, advice.choice)
    close = next((each for each in advice.close if is_met(each.candidate)), None)
    if close is not None:
        return f"{layout_name(close.candidate)} is too close to say: {held(close.memory)}"
    refused = next((each for each in advice.refused if is_met(each.candidate)), None)
    if refused is not None:
        return (
            f"{layout_name(refused.candidate)} does not fit: {held(refused.memory)}, with the settings that need least"
        )
    return "no legal candidate of this kind may fit, or none was asked for"


def slower(rival: Ranked, choice: Ranked) -> str:
    """``fsdp 8 takes 612 ms against 560: 40 ms more exposed``."""
    name = layout_name(rival.candidate) + _kept(rival.candidate, choice.candidate)
    one, other = rival.time, choice.time
    if one is None or other is None:
        return f"{name} has no forecast of its time"
    its, ours = durations(one.step_s.value * NS_PER_S, other.step_s.value * NS_PER_S)
    by = ratio(one.step_s.value - other.step_s.value, other.step_s.value)
    change = f"{percent(abs(by))} {'more' if by >= 0 else 'less'}"
    because = _because(one, other, _compute_words(rival.candidate, choice.candidate))
    tied = ", too near to tell" if rival.is_tied else ""
    return f"{name} takes {its} against {ours} ({change}{f': {because}' if because else ''}){tied}"


def _kept(rival: Candidate, choice: Candidate) -> str:
    """Where it keeps other activations: that is a part of the difference."""
    if rival.checkpointing == choice.checkpointing:
        return ""
    return f" with {'no' if rival.checkpointing == 'none' else rival.checkpointing} checkpointing"


def _compute_words(rival: Candidate, choice: Candidate) -> str:
    """What is not obvious of a difference in compute."""
    if rival.zero_stage == 0 and choice.zero_stage and rival.checkpointing == choice.checkpointing:
        return "compute (every device updates the whole state)"
    return "compute"


def _because(one: TimeForecast, other: TimeForecast, compute: str) -> str:
    """The parts that differ most, largest first, in the direction of the whole."""
    parts = (
        (compute, one.compute_s - other.compute_s),
        ("exposed communication", one.exposed_s - other.exposed_s),
        ("bubble", one.bubble_s - other.bubble_s),
        ("idle", one.idle_s - other.idle_s),
    )
    least = _SHARE * other.step_s.value
    told = sorted((part for part in parts if abs(part[1]) > least), key=lambda part: -abs(part[1]))
    words = [f"{'+' if change > 0 else '−'}{durations(abs(change) * NS_PER_S)[0]} {name}" for name, change in told[:2]]
    return ", ".join(words)


def held(memory: MemoryForecast) -> str:
    """``128 of 85.0 GB``, and how sure."""
    used = memory.used
    return f"{size(used.value)} ({size(used.low)} to {size(used.high)}) of {size(memory.limit_bytes)}"
